"""Distances in metres from the queries to the database and to their first answers.

In: a Dataset with positions, and evaluated rows. Out: a Table.

    k-NN        from a query to the k-th nearest image of the database, whatever the cameras' headings
    answer      from a query to its first answer (one line per evaluated row)

P10 … P90 are percentiles over the queries, linearly interpolated. Distances are great-circle metres. Queries and images
without a position are left out and counted. If k-NN grows slowly, many images show each place.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.evaluate.evaluation import Row
from resight.evaluate.table import Table
from resight.geodesy import Position, find_position, metres_between
from resight.types import Dataset, ImageRef

NEIGHBOURS = (1, 5, 8, 10, 20)
PERCENTILES = (10, 25, 50, 75, 90)
Distances = NDArray[np.float64]


def tabulate_distances(dataset: Dataset, rows: Sequence[Row] = ()) -> Table:
    """Neighbours of the queries, and the first answers of rows on the same data set."""
    images, queries = locate_dataset(dataset)
    nearest = find_neighbours(list(queries.values()), list(images.values()))
    lines = [(f"{k}-NN", str(len(queries)), *_format(nearest[:, k - 1])) for k in NEIGHBOURS if k <= nearest.shape[1]]
    for row in rows:
        answers = measure_answers(row, queries, images)
        if len(answers):
            lines.append((f"answer: {row.label}", str(len(answers)), *_format(answers)))
    return Table(
        f"{dataset.name}: metres from the queries",
        ("to", "n", *(f"P{percent}" for percent in PERCENTILES)),
        tuple(lines),
        (
            "k-NN: to the k-th nearest image of the database; answer: to the first answer.",
            "Percentiles over the queries, of great-circle metres.",
            *_count_unknown(dataset, len(images), len(queries)),
        ),
    )


def locate_dataset(dataset: Dataset) -> tuple[dict[str, Position], dict[str, Position]]:
    """The positions of images and of queries, by id; InputError if either have none."""
    images, queries = _locate(dataset.database), _locate(dataset.queries)
    if not images or not queries:
        raise InputError(
            f"{dataset.name} has no positions to measure distances by",
            expected="lat and lon of images and of queries",
            actual=f"{len(images)} images and {len(queries)} queries with a position",
            fix="choose a data set with positions, or add them to the manifest",
        )
    return images, queries


def find_neighbours(queries: Sequence[Position], images: Sequence[Position], most: int = max(NEIGHBOURS)) -> Distances:
    """[q, k] metres from each query to its k nearest images, ascending; k = min(most, images)."""
    lats, lons = np.array(images, np.float64).reshape(-1, 2).T
    count = min(most, len(images))
    found = np.zeros((len(queries), count))
    for row, (lat, lon) in enumerate(queries):
        found[row] = np.sort(np.partition(metres_between(lat, lon, lats, lons), count - 1)[:count])
    return found


def measure_answers(row: Row, queries: Mapping[str, Position], images: Mapping[str, Position]) -> Distances:
    """Metres from each query to its first answer, where both positions are known."""
    return np.array(
        [
            float(metres_between(*queries[query.id], [images[query.best][0]], [images[query.best][1]])[0])
            for query in row.summary.queries
            if query.id in queries and query.best in images
        ]
    )


def _locate(refs: Sequence[ImageRef]) -> dict[str, Position]:
    """Id → latitude and longitude of the images that have them."""
    found = {ref.id: find_position(ref.attributes) for ref in refs}
    return {name: position for name, position in found.items() if position is not None}


def _format(distances: Distances) -> list[str]:
    return [f"{value:.2f}" for value in np.percentile(distances, PERCENTILES)]


def _count_unknown(dataset: Dataset, images: int, queries: int) -> list[str]:
    missing = len(dataset.database) - images, len(dataset.queries) - queries
    return [f"{missing[0]:,} images and {missing[1]:,} queries have no position."] if any(missing) else []

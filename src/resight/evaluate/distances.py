"""How far away is the truth? A Dataset with positions in, a Table of distances in metres out.

    k-NN        from a query to the k-th nearest image of the database, whichever way the cameras looked
    answer      from a query to the image that a search had first (one row an evaluation)

P10 … P90 are percentiles over the queries, linearly interpolated. Distances are great-circle metres. Queries and images
without a position are left out, and counted. Where k-NN grows slowly, many images show each place.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.evaluate.records import Record
from resight.evaluate.table import Table
from resight.geodesy import find_position, metres_between
from resight.types import Dataset, ImageRef

NEIGHBOURS = (1, 5, 8, 10, 20)
PERCENTILES = (10, 25, 50, 75, 90)
Distances = NDArray[np.float64]
Place = tuple[float, float]


def tabulate_distances(dataset: Dataset, records: Sequence[Record] = ()) -> Table:
    """Neighbours of the queries, and the first answers of `records`, which are of the same data set."""
    images, queries = find_places(dataset.database), find_places(dataset.queries)
    if not images or not queries:
        raise InputError(
            f"{dataset.name} has no positions to measure distances by",
            expected="lat and lon of images and of queries",
            actual=f"{len(images)} images and {len(queries)} queries with a position",
            fix="leave out --distances, or add them to the manifest",
        )
    nearest = find_neighbours(list(queries.values()), list(images.values()))
    rows = [(f"{k}-NN", str(len(queries)), *_say(nearest[:, k - 1])) for k in NEIGHBOURS if k <= nearest.shape[1]]
    for record in records:
        answers = measure_answers(record, queries, images)
        if len(answers):
            rows.append((f"answer: {record.label}", str(len(answers)), *_say(answers)))
    return Table(
        f"{dataset.name}: metres from the queries",
        ("to", "n", *(f"P{percent}" for percent in PERCENTILES)),
        tuple(rows),
        (
            "k-NN: to the k-th nearest image of the database; answer: to the image that the search had first.",
            "Percentiles over the queries, of great-circle metres.",
            *_count_unknown(dataset, len(images), len(queries)),
        ),
    )


def find_neighbours(queries: Sequence[Place], images: Sequence[Place], most: int = max(NEIGHBOURS)) -> Distances:
    """[q, k] metres from each query to its k nearest images, ascending; k = min(most, images)."""
    lats, lons = np.array(images, np.float64).reshape(-1, 2).T
    count = min(most, len(images))
    found = np.zeros((len(queries), count))
    for row, (lat, lon) in enumerate(queries):
        found[row] = np.sort(np.partition(metres_between(lat, lon, lats, lons), count - 1)[:count])
    return found


def measure_answers(record: Record, queries: Mapping[str, Place], images: Mapping[str, Place]) -> Distances:
    """Metres from each query to its first answer, where both positions are known."""
    pairs = [(query["id"], query.get("best")) for query in record.evaluation.get("per_query", ())]
    return np.array(
        [
            float(metres_between(*queries[query], [images[best][0]], [images[best][1]])[0])
            for query, best in pairs
            if query in queries and best in images
        ]
    )


def find_places(refs: Sequence[ImageRef]) -> dict[str, Place]:
    """id → latitude and longitude, of the images that have them."""
    found = {ref.id: find_position(ref.attributes) for ref in refs}
    return {name: position for name, position in found.items() if position is not None}


def _say(distances: Distances) -> list[str]:
    return [f"{value:.2f}" for value in np.percentile(distances, PERCENTILES)]


def _count_unknown(dataset: Dataset, images: int, queries: int) -> list[str]:
    missing = len(dataset.database) - images, len(dataset.queries) - queries
    return [f"{missing[0]:,} images and {missing[1]:,} queries have no position."] if any(missing) else []

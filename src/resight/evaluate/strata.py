"""For which positives are the figures good, and for which bad? Judged queries in, one Breakdown a property out.

The positives (pairs of a query and a positive image) are cut into bins of about equal count by a property, or by its
value where that is a word. To judge a bin, the positives outside it leave the ranking, as ignored images do; a query
without a positive in the bin is left out of it. Equal values always share a bin, the one of their middle rank.

What is known or can be seen of the positives of a data set: a Dataset in, one Property a name out.

    size        area of the object's true box, divided by that of its image
    centre      distance of the box's centre from the image's, divided by half of the image's diagonal
    brightness  mean L of CIE Lab over the positive's image, 0..100
    clutter     share of the positive's image, outside the object's box where that is known, that is edge
    any other   an attribute of the positive, or of the query where positives have none of that name; "query.NAME"
                asks for the query's

Pictures are looked at reduced to 256 pixels, which is enough for both means and keeps edges comparable between images
of different sizes. An edge is a pixel whose L changes by more than 8 a pixel (Sobel, normalised).

Queries in parts that are judged apart, such as those that overlap with a training set and the others (CiDeR, Table
A13). In: a CSV file with the columns id and split, such as the overlap.csv of `resight audit`. Out: query → part.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.data import image_files
from resight.data.truth_tables import read_table
from resight.errors import ImageError, InputError, ManifestError
from resight.evaluate import metrics
from resight.evaluate.judge_query import narrow, number_ranks, split
from resight.evaluate.metrics import Metric, RunMetric
from resight.evaluate.results import Bin, Breakdown, JudgedQuery, Trace
from resight.types import Box, Dataset, ImageRef, Judgement

MOST_WORDS = 24  # values of a word that a table and a chart can still show
Value = float | str


@dataclass(frozen=True)
class Property:
    """A name, what it means, and what it is for each positive of each query: query → positive → value."""

    name: str
    convention: str
    values: Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True)
class Cut:
    """Bins and who is in them: query → positive → number of its bin."""

    labels: tuple[str, ...]
    numbers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def break_down(
    queries: Sequence[JudgedQuery], properties: Sequence[Property], names: Sequence[str], bins: int = 5
) -> tuple[Breakdown, ...]:
    """The metrics of `names` in every bin of every property; those of a whole run have no bins."""
    built = {name: metric for name in names if not isinstance(metric := metrics.build(name), RunMetric)}
    traces = {query.query_id: query.trace for query in queries if query.trace is not None}
    return tuple(_break_down(traces, part, built, bins) for part in properties)


def cut(part: Property, bins: int) -> Cut:
    """Numbers into at most `bins` bins of about equal count; words into one bin a word."""
    if bins < 1:
        raise InputError("no bins to put positives in", expected="1 or more", actual=str(bins), fix="use 5")
    pairs = [(query, id, value) for query, ids in part.values.items() for id, value in ids.items()]
    if any(isinstance(value, str) for _, _, value in pairs):
        return _cut_words(part.name, [(query, id, str(value)) for query, id, value in pairs])
    values = np.array([value for _, _, value in pairs], np.float64)
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    of_level = (2 * np.cumsum(counts) - counts) * bins // (2 * len(values)) if len(values) else counts
    distinct, numbers = np.unique(of_level[level], return_inverse=True)
    labels = tuple(_say_range(values[numbers == number]) for number in range(len(distinct)))
    return Cut(labels, _by_query([(query, id) for query, id, _ in pairs], numbers.tolist()))


def judge_part(trace: Trace, wanted: frozenset[str], built: Mapping[str, Metric]) -> dict[str, float]:
    """Each metric of the ranking, with the positives outside `wanted` taken out of it; at least one is inside."""
    return {name: _judge_metric(trace, wanted, name, metric) for name, metric in built.items()}


def _break_down(traces: Mapping[str, Trace], part: Property, built: Mapping[str, Metric], bins: int) -> Breakdown:
    whole = cut(part, bins)
    members: list[dict[str, frozenset[str]]] = [{} for _ in whole.labels]
    for query, numbers in whole.numbers.items():
        if query not in traces:
            continue
        for number in set(numbers.values()):
            members[number][query] = frozenset(id for id, other in numbers.items() if other == number)
    known = sum(len(ids) for ids in part.values.values())
    return Breakdown(
        part.name,
        part.convention,
        tuple(
            Bin(
                label,
                sum(map(len, chosen.values())),
                {query: judge_part(traces[query], ids, built) for query, ids in chosen.items()},
            )
            for label, chosen in zip(whole.labels, members, strict=True)
        ),
        sum(len(trace.places) for trace in traces.values()) - known,
    )


def _judge_metric(trace: Trace, wanted: frozenset[str], name: str, metric: Metric) -> float:
    counted = narrow(Judgement(trace.grades), split(name)[0]).grades
    kept = {id for id in wanted if id in counted and (not metric.localises or id in trace.overlaps)}
    if not kept:
        return float("nan")
    places = {id: place for id, place in trace.places.items() if place is not None}
    found = sorted(kept & places.keys(), key=places.__getitem__)
    gone = [*trace.gone, *(place for id, place in places.items() if id not in kept)]
    ranks = number_ranks([places[id] for id in found], gone)
    return metric.score(ranks, len(kept), np.array([trace.overlaps.get(id, 0.0) for id in found]))


def _cut_words(name: str, pairs: Sequence[tuple[str, str, str]]) -> Cut:
    words = sorted({value for _, _, value in pairs})
    if len(words) > MOST_WORDS:
        raise InputError(
            f"{name!r} has too many values to show a figure for each",
            expected=f"numbers, or at most {MOST_WORDS} different words",
            actual=f"{len(words):,}, such as {', '.join(map(repr, words[:3]))}",
            fix="choose another attribute",
        )
    numbers = [words.index(value) for _, _, value in pairs]
    return Cut(tuple(words), _by_query([(query, id) for query, id, _ in pairs], numbers))


def _by_query(pairs: Sequence[tuple[str, str]], numbers: Sequence[int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (query, id), number in zip(pairs, numbers, strict=True):
        found.setdefault(query, {})[id] = number
    return found


def _say_range(values: NDArray[np.float64]) -> str:
    """Lowest and highest with as few digits as tell them apart."""
    low, high = float(values.min()), float(values.max())
    digits = next((count for count in (2, 3, 4) if f"{low:.{count}g}" != f"{high:.{count}g}"), 3)
    return f"{low:.{digits}g}" if low == high else f"{low:.{digits}g}–{high:.{digits}g}"


SIDE = 256
STEEP = 8.0  # change of L a pixel that counts as an edge
CONVENTIONS = {
    "size": "area of the object's true box divided by the area of its image",
    "centre": "distance of the box's centre from the image's centre, divided by half of the image's diagonal",
    "brightness": "mean L of CIE Lab of the positive's image, 0 (black) to 100 (white)",
    "clutter": "share of pixels that are edges in the positive's image, outside the object's box where it is known",
}
QUERY = "query."
Size = tuple[int, int]


def find_properties(
    dataset: Dataset, names: Sequence[str], sizes: Callable[[Sequence[str]], Mapping[str, Size]]
) -> tuple[Property, ...]:
    """`sizes` gives width and height of database images by id; those that could not be read are left out."""
    return tuple(_find(dataset, name.strip(), sizes) for name in names)


def measure_brightness(pixels: NDArray[np.uint8]) -> float:
    """Mean L of CIE Lab, 0..100."""
    return float(lightness(pixels).mean())


def measure_clutter(pixels: NDArray[np.uint8], box: Box | None = None) -> float:
    """Share of pixels that are edges; `box`, in pixels of this picture, is left out unless it covers everything."""
    light = lightness(pixels)
    across, down = (cv2.Sobel(light, cv2.CV_32F, *order, ksize=3, scale=1 / 8) for order in ((1, 0), (0, 1)))
    steep = np.hypot(across, down) > STEEP
    outside = np.ones(steep.shape, np.bool_)
    if box is not None:
        x0, y0, x1, y1 = (max(round(side), 0) for side in box)
        outside[y0:y1, x0:x1] = False
    return float(steep[outside].mean() if outside.any() else steep.mean())


def lightness(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """L of CIE Lab [H, W] of RGB pixels, 0..100."""
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
    return np.asarray(lab[..., 0], np.float32)


def _find(dataset: Dataset, name: str, sizes: Callable[[Sequence[str]], Mapping[str, Size]]) -> Property:
    if name in ("size", "centre"):
        return Property(name, CONVENTIONS[name], _read_boxes(dataset, name, sizes))
    if name in ("brightness", "clutter"):
        return Property(name, CONVENTIONS[name], _look(dataset, name))
    return _read_attribute(dataset, name)


def _read_boxes(
    dataset: Dataset, name: str, sizes: Callable[[Sequence[str]], Mapping[str, Size]]
) -> dict[str, dict[str, Value]]:
    wanted = {id for _, judgement in _judged(dataset) for id in _positives(judgement) if id in judgement.boxes}
    if not wanted:
        raise InputError(
            f"{dataset.name} has no true boxes to take {name} from",
            expected="positives whose box is known",
            fix="leave it out of --strata; brightness and clutter need no boxes",
        )
    known = sizes(sorted(wanted))
    measure = _relative_area if name == "size" else _off_centre
    return {
        query: {
            id: measure(judgement.boxes[id], known[id])
            for id in _positives(judgement)
            if id in judgement.boxes and id in known
        }
        for query, judgement in _judged(dataset)
    }


def _relative_area(box: Box, size: Size) -> float:
    return (box[2] - box[0]) * (box[3] - box[1]) / (size[0] * size[1])


def _off_centre(box: Box, size: Size) -> float:
    away = ((box[0] + box[2] - size[0]) / 2, (box[1] + box[3] - size[1]) / 2)
    return float(np.hypot(*away) / (np.hypot(*size) / 2))


def _look(dataset: Dataset, name: str) -> dict[str, dict[str, Value]]:
    """Brightness or clutter, each picture decoded once (brightness does not ask where the object is)."""
    paths = {ref.id: ref for ref in dataset.database}
    asked = {
        (id, judgement.boxes.get(id) if name == "clutter" else None)
        for _, judgement in _judged(dataset)
        for id in _positives(judgement)
        if id in paths
    }
    measure = _see_brightness if name == "brightness" else _see_clutter
    order = sorted(asked, key=repr)
    with ThreadPoolExecutor(2, thread_name_prefix="look") as pool:
        seen = dict(zip(order, pool.map(lambda pair: measure(paths[pair[0]], pair[1]), order), strict=True))
    return {
        query: {
            id: value
            for id in _positives(judgement)
            if (value := seen.get((id, judgement.boxes.get(id) if name == "clutter" else None))) is not None
        }
        for query, judgement in _judged(dataset)
    }


def _see_brightness(ref: ImageRef, _box: Box | None) -> float | None:
    seen = _read_small(ref.path)
    return None if seen is None else measure_brightness(seen[0])


def _see_clutter(ref: ImageRef, box: Box | None) -> float | None:
    seen = _read_small(ref.path)
    if seen is None:
        return None
    pixels, (width, height) = seen
    across, down = pixels.shape[1] / width, pixels.shape[0] / height
    small = None if box is None else (box[0] * across, box[1] * down, box[2] * across, box[3] * down)
    return measure_clutter(pixels, small)


def _read_small(path: Path) -> tuple[NDArray[np.uint8], Size] | None:
    try:
        picture = image_files.read(ImageRef(path.name, path), max_side=SIDE)
    except ImageError:
        return None
    return picture.pixels, picture.size


def _read_attribute(dataset: Dataset, name: str) -> Property:
    bare = name.removeprefix(QUERY)
    database = {ref.id: ref.attributes for ref in dataset.database}
    queries = {ref.id: ref.attributes for ref in dataset.queries}
    of_positive = bare == name and any(name in attributes for attributes in database.values())
    values: dict[str, dict[str, Value]] = {}
    for query, judgement in _judged(dataset):
        found = {
            id: (database.get(id, {}) if of_positive else queries[query]).get(bare) for id in _positives(judgement)
        }
        values[query] = {
            id: float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
            for id, value in found.items()
            if value is not None
        }
    if not any(values.values()):
        known = sorted({key for ref in (*dataset.database, *dataset.queries) for key in ref.attributes})
        raise InputError(
            f"{dataset.name} knows nothing called {name!r}",
            expected=f"one of {', '.join([*CONVENTIONS, *known])}",
            actual=name,
            fix="choose one of these for --strata",
        )
    return Property(name, f"the attribute {bare} of the {'positive' if of_positive else 'query'}", values)


def _judged(dataset: Dataset) -> Iterator[tuple[str, Judgement]]:
    known = {ref.id for ref in dataset.queries}
    return ((query, judgement) for query, judgement in dataset.judgements.items() if query in known)


def _positives(judgement: Judgement) -> list[str]:
    return [id for id, grade in judgement.grades.items() if grade > 0 and id not in judgement.ignored]


FIX = "name the columns id (of a query) and split in the first line, as `resight audit` does in overlap.csv"


def read_split(path: Path) -> Mapping[str, str]:
    parts: dict[str, str] = {}
    for line, row in read_table(path, ("id", "split"), FIX):
        if parts.setdefault(row["id"], row["split"]) != row["split"]:
            raise ManifestError(
                f"{path}, line {line}: the query {row['id']!r} is in two parts",
                expected="each query in one part",
                actual=f"{parts[row['id']]} and {row['split']}",
                fix="remove one of the lines",
            )
    return parts


def check_split(parts: Mapping[str, str], queries: Sequence[str]) -> None:
    """Refused where it is of other queries: all figures would silently be those of no part."""
    if not any(query in parts for query in queries):
        raise InputError(
            "the split names none of the queries",
            expected=f"ids such as {', '.join(map(repr, queries[:3]))}",
            actual=", ".join(map(repr, list(parts)[:3])) or "nothing",
            fix="give the split of this data set",
        )

"""What is known or can be seen of the positives of a data set: a Dataset in, one Property a name out.

    size        area of the object's true box, divided by that of its image
    centre      distance of the box's centre from the image's, divided by half of the image's diagonal
    brightness  mean L of CIE Lab over the positive's image, 0..100
    clutter     share of the positive's image, outside the object's box where that is known, that is edge
    any other   an attribute of the positive, or of the query where positives have none of that name; "query.NAME"
                asks for the query's

Pictures are looked at reduced to 256 pixels, which is enough for both means and keeps edges comparable between images
of different sizes. An edge is a pixel whose L changes by more than 8 a pixel (Sobel, normalised).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.data import images
from resight.errors import ImageError, InputError
from resight.evaluate.strata import Property, Value
from resight.types import Box, Dataset, ImageRef, Judgement

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
        picture = images.read(ImageRef(path.name, path), max_side=SIDE)
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

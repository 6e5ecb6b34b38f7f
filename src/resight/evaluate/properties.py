"""Properties of the positives of a data set: size, centre, brightness, clutter, or any attribute.

In: a Dataset and names. Out: a Property per name.

    size        area of the object's true box divided by the area of its image
    centre      distance of the box's centre from the image's centre, divided by half of the image's diagonal
    brightness  mean L of CIE Lab over the positive's image, 0..100
    clutter     share of edge pixels in the positive's image, outside the object's box if that is known
    any other   an attribute of the positive, or of the query if positives have none of that name; "query.NAME"
                is always the query's

Images are measured at 256 pixels, enough for both means; it makes edges comparable between images of different sizes.
An edge is a pixel where L changes by more than 8 per pixel (Sobel, normalised).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.data import image_files
from resight.errors import ImageError, InputError
from resight.types import Box, Dataset, ImageRef, Judgement

SIDE = 256
EDGE_STEP = 8.0  # change of L per pixel that counts as an edge
CONVENTIONS = {
    "size": "area of the object's true box divided by the area of its image",
    "centre": "distance of the box's centre from the image's centre, divided by half of the image's diagonal",
    "brightness": "mean L of CIE Lab of the positive's image, 0 (black) to 100 (white)",
    "clutter": "share of pixels that are edges in the positive's image, outside the object's box where it is known",
}
QUERY = "query."
Size = tuple[int, int]
Value = float | str


@dataclass(frozen=True)
class Property:
    """A name, its meaning, and its values: query → positive → value."""

    name: str
    convention: str
    values: Mapping[str, Mapping[str, Value]]


def find_properties(
    dataset: Dataset, names: Sequence[str], sizes: Callable[[Sequence[str]], Mapping[str, Size]]
) -> tuple[Property, ...]:
    """`sizes` gives width and height of database images by id, without those that could not be read."""
    return tuple(_find(dataset, name.strip(), sizes) for name in names)


def measure_brightness(pixels: NDArray[np.uint8]) -> float:
    """Mean L of CIE Lab, 0..100."""
    return float(lightness(pixels).mean())


def measure_clutter(pixels: NDArray[np.uint8], box: Box | None = None) -> float:
    """Share of edge pixels; leaves out `box`, in pixels of this image, unless it covers everything."""
    light = lightness(pixels)
    across, down = (cv2.Sobel(light, cv2.CV_32F, *order, ksize=3, scale=1 / 8) for order in ((1, 0), (0, 1)))
    steep = np.hypot(across, down) > EDGE_STEP
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
        return Property(name, CONVENTIONS[name], _measure_images(dataset, name))
    return _read_attribute(dataset, name)


def _read_boxes(
    dataset: Dataset, name: str, sizes: Callable[[Sequence[str]], Mapping[str, Size]]
) -> dict[str, dict[str, Value]]:
    wanted = {
        id for _, judgement in _list_judged(dataset) for id in _list_positives(judgement) if id in judgement.boxes
    }
    if not wanted:
        raise InputError(
            f"{dataset.name} has no true boxes to compute {name} from",
            expected="positives whose box is known",
            fix="leave it out of --strata; brightness and clutter need no boxes",
        )
    known = sizes(sorted(wanted))
    measure = _relative_area if name == "size" else _off_centre
    return {
        query: {
            id: measure(judgement.boxes[id], known[id])
            for id in _list_positives(judgement)
            if id in judgement.boxes and id in known
        }
        for query, judgement in _list_judged(dataset)
    }


def _relative_area(box: Box, size: Size) -> float:
    return (box[2] - box[0]) * (box[3] - box[1]) / (size[0] * size[1])


def _off_centre(box: Box, size: Size) -> float:
    away = ((box[0] + box[2] - size[0]) / 2, (box[1] + box[3] - size[1]) / 2)
    return float(np.hypot(*away) / (np.hypot(*size) / 2))


def _measure_images(dataset: Dataset, name: str) -> dict[str, dict[str, Value]]:
    """Brightness or clutter; decodes each image once per box (brightness ignores boxes)."""
    paths = {ref.id: ref for ref in dataset.database}
    asked = {
        (id, judgement.boxes.get(id) if name == "clutter" else None)
        for _, judgement in _list_judged(dataset)
        for id in _list_positives(judgement)
        if id in paths
    }
    measure = _read_brightness if name == "brightness" else _read_clutter
    order = sorted(asked, key=repr)
    with ThreadPoolExecutor(2, thread_name_prefix="measure") as pool:
        seen = dict(zip(order, pool.map(lambda pair: measure(paths[pair[0]], pair[1]), order), strict=True))
    return {
        query: {
            id: value
            for id in _list_positives(judgement)
            if (value := seen.get((id, judgement.boxes.get(id) if name == "clutter" else None))) is not None
        }
        for query, judgement in _list_judged(dataset)
    }


def _read_brightness(ref: ImageRef, _box: Box | None) -> float | None:
    seen = _read_small(ref.path)
    return None if seen is None else measure_brightness(seen[0])


def _read_clutter(ref: ImageRef, box: Box | None) -> float | None:
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
    for query, judgement in _list_judged(dataset):
        found = {
            id: (database.get(id, {}) if of_positive else queries[query]).get(bare) for id in _list_positives(judgement)
        }
        values[query] = {
            id: float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
            for id, value in found.items()
            if value is not None
        }
    if not any(values.values()):
        known = sorted({key for ref in (*dataset.database, *dataset.queries) for key in ref.attributes})
        raise InputError(
            f"{dataset.name} has no property or attribute called {name!r}",
            expected=f"one of {', '.join([*CONVENTIONS, *known])}",
            actual=name,
            fix="choose one of these for --strata",
        )
    return Property(name, f"the attribute {bare} of the {'positive' if of_positive else 'query'}", values)


def _list_judged(dataset: Dataset) -> Iterator[tuple[str, Judgement]]:
    known = {ref.id for ref in dataset.queries}
    return ((query, judgement) for query, judgement in dataset.judgements.items() if query in known)


def _list_positives(judgement: Judgement) -> list[str]:
    return [id for id, grade in judgement.grades.items() if grade > 0 and id not in judgement.ignored]

"""Rows of parts of an image → rows of the image, with every place in pixels of the whole."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.types import Box, Descriptors, Role

ARRAYS = ("boxes", "weights", "points", "words", "seeds")


def move(rows: Descriptors, x: float, y: float) -> Descriptors:
    """Rows of a part whose upper left corner lies at (x, y)."""
    point = np.array([x, y, 0, 0], np.float32)
    box = np.array([x, y, x, y], np.float32)
    return replace(
        rows,
        points=None if rows.points is None else rows.points + point,
        boxes=None if rows.boxes is None else rows.boxes + box,
        seeds=None if rows.seeds is None else rows.seeds + box,
    )


def join_regions(parts: Sequence[Descriptors], regions: Sequence[Box], role: Role) -> Descriptors:
    """The rows of all regions of one image. A row that stands for its region has that as its box.

    So have only images of the database: the rows of a query are asked for their place by nobody, and one with boxes is
    taken for tokens.
    """
    if role == "database":
        parts = [
            part if part.boxes is not None or part.points is not None else replace(part, boxes=_repeat(region, part))
            for part, region in zip(parts, regions, strict=True)
        ]
    return chain_rows(parts)


def chain_rows(parts: Sequence[Descriptors]) -> Descriptors:
    """The rows of all parts, one after the other, as those of one image."""
    vectors = np.concatenate([part.vectors for part in parts])
    optional: dict[str, Any] = {name: _concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
    return replace(parts[0], vectors=vectors, owners=np.zeros(len(vectors), np.int32), **optional)


def _repeat(region: Box, part: Descriptors) -> NDArray[np.float32]:
    return np.tile(np.array(region, np.float32), (len(part), 1))


def _concatenate(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """None where one of them is."""
    known = [array for array in arrays if array is not None]
    return np.concatenate(known) if len(known) == len(arrays) else None

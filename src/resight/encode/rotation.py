"""A query at further rotations, for things that may be turned by any angle, such as maps: a Picture and a box in,
Pictures of the same ground out, each turned counter-clockwise.

A turn keeps the middle of the box. A square stays as large as it is; other boxes become as wide and high as is natural,
so that a quarter turn swaps width and height. What lies around the box fills the corners; beyond the edge of the
picture its mirror image does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import cos, radians, sin

import cv2
import numpy as np

from resight.boxes import clip
from resight.types import Box, Picture, Query


def list_angles(rotations: int) -> list[float]:
    """All but the upright one, in degrees."""
    return [360 * number / rotations for number in range(1, rotations)]


def turn(picture: Picture, box: Box | None, degrees: float) -> Picture:
    """The part inside the box (None: all), turned counter-clockwise; its `size` is that of the new picture."""
    rows, columns = picture.pixels.shape[:2]
    width, height = picture.size
    x0, y0, x1, y1 = clip(box, picture.size, picture.ref.id) if box is not None else (0.0, 0.0, width, height)
    along, down = columns / width, rows / height
    across, upward = sin(radians(degrees)) ** 2, cos(radians(degrees)) ** 2
    wide, high = (x1 - x0) * along, (y1 - y0) * down
    new_wide, new_high = max(1, round(wide * upward + high * across)), max(1, round(high * upward + wide * across))
    centre = (x0 + x1) / 2 * along - 0.5, (y0 + y1) / 2 * down - 0.5
    matrix = cv2.getRotationMatrix2D(centre, degrees, 1.0)
    matrix[:, 2] += (new_wide - 1) / 2 - centre[0], (new_high - 1) / 2 - centre[1]
    turned = cv2.warpAffine(
        picture.pixels, matrix, (new_wide, new_high), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101
    )
    size = max(1, round(new_wide / along)), max(1, round(new_high / down))
    return replace(picture, ref=replace(picture.ref, box=None), pixels=np.asarray(turned, np.uint8), size=size)


@dataclass
class TurnedQueries:
    """The same query at further rotations, encoded when they are first asked for."""

    make: Callable[[], tuple[Query, ...]]
    _made: tuple[Query, ...] | None = field(default=None, init=False)

    def __call__(self) -> tuple[Query, ...]:
        if self._made is None:
            self._made = self.make()
        return self._made


def attach(
    query: Query, picture: Picture, box: Box | None, rotations: int, encode: Callable[[Picture], Query]
) -> Query:
    """The query with its other rotations."""

    def make() -> tuple[Query, ...]:
        return tuple(
            replace(encode(turn(picture, box, degrees)), rotation=degrees) for degrees in list_angles(rotations)
        )

    return replace(query, turned=TurnedQueries(make))

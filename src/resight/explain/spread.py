"""Marks that would lie on each other → how far each is moved aside, in pixels.

Greedy, in the order given: the first keep their places, later ones go round theirs on wider and wider rings until they
lie on nothing. A mark that finds no room within reach stays where it is.
"""

import math
from collections.abc import Sequence

Point = tuple[float, float]
RINGS = (22.0, 38.0, 56.0, 76.0, 98.0)  # pixels
TURNS = 16


def spread(points: Sequence[Point], radius: float, size: Point, fixed: Sequence[Point] = ()) -> list[Point]:
    """Offsets [n] of discs of one radius at `points`, within a frame of `size`; nothing is put over a `fixed` point."""
    taken = list(fixed)
    offsets = []
    for x, y in points:
        room = ((dx, dy) for dx, dy in _list_offsets() if _is_free(x + dx, y + dy, radius, size, taken))
        dx, dy = next(room, (0.0, 0.0))
        taken.append((x + dx, y + dy))
        offsets.append((dx, dy))
    return offsets


def _list_offsets() -> list[Point]:
    turns = [2 * math.pi * turn / TURNS for turn in range(TURNS)]
    return [(0.0, 0.0), *((ring * math.cos(turn), ring * math.sin(turn)) for ring in RINGS for turn in turns)]


def _is_free(x: float, y: float, radius: float, size: Point, taken: Sequence[Point]) -> bool:
    inside = radius <= x <= size[0] - radius and radius <= y <= size[1] - radius
    return inside and all(math.hypot(x - other[0], y - other[1]) >= 2 * radius for other in taken)

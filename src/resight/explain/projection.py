"""A small flat map: positions in degrees in, shares of the map's width and height out; and marks that do not overlap.

The map is equirectangular about its middle, x = R cos φ₀ (λ − λ₀), y = R (φ − φ₀), and takes longitudes the short way
round, so that the antimeridian is no edge. Beyond 80° of latitude, where meridians run together, it is azimuthal
equidistant about its middle instead: distances and directions from there are true. Elsewhere a map of 100 km is true to
1 % up to 50° of latitude; a wider one is true along the parallel of its middle.

`declutter` moves marks aside, greedily in the order given: the first marks stay at their positions, later ones go round
theirs on wider and wider rings until they cover nothing. A mark without room within reach stays where it is.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from resight.explain.format import format_metres
from resight.geodesy import RADIUS, Position

DEGREE = math.radians(1) * RADIUS  # metres
POLAR = 80.0
LEAST_SPAN = 80.0  # metres across, even if all positions are the same
MARGIN = 0.13  # share of the span on each side, so that marks and labels do not touch the edge
LINES = 4  # of the grid in each direction, about
NICE = (1.0, 2.0, 5.0)
WIDE_STEPS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 90.0)  # degrees

RINGS = (22.0, 38.0, 56.0, 76.0, 98.0)  # pixels that a mark may be moved by
TURNS = 16  # directions

Point = tuple[float, float]


@dataclass(frozen=True)
class Projection:
    """The extent of a map: `width` × `height` metres about its middle."""

    lat: float  # of the middle
    lon: float
    width: float
    height: float

    @property
    def polar(self) -> bool:
        return abs(self.lat) > POLAR

    def project(self, position: Position) -> tuple[float, float]:
        """A position on the map, as shares of the width and of the height from the upper left."""
        east, north = _flatten(position, (self.lat, self.lon))
        return 0.5 + east / self.width, 0.5 - north / self.height

    def bounds(self) -> tuple[float, float, float, float]:
        """South, west, north, east in degrees; west and east may go beyond 180."""
        half_lat = self.height / 2 / DEGREE
        half_lon = self.width / 2 / (DEGREE * math.cos(math.radians(self.lat)))
        return self.lat - half_lat, self.lon - half_lon, self.lat + half_lat, self.lon + half_lon


def fit(positions: Sequence[Position], ratio: float, reach: Sequence[float] = ()) -> Projection:
    """A map `ratio` times as wide as high that shows all positions, and around each the metres of `reach`."""
    first = _find_middle(positions)
    flat = np.array([_flatten(position, first) for position in positions])
    east, north = ((flat.min(axis=0) + flat.max(axis=0)) / 2).tolist()
    middle = _unflatten(east, north, first)
    room = np.array(list(reach) or [0.0] * len(flat))[:, None]
    half = (np.abs([_flatten(position, middle) for position in positions]) + room).max(axis=0)
    width = max(LEAST_SPAN, 2 * float(half[0]), 2 * float(half[1]) * ratio) / (1 - 2 * MARGIN)
    return Projection(*middle, width, width / ratio)


def draw_grid(shown: Projection) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
    """Lines down and lines across: their share of the width or height, and their label."""
    if shown.polar:
        step = round_up(shown.width / LINES)
        return (
            [(0.5 + at / shown.width, _format_offset(at, "E", "W")) for at in _multiples(step, shown.width)],
            [(0.5 - at / shown.height, _format_offset(at, "N", "S")) for at in _multiples(step, shown.height)],
        )
    south, west, north, east = shown.bounds()
    meridians = _list_degrees(west, min(east, west + 360.0))
    parallels = _list_degrees(max(south, -90.0), min(north, 90.0))
    return (
        [(shown.project((shown.lat, lon))[0], _format_degrees(lon, words, "EW")) for lon, words in meridians],
        [(shown.project((lat, shown.lon))[1], _format_degrees(lat, words, "NS")) for lat, words in parallels],
    )


def round_down(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most `value`."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return max(nice * power for nice in NICE if nice * power <= value * (1 + 1e-9))


def round_up(value: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least `value`."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return min(nice * power for nice in (*NICE, 10.0) if nice * power >= value * (1 - 1e-9))


def _find_middle(positions: Sequence[Position]) -> Position:
    """The middle on the sphere; the first position if they lie all around it and have no middle."""
    lat, lon = np.radians(np.array(positions, np.float64)).T
    x, y, z = (np.cos(lat) * np.cos(lon)).mean(), (np.cos(lat) * np.sin(lon)).mean(), np.sin(lat).mean()
    if math.hypot(x, y, z) < 1e-9:
        return positions[0]
    return math.degrees(math.atan2(z, math.hypot(x, y))), math.degrees(math.atan2(y, x))


def _flatten(position: Position, middle: Position) -> tuple[float, float]:
    """Metres east and north of the middle."""
    turn = (position[1] - middle[1] + 180) % 360 - 180
    if abs(middle[0]) <= POLAR:
        return turn * DEGREE * math.cos(math.radians(middle[0])), (position[0] - middle[0]) * DEGREE
    phi, phi0, turned = math.radians(position[0]), math.radians(middle[0]), math.radians(turn)
    east = math.cos(phi) * math.sin(turned)
    north = math.cos(phi0) * math.sin(phi) - math.sin(phi0) * math.cos(phi) * math.cos(turned)
    up = math.sin(phi0) * math.sin(phi) + math.cos(phi0) * math.cos(phi) * math.cos(turned)
    across = math.hypot(east, north)
    stretch = RADIUS * math.atan2(across, up) / across if across > 1e-15 else 0.0
    return east * stretch, north * stretch


def _unflatten(east: float, north: float, middle: Position) -> Position:
    """The position at these metres east and north of the middle; longitude within ±180."""
    phi0, distance = math.radians(middle[0]), math.hypot(east, north) / RADIUS
    if abs(middle[0]) <= POLAR:
        lat, lon = middle[0] + north / DEGREE, middle[1] + east / (DEGREE * math.cos(phi0))
    elif distance == 0:
        lat, lon = middle
    else:
        bearing = math.atan2(east, north)
        sine = math.sin(phi0) * math.cos(distance) + math.cos(phi0) * math.sin(distance) * math.cos(bearing)
        lat = math.degrees(math.asin(max(-1.0, min(1.0, sine))))
        lon = middle[1] + math.degrees(
            math.atan2(
                math.sin(bearing) * math.sin(distance) * math.cos(phi0), math.cos(distance) - math.sin(phi0) * sine
            )
        )
    return lat, (lon + 180) % 360 - 180


def _list_degrees(low: float, high: float) -> list[tuple[float, str]]:
    """Round degrees from low to high, longitudes brought back within ±180, each with its digits as text."""
    least = (high - low) / LINES
    step = round_up(least) if least <= 1 else min(wide for wide in WIDE_STEPS if wide >= least)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    values = [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
    turned = [value if abs(value) <= 180 else (value + 180) % 360 - 180 for value in values]
    return [(degrees, f"{abs(degrees):.{digits}f}") for degrees in turned]


def _format_degrees(degrees: float, words: str, letters: str) -> str:
    return f"{words}°" if abs(degrees) in (0, 180) else f"{words}° {letters[degrees < 0]}"


def _multiples(step: float, span: float) -> Iterator[float]:
    half = math.floor(span / 2 / step)
    return (number * step for number in range(-half, half + 1))


def _format_offset(metres: float, positive: str, negative: str) -> str:
    return "0" if metres == 0 else f"{format_metres(abs(metres))} {positive if metres > 0 else negative}"


def declutter(points: Sequence[Point], radius: float, size: Point, fixed: Sequence[Point] = ()) -> list[Point]:
    """Offsets [n], in pixels, of discs of one radius at `points` in a frame of `size`; none covers a `fixed` point."""
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

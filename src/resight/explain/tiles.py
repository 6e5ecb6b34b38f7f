"""A layer of map tiles: a server's address and what a map shows in, pictures with their places out.

Tiles are those of the usual scheme (Web Mercator, 256 pixels, row 0 in the north). Each is set by its corners, so that
it lies right on a map that is not Mercator's: within a tile of level 7 or above the two differ by less than two pixels.
A map wider than that, and one near a pole, has no tiles.
"""

import math
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from resight.errors import InputError
from resight.explain.projection import Projection

LEAST_LEVEL, MOST_LEVEL = 7, 19
ACROSS = 3  # tiles that span a map, at least, where there is such a level
FIELDS = ("{z}", "{x}", "{y}")
# A host and a path of letters that can neither end an entry of a page's policy nor stand for anything in it.
ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?/([A-Za-z0-9/._~%@?&=+-]|\{[xyz]\})*")


@dataclass(frozen=True)
class Tiles:
    """Whose tiles; `attribution` is what the server's licence wants to be said on the map."""

    template: str  # https://…/{z}/{x}/{y}.png
    attribution: str

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.template) or any(self.template.count(field) != 1 for field in FIELDS):
            raise InputError(
                "not an address of tiles",
                expected="the address of a server with {z}, {x} and {y} in it, each once",
                actual=self.template,
                fix="e.g. --tiles https://tiles.example.org/{z}/{x}/{y}.png",
            )
        if not self.attribution.strip():
            raise InputError(
                "whose tiles these are has to be said on the map",
                expected="--attribution TEXT beside --tiles",
                actual="no text",
                fix='e.g. --attribution "© OpenStreetMap contributors"',
            )

    @property
    def origin(self) -> str:
        """The one server that a page may ask."""
        address = urlsplit(self.template)
        return f"{address.scheme}://{address.netloc}"


@dataclass(frozen=True)
class Tile:
    """A picture, and where it is: shares of the map's width and height."""

    address: str
    x: float
    y: float
    width: float
    height: float


def list_tiles(tiles: Tiles, shown: Projection) -> list[Tile]:
    """Those that cover the map; none where it is too wide for them."""
    if shown.polar:
        return []
    south, west, north, east = shown.bounds()
    level = min(math.ceil(math.log2(ACROSS * 360 / (east - west))), MOST_LEVEL)
    if level < LEAST_LEVEL:
        return []
    size = 2**level
    columns = range(math.floor(_column(west, size)), math.floor(_column(east, size)) + 1)
    rows = range(max(0, math.floor(_row(north, size))), min(size - 1, math.floor(_row(south, size))) + 1)
    placed = []
    for row in rows:
        top, bottom = (shown.project((_latitude(edge, size), shown.lon))[1] for edge in (row, row + 1))
        for column in columns:
            left = 0.5 + (column - _column(shown.lon, size)) / (_column(east, size) - _column(west, size))
            address = tiles.template
            for field, value in zip(FIELDS, (level, column % size, row), strict=True):
                address = address.replace(field, str(value))
            width = 1 / (_column(east, size) - _column(west, size))
            placed.append(Tile(address, left, top, width, bottom - top))
    return placed


def _column(lon: float, size: int) -> float:
    return (lon + 180) / 360 * size


def _row(lat: float, size: int) -> float:
    return (1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * size


def _latitude(row: float, size: int) -> float:
    return math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * row / size))))

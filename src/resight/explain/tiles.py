"""A layer of map tiles: the address of a tile server and the extent of a map in, pictures with their coordinates out.

Tiles follow the usual scheme (Web Mercator, 256 pixels, row 0 in the north). Each is positioned by its corners, so that
it also fits a map that is not Mercator's: within a tile of level 7 or above the two differ by less than two pixels. A
wider map, and one near a pole, has no tiles.
"""

import math
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from resight.errors import InputError
from resight.explain.projection import Projection

LEAST_LEVEL, MOST_LEVEL = 7, 19
ACROSS = 3  # least number of tiles across a map, if there is such a level
FIELDS = ("{z}", "{x}", "{y}")
# A host and a path whose characters neither end an entry of a page's content security policy nor mean anything in it.
ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?/([A-Za-z0-9/._~%@?&=+-]|\{[xyz]\})*")


@dataclass(frozen=True)
class Tiles:
    """A tile server; its licence requires the `attribution` on the map."""

    template: str  # https://…/{z}/{x}/{y}.png
    attribution: str

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.template) or any(self.template.count(field) != 1 for field in FIELDS):
            raise InputError(
                "not the address of a tile server",
                expected="an address that contains {z}, {x} and {y} once each",
                actual=self.template,
                fix="e.g. --tiles https://tiles.example.org/{z}/{x}/{y}.png",
            )
        if not self.attribution.strip():
            raise InputError(
                "the map has to credit the tiles",
                expected="--attribution TEXT with --tiles",
                actual="no text",
                fix='e.g. --attribution "© OpenStreetMap contributors"',
            )

    @property
    def origin(self) -> str:
        """The only server that the page may contact."""
        address = urlsplit(self.template)
        return f"{address.scheme}://{address.netloc}"


@dataclass(frozen=True)
class Tile:
    """A picture and its rectangle, in shares of the map's width and height."""

    address: str
    x: float
    y: float
    width: float
    height: float


def list_tiles(tiles: Tiles, shown: Projection) -> list[Tile]:
    """The tiles that cover the map; none if it is too wide for them."""
    if shown.polar:
        return []
    south, west, north, east = shown.bounds()
    level = min(math.ceil(math.log2(ACROSS * 360 / (east - west))), MOST_LEVEL)
    if level < LEAST_LEVEL:
        return []
    size = 2**level
    columns = range(math.floor(_column(west, size)), math.floor(_column(east, size)) + 1)
    rows = range(max(0, math.floor(_row(north, size))), min(size - 1, math.floor(_row(south, size))) + 1)
    found = []
    for row in rows:
        top, bottom = (shown.project((_latitude(edge, size), shown.lon))[1] for edge in (row, row + 1))
        for column in columns:
            left = 0.5 + (column - _column(shown.lon, size)) / (_column(east, size) - _column(west, size))
            address = tiles.template
            for field, value in zip(FIELDS, (level, column % size, row), strict=True):
                address = address.replace(field, str(value))
            width = 1 / (_column(east, size) - _column(west, size))
            found.append(Tile(address, left, top, width, bottom - top))
    return found


def _column(lon: float, size: int) -> float:
    return (lon + 180) / 360 * size


def _row(lat: float, size: int) -> float:
    return (1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * size


def _latitude(row: float, size: int) -> float:
    return math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * row / size))))

"""What a map's label says about its projection in, the grid of its pixels out.

Labels of PDS3, PDS4 and GeoTIFF say the same in different words, and not always exactly: their offsets are off by half
a pixel or one, or count from the projection's centre instead of the equator. Where a label also gives the bounds, and
these fit the size of the raster, the bounds decide. Longitudes are counted to the east here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.data.maps.map_image import Grid
from resight.data.maps.polar_grid import PolarGrid
from resight.errors import ManifestError

LARGEST = 1 << 31  # rows or columns of a raster
ALLOWED = 2.0  # pixels that offsets and bounds may differ by
SAME_GLOBE = 0.03  # by which two radii of the same globe may differ: flattened ones have several
BODIES = {  # mean radii in km
    "mercury": 2439.7,
    "venus": 6051.8,
    "moon": 1737.4,
    "mars": 3389.5,
    "ceres": 469.7,
    "vesta": 262.7,
    "io": 1821.5,
    "europa": 1560.8,
    "ganymede": 2631.2,
    "callisto": 2410.3,
    "mimas": 198.2,
    "enceladus": 252.1,
    "tethys": 531.0,
    "dione": 561.4,
    "rhea": 763.5,
    "iapetus": 734.3,
    "titan": 2574.7,
    "triton": 1353.4,
    "pluto": 1188.3,
    "charon": 606.0,
}
Bounds = tuple[float, float, float, float]  # west, south, east, north in degrees
WHOLE = re.compile(r'\s*"?\+?([0-9]{1,12})(\.0*)?(?![\w.])')
ABSENT = ("", "N/A", "UNK", "NULL")  # what labels write for no value


@dataclass(frozen=True)
class Cylinder:
    """An equirectangular label: pixels per degree, and the row and column of latitude and longitude of the origin."""

    per_lat: float
    per_lon: float
    row: float  # 0 is the middle of the first row
    column: float
    lats: Sequence[float]  # latitudes that `row` may mean: the equator, or the centre of the projection
    lon: float


def make_grid(path: Path, bounds: Sequence[float], width: int, height: int, radius: float) -> Grid:
    """The grid between these edges; those within half a pixel of a pole, or of a whole turn, lie there exactly."""
    west, south, east, north = bounds
    if east <= west:
        east += 360  # across the date line
    if abs(east - west - 360) < 180 / width:
        east = west + 360
    north, south = (edge if abs(abs(edge) - 90) >= 90 / height else np.sign(edge) * 90.0 for edge in (north, south))
    if not (west < east <= west + 360 and -90 <= south < north <= 90):
        raise refuse(
            path,
            "has bounds that cannot be those of a map",
            "west, south, east, north in degrees, at most one turn wide",
            ", ".join(f"{value:g}" for value in bounds),
            "give the right ones: --bounds WEST,SOUTH,EAST,NORTH",
        )
    return Grid(west, east, float(south), float(north), width, height, radius)


def place_cylinder(path: Path, label: Cylinder, bounds: Bounds | None, width: int, height: int, radius: float) -> Grid:
    """The grid by the offsets of a label, or by its `bounds` if they fit the raster."""
    norths = [lat + (label.row + 0.5) / label.per_lat for lat in label.lats]
    west = label.lon - (label.column + 0.5) / label.per_lon
    east = west + width / label.per_lon
    if bounds is None:
        if max(norths) - min(norths) > ALLOWED / label.per_lat:
            raise refuse(
                path,
                "does not say from where its rows are counted",
                "bounds in the label, or a projection whose centre lies on the equator",
                f"centre at latitude {label.lats[-1]:g}, no bounds",
                "give the bounds: --bounds WEST,SOUTH,EAST,NORTH",
            )
        return make_grid(path, (west, norths[0] - height / label.per_lat, east, norths[0]), width, height, radius)
    own_west, own_south, own_east, own_north = bounds
    own_east += 360 * (own_east <= own_west)
    north = min(norths, key=lambda edge: abs(edge - own_north) + abs(edge - height / label.per_lat - own_south))
    fits_down = abs((own_north - own_south) * label.per_lat - height) < 1
    fits_across = abs((own_east - own_west) * label.per_lon - width) < 1
    aside = abs((west - own_west + 180) % 360 - 180) * label.per_lon
    if (fits_down and abs(north - own_north) * label.per_lat > ALLOWED) or (fits_across and aside > ALLOWED):
        raise refuse(
            path,
            "contradicts itself: its offsets and its bounds are different places",
            f"offsets within {ALLOWED:g} pixels of the bounds",
            f"west {west:g}, north {north:g} by the offsets; west {own_west:g}, north {own_north:g} by the bounds",
            "find out which are right, and give the bounds: --bounds WEST,SOUTH,EAST,NORTH",
        )
    south, north = (own_south, own_north) if fits_down else (north - height / label.per_lat, north)
    west, east = (own_west, own_east) if fits_across else (west, east)
    return make_grid(path, (west, south, east, north), width, height, radius)


def place_pole(
    is_north: bool, meridian: float, scale: float, row: float, column: float, width: int, height: int, radius: float
) -> PolarGrid:
    """The grid around a pole; one within a pixel of the middle of the raster lies there exactly."""
    middle = (height - 1) / 2, (width - 1) / 2
    if abs(row - middle[0]) <= 1 and abs(column - middle[1]) <= 1:
        row, column = middle
    return PolarGrid(is_north, meridian, scale, row, column, width, height, radius)


def choose_radius(path: Path, own: float | None, given: float | None) -> float:
    """Metres: the radius that the user gives, or else the map's own; they may not be those of two globes."""
    if own is not None and given is not None and abs(own / given - 1) > SAME_GLOBE:
        raise refuse(
            path,
            "is of another globe",
            f"a radius of about {given / 1000:g} km, as given",
            f"{own / 1000:g} km",
            "check --body or --radius, or leave them out: the map names its own globe",
        )
    found = given if given is not None else own
    if found is None:
        raise refuse(
            path,
            "does not say which globe it is of",
            "its radius",
            "a file without one",
            "--body moon, --body mars … or --radius KM",
        )
    return found


def check_size(path: Path, width: int, height: int) -> None:
    if not (0 < width < LARGEST and 0 < height < LARGEST):
        raise refuse(
            path,
            "has a size that no map has",
            f"1 to {LARGEST - 1:,} rows and columns",
            f"{width:,} × {height:,}",
            "replace it by an intact copy",
        )


def read_whole(path: Path, kind: str, name: str, text: str, default: int | None = None) -> int:
    """A whole number, 0 or more, as a label writes it: 12, "12", 12.0 or 12 <BYTES>; `default` if there is none."""
    if default is not None and text.strip('" ').upper() in ABSENT:
        return default
    found = WHOLE.match(text)
    if not found:
        raise refuse_format(path, kind, f"its {name} is {text[:40] or 'missing'}")
    return int(found[1])


def refuse_format(path: Path, kind: str, actual: str) -> ManifestError:
    """`kind` is PDS3 or PDS4."""
    return refuse(
        path,
        f"cannot be read as {kind}",
        "an uncompressed 2D image, Equirectangular, Simple Cylindrical or Polar Stereographic, north up",
        actual,
        "convert it: gdalwarp -t_srs '+proj=longlat +R=RADIUS' LABEL map.tif; a GeoTIFF needs the extra geo",
    )


def refuse(path: Path, problem: str, expected: str, actual: str, fix: str) -> ManifestError:
    return ManifestError(f"the map {path} {problem}", expected=expected, actual=actual[:300], fix=fix)

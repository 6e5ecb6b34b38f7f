"""A map with a PDS3 label in, a map that is read row by row out (`open_pds3`).

    map.lbl + map.img       a label that names its raster: ^IMAGE = "MAP.IMG"; the raster lies beside it
    map.img                 the raster of such a label, or a file that begins with its own: ^IMAGE = 3

Understood: EQUIRECTANGULAR, SIMPLE CYLINDRICAL and POLAR STEREOGRAPHIC; integers of 8 to 32 bits and IEEE numbers, of
either byte order; the first band. Longitudes that grow to the west become ones that grow to the east. The raster's file
is looked for in the label's folder only. "Planetary Data System Standards Reference", version 3.8.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from resight.data.maps.map_image import MapGrid
from resight.data.maps.map_label import (
    Bounds,
    Cylinder,
    check_size,
    choose_radius,
    make_grid,
    place_cylinder,
    place_pole,
    read_whole,
    refuse,
    refuse_format,
)
from resight.data.maps.raster_file import Raster, RasterMap, fit_constant
from resight.errors import ManifestError
from resight.files.inside import resolve_inside

KIND = "PDS3"
LONGEST = 1 << 18  # bytes of a label
STATEMENT = re.compile(r'[ \t]*(\^?[A-Za-z][\w:]*)\s*=\s*("[^"]*"|\([^)]*\)|\{[^}]*\}|[^\r\n]*)')
UNIT = re.compile(r"<\s*([^>]*?)\s*>")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
CYLINDERS = ("EQUIRECTANGULAR", "SIMPLE_CYLINDRICAL", "EQUIDISTANT_CYLINDRICAL", "EQUIRECTANGULAR_CYLINDRICAL")
LITTLE, BIG = ("LSB", "PC", "VAX"), ("MSB", "SUN", "MAC", "IEEE")
KINDS = {"UNSIGNED_INTEGER": "u", "INTEGER": "i", "REAL": "f"}
SIZES = {"UNSIGNED_INTEGER": (8, 16, 32), "INTEGER": (8, 16, 32), "REAL": (32, 64)}  # bits
MISSING = ("MISSING_CONSTANT", "MISSING", "INVALID_CONSTANT", "NULL", "CORE_NULL")
SATURATED = tuple(
    f"{core}{end}_{kind}_SATURATION" for core in ("", "CORE_") for end in ("LOW", "HIGH") for kind in ("REPR", "INSTR")
)
Section = Mapping[str, str]


def open_pds3(path: Path, bounds: tuple[float, ...], radius: float | None) -> RasterMap:
    """`path` is the label, or a raster with a label of its own."""
    label = read_label(path)
    image = label.get("IMAGE", {})
    raster = _find_raster(path, label.get("", {}), image)
    grid = _find_grid(path, label, raster.width, raster.height, bounds, radius)
    return RasterMap(raster, grid)


def read_label(path: Path) -> dict[str, dict[str, str]]:
    """Object → keyword → value as written; keywords outside of objects are those of "". The first of a name counts."""
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST).decode("latin-1")
    except OSError as error:
        raise refuse(path, "cannot be read", "a PDS3 label", str(error), "check the path") from error
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    end = re.search(r"^[ \t]*END[ \t]*\r?$", text, re.MULTILINE)
    if end is None:
        raise refuse(
            path, "has no PDS3 label", f"a label that ends within {LONGEST:,} bytes", "no END", "give its label (.lbl)"
        )
    label: dict[str, dict[str, str]] = {"": {}}
    inside = [""]
    for found in STATEMENT.finditer(text, 0, end.start()):
        name, value = found[1].upper(), found[2].strip()
        if name in ("OBJECT", "GROUP"):
            inside.append(value.strip('"').upper())
            label.setdefault(inside[-1], {})
        elif name in ("END_OBJECT", "END_GROUP"):
            inside = inside[:-1] or [""]
        else:
            label[inside[-1]].setdefault(name, value)
    return label


def _find_raster(path: Path, top: Section, image: Section) -> Raster:
    pointer = top.get("^IMAGE") or image.get("^IMAGE", "")
    if not (image and pointer):
        raise refuse(path, "has a label without an image", "^IMAGE and an object IMAGE", "none", "give another file")
    name = re.search(r'"([^"]*)"', pointer)
    file = _find_file(path, name[1]) if name else path
    if top.get("ENCODING_TYPE", image.get("ENCODING_TYPE", "N/A")).strip('"').upper() not in ("N/A", "NONE"):
        raise refuse_format(path, KIND, "its image is compressed")
    rest = pointer.replace(name[0], "") if name else pointer
    start = NUMBER.search(rest)
    unit = UNIT.search(rest)
    in_bytes = unit and unit[1].upper().startswith("BYTE")
    record = 1 if in_bytes else read_whole(path, KIND, "RECORD_BYTES", top.get("RECORD_BYTES", ""), 1)
    offset = (int(float(start[0])) - 1) * record if start else 0
    width, height = (read_whole(path, KIND, keyword, image.get(keyword, "")) for keyword in ("LINE_SAMPLES", "LINES"))
    check_size(path, width, height)
    dtype = _find_type(path, image)
    bands = read_whole(path, KIND, "BANDS", image.get("BANDS", ""), 1)
    storage = image.get("BAND_STORAGE_TYPE", "").strip('"').upper()
    between = bands if storage == "SAMPLE_INTERLEAVED" else 1
    rows = bands if storage == "LINE_INTERLEAVED" else 1
    around = [
        read_whole(path, KIND, keyword, image.get(keyword, ""), 0)
        for keyword in ("LINE_PREFIX_BYTES", "LINE_SUFFIX_BYTES")
    ]
    row_bytes = rows * (width * between * dtype.itemsize + sum(around))
    if min(offset, bands - 1, *around) < 0 or bands > 1000:
        raise refuse_format(path, KIND, "its label has numbers without sense")
    keywords = MISSING if dtype.itemsize == 1 else (*MISSING, *SATURATED)
    constants = [fit_constant(image[keyword], dtype) for keyword in keywords if keyword in image]
    missing = tuple(value for value in constants if value is not None)
    return Raster(file, offset + around[0], width, height, row_bytes, dtype, missing, between)


def _find_file(path: Path, name: str) -> Path:
    """The raster beside its label; labels write names in capitals, whatever the file has."""
    tried = [
        resolve_inside(path.parent, one, what="the raster of the map", error=ManifestError, links=True)
        for one in dict.fromkeys((name, name.lower(), name.upper(), path.stem + Path(name).suffix.lower()))
    ]
    found = next((one for one in tried if one.is_file()), None)
    if found is None:
        raise refuse(path, "has no raster", f"{name} beside the label", "no such file", "put both into one folder")
    if found.suffix.lower() in (".jp2", ".tif", ".tiff"):
        raise refuse_format(path, KIND, f"its raster is {found.name}")
    return found


def _find_type(path: Path, image: Section) -> np.dtype[np.generic]:
    written = image.get("SAMPLE_TYPE", "").strip('"').upper()
    bits = read_whole(path, KIND, "SAMPLE_BITS", image.get("SAMPLE_BITS", ""))
    order, _, kind = written.partition("_")
    if order not in LITTLE + BIG:  # UNSIGNED_INTEGER alone is big-endian
        order, kind = "MSB", written
    if bits not in SIZES.get(kind, ()) or written == "VAX_REAL":
        raise refuse_format(path, KIND, f"its numbers are {written or 'of no type'} of {bits} bits")
    return np.dtype(f"{'<' if order in LITTLE else '>'}{KINDS[kind]}{bits // 8}")


def _find_grid(
    path: Path, label: Mapping[str, Section], width: int, height: int, given: tuple[float, ...], radius: float | None
) -> MapGrid:
    about = label.get("IMAGE_MAP_PROJECTION") or label.get("IMAGE_MAP_PROJECTION_CATALOG") or {}
    own = _read_length(about, "A_AXIS_RADIUS")
    metres = choose_radius(path, own, radius)
    if given:
        return make_grid(path, given, width, height, metres)
    projection = about.get("MAP_PROJECTION_TYPE", "").strip('"').upper().replace(" ", "_")
    east = -1.0 if "WEST" in about.get("POSITIVE_LONGITUDE_DIRECTION", "").upper() else 1.0
    row, column = (_read_number(about, f"{axis}_PROJECTION_OFFSET") for axis in ("LINE", "SAMPLE"))
    lat, lon = (_read_number(about, f"CENTER_{axis}") for axis in ("LATITUDE", "LONGITUDE"))
    scale = _read_length(about, "MAP_SCALE", 1000.0)
    density = _read_number(about, "MAP_RESOLUTION") or (np.pi * metres / 180 / scale if scale else None)
    if projection not in (*CYLINDERS, "POLAR_STEREOGRAPHIC") or _read_number(about, "MAP_PROJECTION_ROTATION"):
        turned = f", turned by {about.get('MAP_PROJECTION_ROTATION', '0')}"
        raise refuse_format(path, KIND, f"its projection is {projection or 'not given'}{turned}")
    if row is None or column is None or lat is None or lon is None or not density:
        raise refuse_format(path, KIND, "its label lacks offsets, centre or resolution")
    if projection == "POLAR_STEREOGRAPHIC":
        if abs(lat) != 90:
            raise refuse_format(path, KIND, f"its stereographic projection is centred at latitude {lat:g}")
        metres_each = scale or np.pi * metres / 180 / density
        return place_pole(lat > 0, east * lon, metres_each, row, column, width, height, metres)
    across = density * float(np.cos(np.radians(lat)))
    lats = (0.0,) if lat == 0 else (0.0, lat)
    return place_cylinder(
        path, Cylinder(density, across, row, column, lats, east * lon), _read_bounds(about, east), width, height, metres
    )


def _read_bounds(about: Section, east: float) -> Bounds | None:
    names = ("WESTERNMOST_LONGITUDE", "MINIMUM_LATITUDE", "EASTERNMOST_LONGITUDE", "MAXIMUM_LATITUDE")
    found = [_read_number(about, name) for name in names]
    west, south, right, north = found
    if west is None or south is None or right is None or north is None:
        return None
    west, right = east * west, east * right
    if right <= west:
        right += 360
    return west, south, right, north


def _read_number(section: Section, keyword: str) -> float | None:
    found = NUMBER.match(section.get(keyword, "").strip('"'))
    return float(found[0]) if found else None


def _read_length(section: Section, keyword: str, default: float = 1000.0) -> float | None:
    """Metres, or metres per pixel; lengths without a unit are in kilometres."""
    value = _read_number(section, keyword)
    if not value or value <= 0:
        return None
    unit = UNIT.search(section[keyword])
    name = unit[1].upper() if unit else ""
    return value * (1.0 if name.startswith("M") and not name.startswith("MI") else default)

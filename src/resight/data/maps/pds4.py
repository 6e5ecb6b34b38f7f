"""A map with a PDS4 label (XML) in, a map that is read row by row out (`open_pds4`).

    map.xml + map.img       the label names its raster, which lies beside it

Understood: Array_2D_Image, or the first band of an Array_3D_Image or Array_3D_Spectrum whose bands come first; integers
of 8 to 32 bits and IEEE numbers; Equirectangular (also as Simple Cylindrical) and Polar Stereographic, or no projection
but bounding coordinates. Longitudes that grow to the west become ones that grow to the east. "PDS4 Cartography
Discipline Data Dictionary", namespace `cart`.
"""

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
from resight.data.maps.xml_label import Node, read_xml
from resight.errors import ManifestError
from resight.files.inside import resolve_inside

KIND = "PDS4"
ARRAYS = ("Array_2D_Image", "Array_2D_Map", "Array_2D", "Array_3D_Image", "Array_3D_Spectrum")
TYPES = {
    "UnsignedByte": "u1",
    "SignedByte": "i1",
    **{f"Unsigned{order}{size}": f"{sign}u{size}" for order, sign in (("LSB", "<"), ("MSB", ">")) for size in (2, 4)},
    **{f"Signed{order}{size}": f"{sign}i{size}" for order, sign in (("LSB", "<"), ("MSB", ">")) for size in (2, 4)},
    **{f"IEEE754{order}Single": f"{sign}f4" for order, sign in (("LSB", "<"), ("MSB", ">"))},
    **{f"IEEE754{order}Double": f"{sign}f8" for order, sign in (("LSB", "<"), ("MSB", ">"))},
}
MISSING = ("missing_constant", "invalid_constant", "not_applicable_constant", "unknown_constant")
SATURATED = tuple(f"{end}_{kind}_saturation" for end in ("low", "high") for kind in ("representation", "instrument"))
CYLINDERS = ("equirectangular", "simple cylindrical", "equidistant cylindrical")
SMALLEST = 20_000.0  # metres: no mapped globe is smaller
METRES = {"m": 1.0, "km": 1000.0, "m/pixel": 1.0, "km/pixel": 1000.0, "": 1.0}


def open_pds4(path: Path, bounds: tuple[float, ...], radius: float | None) -> RasterMap:
    """`path` is the label."""
    label = read_xml(path)
    raster = _find_raster(path, label)
    return RasterMap(raster, _find_grid(path, label, raster.width, raster.height, bounds, radius))


def _find_raster(path: Path, label: Node) -> Raster:
    area = label.find("File_Area_Observational", "File_Area_Ancillary", "File_Area_Browse") or label
    array = area.find(*ARRAYS)
    name = area.read("file_name")
    if array is None or not name:
        raise refuse(path, "has a label without an image", " or ".join(ARRAYS[:2]), "none", "give another label")
    file = resolve_inside(path.parent, name, what="the raster of the map", error=ManifestError, links=True)
    if not file.is_file():
        raise refuse(path, "has no raster", f"{name} beside the label", "no such file", "put both into one folder")
    lengths = {}
    for axis in array.find_all("Axis_Array"):
        lengths[axis.read("axis_name").lower()] = read_whole(path, KIND, "elements", axis.read("elements"))
    order = array.read("axis_index_order", "Last Index Fastest").lower()
    width, height = lengths.pop("sample", 0), lengths.pop("line", 0)
    check_size(path, width, height)
    kind = array.read("data_type")
    first = array.find("Axis_Array")
    bands_first = not lengths or (first is not None and first.read("axis_name").lower() in lengths)
    if kind not in TYPES or order != "last index fastest" or not bands_first or len(lengths) > 1:
        axes = ", ".join(axis.read("axis_name") for axis in array.find_all("Axis_Array"))
        raise refuse_format(path, KIND, f"data type {kind or 'missing'}, axes {axes}, {order}")
    dtype = np.dtype(TYPES[kind])
    names = MISSING if dtype.itemsize == 1 else (*MISSING, *SATURATED)
    constants = [fit_constant(array.read(one), dtype) for one in names]
    missing = tuple(value for value in constants if value is not None)
    offset = read_whole(path, KIND, "offset", array.read("offset"), 0)
    return Raster(file, offset, width, height, width * dtype.itemsize, dtype, missing)


def _find_grid(
    path: Path, label: Node, width: int, height: int, given: tuple[float, ...], radius: float | None
) -> MapGrid:
    own = _read_number(label, "a_axis_radius", "semi_major_radius")
    if own is not None and own < SMALLEST:  # kilometres without a unit
        own *= 1000
    metres = choose_radius(path, own, radius)
    if given:
        return make_grid(path, given, width, height, metres)
    east = -1.0 if "west" in label.read("longitude_direction").lower() else 1.0
    bounds = _read_bounds(label, east)
    projection = label.read("map_projection_name").lower()
    left, top = _read_number(label, "upperleft_corner_x"), _read_number(label, "upperleft_corner_y")
    scale = _read_number(label, "pixel_resolution_x"), _read_number(label, "pixel_resolution_y")
    if not projection or (projection in CYLINDERS and None in (left, top, *scale)):
        if bounds is None:
            raise refuse_format(
                path, KIND, "neither a projection with its corner and resolution nor bounding coordinates"
            )
        return make_grid(path, bounds, width, height, metres)
    if left is None or top is None or not scale[0] or not scale[1]:
        raise refuse_format(path, KIND, f"{projection} without upper left corner or pixel resolution")
    lon = east * (_read_number(label, "longitude_of_central_meridian", "straight_vertical_longitude_from_pole") or 0)
    lat = _read_number(label, "latitude_of_projection_origin") or 0
    if projection in CYLINDERS:
        degree = np.pi * (own or metres) / 180
        parallel = np.cos(np.radians(_read_number(label, "standard_parallel_1") or 0))
        per_lat, per_lon = degree / scale[1], degree * float(parallel) / scale[0]
        lats = (0.0,) if lat == 0 else (0.0, lat)
        cylinder = Cylinder(per_lat, per_lon, top / scale[1] - 0.5, -left / scale[0] - 0.5, lats, lon)
        return place_cylinder(path, cylinder, bounds, width, height, metres)
    if projection == "polar stereographic" and abs(scale[0] / scale[1] - 1) < 1e-6:
        is_north = lat > 0 if lat else bounds is not None and bounds[3] > 0
        if abs(lat) not in (0, 90):
            raise refuse_format(path, KIND, f"a stereographic projection centred at latitude {lat:g}")
        return place_pole(is_north, lon, scale[0], top / scale[0] - 0.5, -left / scale[0] - 0.5, width, height, metres)
    raise refuse_format(path, KIND, f"its projection is {projection}")


def _read_bounds(label: Node, east: float) -> Bounds | None:
    box = label.find("Bounding_Coordinates")
    if box is None:
        return None
    names = ("west", "south", "east", "north")
    found = [_read_number(box, f"{name}_bounding_coordinate") for name in names]
    west, south, right, north = found
    if west is None or south is None or right is None or north is None:
        return None
    west, right = east * west, east * right
    return west, south, right + 360 * (right <= west), north


def _read_number(label: Node, *names: str) -> float | None:
    """In metres, if it is a length."""
    node = label.find(*names)
    try:
        value = float(node.text) if node else None
    except ValueError:
        return None
    if value is None or not np.isfinite(value) or node is None:
        return None
    return value * METRES.get(node.unit.lower(), 1.0)

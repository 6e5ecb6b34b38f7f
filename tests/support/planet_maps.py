"""Maps of a small globe with discs for craters, in every format, projection and convention, each with its label."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

RADIUS = 1737.4  # km
CRATERS = {  # lon, lat, diameter in km
    "a": (10.0, 0.0, 300.0),
    "edge": (179.5, 20.0, 260.0),
    "north": (-100.0, 70.0, 240.0),
    "pole": (30.0, 87.0, 260.0),
    "south": (-60.0, -85.0, 280.0),
}
GROUND, INSIDE = 70, 200
DENSITY = 4  # pixels per degree


def paint(lats: NDArray[np.float64], lons: NDArray[np.float64]) -> NDArray[np.uint8]:
    """INSIDE within a crater's radius, along great circles, else GROUND."""
    image = np.full(np.broadcast_shapes(lats.shape, lons.shape), GROUND, np.uint8)
    for lon, lat, diameter in CRATERS.values():
        centre = np.radians(lat)
        cosines = np.sin(np.radians(lats)) * np.sin(centre)
        cosines = cosines + np.cos(np.radians(lats)) * np.cos(centre) * np.cos(np.radians(lons - lon))
        image[np.arccos(np.clip(cosines, -1, 1)) * RADIUS < diameter / 2] = INSIDE
    return image


def paint_cylinder(
    west: float = -180.0, east: float = 180.0, south: float = -90.0, north: float = 90.0, across: float = DENSITY
) -> NDArray[np.uint8]:
    """An equirectangular map, `across` pixels per degree of longitude."""
    height, width = round((north - south) * DENSITY), round((east - west) * across)
    lats = north - (np.arange(height) + 0.5) / DENSITY
    lons = west + (np.arange(width) + 0.5) * ((east - west) / width)
    return paint(lats[:, None], lons[None])


def paint_pole(is_north: bool, meridian: float, side: int = 400, scale: float = 7.6) -> NDArray[np.uint8]:
    """A stereographic map around a pole, `scale` km per pixel there."""
    x, down = np.meshgrid((np.arange(side) + 0.5 - side / 2) * scale, (np.arange(side) + 0.5 - side / 2) * scale)
    away = np.degrees(2 * np.arctan(np.hypot(x, down) / (2 * RADIUS)))
    if is_north:
        return paint(90 - away, meridian + np.degrees(np.arctan2(x, down)))
    return paint(away - 90, meridian + np.degrees(np.arctan2(x, -down)))


def write_catalogue(path: Path, named: Callable[[str], bool] = lambda _: True) -> Path:
    lines = [f"{id},{lat},{lon},{diameter}" for id, (lon, lat, diameter) in CRATERS.items() if named(id)]
    path.write_text("\n".join(["CRATER_ID,LAT_CIRC_IMG,LON_CIRC_IMG,DIAM_CIRC_IMG", *lines]))
    return path


def write_image(path: Path) -> Path:
    cv2.imwrite(str(path), paint_cylinder())
    return path


def write_pds3(
    path: Path, pixels: NDArray[np.generic], image: str, projection: str, pointer: str = "", top: str = ""
) -> Path:
    """A detached label, and the raster beside it."""
    path.with_suffix(".img").write_bytes(pixels.tobytes())
    path.write_text(label_pds3(pixels, image, projection, pointer or f'"{path.stem.upper()}.IMG"', top))
    return path


def label_pds3(pixels: NDArray[np.generic], image: str, projection: str, pointer: str, top: str = "") -> str:
    lines = [
        "PDS_VERSION_ID = PDS3",
        '/* a comment = "1" */',
        top,
        f"^IMAGE = {pointer}",
        'DESCRIPTION = "several\n  LINES = 5\nof text"',
        "OBJECT = IMAGE",
        f"  LINES = {pixels.shape[0]}",
        f"  LINE_SAMPLES = {pixels.shape[1]}",
        image,
        "END_OBJECT = IMAGE",
        "OBJECT = IMAGE_MAP_PROJECTION",
        "  A_AXIS_RADIUS = 1737.4 <KM>",
        projection,
        "END_OBJECT = IMAGE_MAP_PROJECTION",
        "END",
        "",
    ]
    return "\r\n".join(lines)


def project_pds3(kind: str = "SIMPLE CYLINDRICAL", **keywords: object) -> str:
    """Lines of a label for the whole globe, from -180 degrees; keywords replace or remove (None) them."""
    known: dict[str, object] = {
        "MAP_PROJECTION_TYPE": f'"{kind}"',
        "CENTER_LATITUDE": "0.0 <DEG>",
        "CENTER_LONGITUDE": "0.0 <DEG>",
        "POSITIVE_LONGITUDE_DIRECTION": "EAST",
        "MAP_RESOLUTION": f"{DENSITY}.0 <PIXEL/DEGREE>",
        "MAXIMUM_LATITUDE": 90.0,
        "MINIMUM_LATITUDE": -90.0,
        "WESTERNMOST_LONGITUDE": -180.0,
        "EASTERNMOST_LONGITUDE": 180.0,
        "LINE_PROJECTION_OFFSET": 359.5,
        "SAMPLE_PROJECTION_OFFSET": 719.5,
        "MAP_PROJECTION_ROTATION": 0.0,
        **keywords,
    }
    return "\r\n".join(f"  {name} = {value}" for name, value in known.items() if value is not None)


PDS4 = """<?xml version="1.0" encoding="UTF-8"?>
{doctype}<Product_Observational xmlns="http://pds.nasa.gov/pds4/pds/v1" xmlns:cart="http://pds.nasa.gov/pds4/cart/v1">
 <Discipline_Area><cart:Cartography>{cart}</cart:Cartography></Discipline_Area>
 <File_Area_Observational>
  <File><file_name>{file}</file_name></File>
  <Array_2D_Image>
   <offset unit="byte">{offset}</offset>
   <axis_index_order>Last Index Fastest</axis_index_order>
   <Element_Array><data_type>{kind}</data_type></Element_Array>
   <Axis_Array><axis_name>Line</axis_name><elements>{height}</elements></Axis_Array>
   <Axis_Array><axis_name>Sample</axis_name><elements>{width}</elements></Axis_Array>
   {special}
  </Array_2D_Image>
 </File_Area_Observational>
</Product_Observational>
"""
BOUNDS4 = """<cart:Bounding_Coordinates>
 <cart:west_bounding_coordinate unit="deg">{west}</cart:west_bounding_coordinate>
 <cart:east_bounding_coordinate unit="deg">{east}</cart:east_bounding_coordinate>
 <cart:north_bounding_coordinate unit="deg">90</cart:north_bounding_coordinate>
 <cart:south_bounding_coordinate unit="deg">-90</cart:south_bounding_coordinate>
</cart:Bounding_Coordinates>"""
PROJECTION4 = """<cart:Map_Projection><cart:map_projection_name>{name}</cart:map_projection_name>
 <cart:longitude_of_central_meridian unit="deg">{lon}</cart:longitude_of_central_meridian>
 <cart:latitude_of_projection_origin unit="deg">{lat}</cart:latitude_of_projection_origin>{more}
</cart:Map_Projection>
<cart:pixel_resolution_x unit="m/pixel">{scale}</cart:pixel_resolution_x>
<cart:pixel_resolution_y unit="m/pixel">{scale}</cart:pixel_resolution_y>
<cart:upperleft_corner_x unit="m">{left}</cart:upperleft_corner_x>
<cart:upperleft_corner_y unit="m">{top}</cart:upperleft_corner_y>"""
GLOBE4 = """<cart:a_axis_radius unit="km">1737.4</cart:a_axis_radius>
<cart:longitude_direction>{direction}</cart:longitude_direction>"""


def write_pds4(
    path: Path,
    pixels: NDArray[np.generic],
    cart: str,
    kind: str = "UnsignedByte",
    special: str = "",
    direction: str = "Positive East",
    doctype: str = "",
) -> Path:
    """A label and the raster beside it, 100 bytes into its file."""
    path.with_suffix(".dat").write_bytes(bytes(100) + pixels.tobytes())
    height, width = pixels.shape
    about = cart + GLOBE4.format(direction=direction)
    text = PDS4.format(
        cart=about, file=f"{path.stem}.dat", offset=100, kind=kind, height=height, width=width, special=special,
        doctype=doctype,
    )  # fmt: skip
    path.write_text(text)
    return path

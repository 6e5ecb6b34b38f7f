"""Where a crater lies, on its globe and in a crop of it: attributes of a stored image in, a CraterView out.

The makers of crops (`crater_map`, `moon`, `moonbench`, `resight craters`) store these attributes:

    label           the crater's id in its catalogue
    crater_lat      degrees; not `lat`, which every other module takes for a position on the Earth
    crater_lon      degrees, in the catalogue's convention (-180 to 180 or 0 to 360)
    diameter_km     of the crater
    view            "3x": the crop is a square of three diameters, with the crater in its middle
    radius_km       of the globe; the Moon's without it

Two circles on a globe are compared in the plane that touches it between them: craters are small against their globe.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import acos, asin, cos, hypot, pi, radians, sin, sqrt

from resight.geodesy import find_number
from resight.types import Attribute

MOON_KM = 1737.4


@dataclass(frozen=True)
class Circle:
    """Centre and radius, in any one unit."""

    x: float
    y: float
    radius: float

    def iou(self, other: "Circle") -> float:
        """Intersection over union of the two discs, 0 to 1."""
        shared = overlap_area(hypot(self.x - other.x, self.y - other.y), self.radius, other.radius)
        return shared / (pi * (self.radius**2 + other.radius**2) - shared)


@dataclass(frozen=True)
class CraterView:
    label: str
    lat: float
    lon: float
    diameter_km: float
    view: float  # side of the crop in diameters; 0: unknown
    radius_km: float = MOON_KM  # of the globe

    def outline(self, size: tuple[int, int]) -> Circle | None:
        """The crater's circle in pixels of a crop of this width and height; None if the crop's side is unknown."""
        width, height = size
        return Circle(width / 2, height / 2, min(size) / (2 * self.view)) if self.view else None

    def distance_km(self, other: "CraterView") -> float:
        """Great-circle distance of the centres, on this view's globe (haversine)."""
        lats = radians(self.lat), radians(other.lat)
        half = sin((lats[1] - lats[0]) / 2) ** 2
        half += cos(lats[0]) * cos(lats[1]) * sin(radians(other.lon - self.lon) / 2) ** 2
        return 2 * self.radius_km * asin(sqrt(min(half, 1.0)))

    def circle_iou(self, other: "CraterView") -> float:
        """Intersection over union of the two craters' discs on the globe."""
        here, there = Circle(0, 0, self.diameter_km / 2), Circle(self.distance_km(other), 0, other.diameter_km / 2)
        return here.iou(there)


def read_crater_view(attributes: Mapping[str, Attribute]) -> CraterView | None:
    """None unless position and diameter are known and valid."""
    lat, lon = find_number(attributes, "crater_lat"), find_number(attributes, "crater_lon")
    diameter, globe = find_number(attributes, "diameter_km"), find_number(attributes, "radius_km") or MOON_KM
    if lat is None or lon is None or diameter is None or abs(lat) > 90 or abs(lon) > 360 or min(diameter, globe) <= 0:
        return None
    return CraterView(str(attributes.get("label", "")), lat, lon, diameter, read_side(attributes.get("view")), globe)


def overlap_area(distance: float, one: float, two: float) -> float:
    """Area that two discs of radii `one` and `two` share, at this distance of their centres."""
    if distance >= one + two:
        return 0.0
    small, large = sorted((one, two))
    if distance <= large - small:
        return pi * small**2
    area = 0.0
    for radius, other in ((one, two), (two, one)):
        along = (distance**2 + radius**2 - other**2) / (2 * distance)  # from the centre to the chord
        angle = acos(max(-1.0, min(1.0, along / radius)))
        area += radius**2 * (angle - sin(angle) * cos(angle))
    return area


def read_side(view: Attribute | None) -> float:
    """'3x' → 3; 0 for anything else."""
    text = str(view or "")
    try:
        side = float(text.removesuffix("x")) if text.endswith("x") else 0.0
    except ValueError:
        return 0.0
    return side if 0 < side < 1000 else 0.0

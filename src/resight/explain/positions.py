"""Positions on the Earth: attributes of images in, latitude and longitude out; and how distances are written."""

from collections.abc import Mapping
from math import isfinite

from resight.geodesy import metres_between
from resight.types import Attribute

Position = tuple[float, float]  # latitude and longitude in degrees


def find_position(attributes: Mapping[str, Attribute]) -> Position | None:
    """Latitude and longitude of an image, where both are known and possible."""
    lat, lon = find_number(attributes, "lat"), find_number(attributes, "lon")
    return None if lat is None or lon is None or abs(lat) > 90 or abs(lon) > 180 else (lat, lon)


def find_number(attributes: Mapping[str, Attribute], name: str) -> float | None:
    """An attribute that is a finite number."""
    value = attributes.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        return None
    return float(value)


def measure(first: Position, second: Position) -> float:
    """Metres between two positions."""
    return float(metres_between(*first, [second[0]], [second[1]])[0])


def say_metres(metres: float) -> str:
    """24.6 m, 40 m, 1.5 km, 120 km: as exact as a reader wants it."""
    if round(metres) < 1000:
        digits = 0 if metres >= 30 or metres == round(metres) else 1
        return f"{metres:.{digits}f}\u00a0m"
    thousands = metres / 1000
    digits = 0 if thousands >= 99.95 or round(thousands, 1) == round(thousands) else 1
    return f"{thousands:,.{digits}f}\u00a0km"


def say_position(position: Position) -> str:
    """52.50989° N, 13.28172° E: about a metre."""
    lat, lon = position
    return f"{abs(lat):.5f}° {'S' if lat < 0 else 'N'}, {abs(lon):.5f}° {'W' if lon < 0 else 'E'}"

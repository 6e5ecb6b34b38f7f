"""Filters: conditions on attributes, and a circle on the map.

In: text such as "year>=1900", and (latitude, longitude, metres). Out: Conditions and Circles, which `holds` checks for
one image and a column for all images at once. A condition is "name=value", "name!=value", "name<value", "name<=value",
"name>value" or "name>=value"; it compares numbers if both sides are numbers, and text otherwise. An image without the
attribute meets no condition on it.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.geodesy import find_position, metres_between
from resight.types import Attribute

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
Near = tuple[float, float, float]  # latitude, longitude, metres
ALIASES: Mapping[str, str] = {
    "diameter": "diameter_km"
}  # name in a condition → the attribute, where it has no such name
CONDITION = re.compile(r"\s*([^!<>=\s][^!<>=]*?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    name: str
    sign: str
    value: str

    def holds(self, attributes: Mapping[str, Attribute]) -> bool:
        actual, wanted = find_value(attributes, self.name), read_number(self.value)
        if actual is None:
            return False
        if isinstance(actual, bool):
            return OPERATORS[self.sign](str(actual).lower(), self.value.lower())
        number = read_number(str(actual))
        if wanted is None or number is None:
            return OPERATORS[self.sign](str(actual), self.value)
        return OPERATORS[self.sign](number, wanted)


@dataclass(frozen=True)
class Circle:
    lat: float
    lon: float
    metres: float

    def holds(self, attributes: Mapping[str, Attribute]) -> bool:
        position = find_position(attributes)
        return position is not None and bool(
            metres_between(self.lat, self.lon, [position[0]], [position[1]])[0] <= self.metres
        )


Filter = Condition | Circle


def parse(where: Sequence[str] = (), near: Near | None = None) -> tuple[Filter, ...]:
    """Filters from conditions and from (lat, lon, metres)."""
    filters: list[Filter] = []
    for text in where:
        found = CONDITION.fullmatch(text)
        if found is None:
            raise InputError(
                f"cannot read the condition {text!r}",
                expected="name=value, or one of != < <= > >=",
                actual=text,
                fix='e.g. "label=Mona Lisa" or "year>=1900"',
            )
        filters.append(Condition(*found.groups()))
    if near is not None:
        lat, lon, metres = near if len(near) == 3 else (math.nan,) * 3
        if not (-90 <= lat <= 90 and -180 <= lon <= 180 and metres > 0):
            raise InputError(
                "not a circle on the map",
                expected="latitude -90..90, longitude -180..180 and a radius above 0 metres",
                actual=", ".join(map(str, near)),
                fix="e.g. 48.8584,2.2945,500",
            )
        filters.append(Circle(lat, lon, metres))
    return tuple(filters)


def find_value(attributes: Mapping[str, Attribute], name: str) -> Attribute | None:
    """The attribute that a condition names; None if the image has none."""
    value = attributes.get(name)
    return attributes.get(ALIASES[name]) if value is None and name in ALIASES else value


def read_number(text: str) -> float | None:
    """Text as a finite number, or None; "nan" and "inf" are text here."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


Rows = Iterable[Mapping[str, Attribute]]


@dataclass(frozen=True)
class Column:
    """One attribute of many images: each distinct value is held, and compared, once."""

    codes: NDArray[np.int64]  # [n] the number of each image's value; images without one have the last number
    texts: NDArray[np.object_]  # [v] str; of a boolean in lower case
    numbers: NDArray[np.float64]  # [v]; NaN: not a number
    truths: NDArray[np.bool_]  # [v] whether it is a boolean, compared without regard to case

    def meet(self, condition: Condition) -> NDArray[np.bool_]:
        compare = OPERATORS[condition.sign]
        met = np.zeros(len(self.texts) + 1, bool)
        met[:-1] = compare(self.texts, condition.value)
        met[:-1][self.truths] = compare(self.texts[self.truths], condition.value.lower())
        wanted = read_number(condition.value)
        if wanted is not None:
            are_numbers = ~np.isnan(self.numbers)
            met[:-1][are_numbers] = compare(self.numbers[are_numbers], wanted)
        return np.asarray(met[self.codes])


@dataclass(frozen=True)
class PositionColumn:
    """Where images were taken, of those that have a position."""

    total: int  # images, with and without a position
    rows: NDArray[np.int64]  # [n] of the images with one
    lats: NDArray[np.float64]  # [n] degrees
    lons: NDArray[np.float64]  # [n] degrees

    def meet(self, circle: Circle) -> NDArray[np.bool_]:
        found = np.zeros(self.total, bool)
        found[self.rows[metres_between(circle.lat, circle.lon, self.lats, self.lons) <= circle.metres]] = True
        return found


def make_column(rows: Rows, name: str) -> Column:
    held = [find_value(attributes, name) for attributes in rows]
    # By type too: True, 1 and 1.0 are equal, and are not the same value.
    kinds = {key: code for code, key in enumerate({(type(value), value): None for value in held if value is not None})}
    texts = np.empty(len(kinds), object)
    texts[:] = [str(value).lower() if kind is bool else str(value) for kind, value in kinds]
    numbers = [None if kind is bool else read_number(str(value)) for kind, value in kinds]
    return Column(
        np.array([len(kinds) if value is None else kinds[type(value), value] for value in held], np.int64),
        texts,
        np.array([np.nan if number is None else number for number in numbers], np.float64),
        np.array([kind is bool for kind, _ in kinds], bool),
    )


def make_position_column(rows: Rows) -> PositionColumn:
    positions = [find_position(attributes) for attributes in rows]
    known = [row for row, position in enumerate(positions) if position is not None]
    lats, lons = np.array([position for position in positions if position], np.float64).reshape(-1, 2).T
    return PositionColumn(len(positions), np.array(known, np.int64), lats, lons)

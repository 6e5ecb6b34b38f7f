"""Which images take part in a search: conditions on attributes, and a circle on the map.

A condition is "name=value", "name!=value", "name<value", "name<=value", "name>value" or "name>=value"; the
value is compared as a number where both sides are numbers. An image without the attribute never passes.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
CONDITION = re.compile(r"\s*([^!<>=\s][^!<>=]*?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    name: str
    sign: str
    value: str

    def holds(self, attributes: Mapping[str, Attribute]) -> bool:
        if self.name not in attributes:
            return False
        actual, wanted = attributes[self.name], read_number(self.value)
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


def parse(where: Sequence[str] = (), near: tuple[float, float, float] | None = None) -> tuple[Filter, ...]:
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


def read_number(text: str) -> float | None:
    """A text as a finite number; None where it is none: "nan" and "inf" are texts here."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None

"""Filters: conditions on attributes, and a circle on the map.

In: text such as "year>=1900", and (latitude, longitude, metres). Out: Conditions and Circles, and groups of them, which
`holds` checks for one image and a column for all images at once. A condition is "name=value", "name!=value",
"name<value", "name<=value", "name>value", "name>=value", "name IN (value, value)" or "name NOT IN (…)". AND, OR (in
capitals) and parentheses join conditions; AND binds closer. Quotes around a value keep such words and commas in it.

A condition compares numbers if both sides are numbers, and text otherwise. An image without the attribute meets no
condition on it.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, did_you_mean
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
# Lists of values may be long: no pattern here takes more than time in proportion to the length of the text.
OPERATOR = re.compile(r"\s(NOT\s+IN|IN)(?=\s*\()|(!=|<=|>=|=|<|>|!)\s*")
SPACE = re.compile(r"\s*")
WORD = re.compile(r"\s+(AND|OR)(?=[\s(])")
QUOTED = re.compile(r"""\s*("[^"]*"|'[^']*')(?=\s*(?:$|[,)])|\s+(?:AND|OR)[\s(])""")
COMMA = re.compile(r"\s*,")
SMALL_WORD = re.compile(r"\s(?:and|or)\s+[^!<>=\s]")
LAST_WORD = re.compile(r"\s(?:AND|OR)$")
SIGN = re.compile(r"!=|[<>=]")
NAMED = 30  # attributes that an error lists
DEEPEST = 20  # parentheses within each other
SHOWN = 200  # letters of a text in an error


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


@dataclass(frozen=True)
class Group:
    """Several filters: `all` of them must be met, or any one."""

    parts: "tuple[Filter, ...]"
    all: bool

    def holds(self, attributes: Mapping[str, Attribute]) -> bool:
        return (all if self.all else any)(part.holds(attributes) for part in self.parts)


Filter = Condition | Circle | Group


def parse(where: Sequence[str] = (), near: Near | None = None) -> tuple[Filter, ...]:
    """Filters from conditions and from (lat, lon, metres)."""
    filters: list[Filter] = []
    for text in where:
        parsed = _Parser(text).parse()
        filters += parsed.parts if isinstance(parsed, Group) and parsed.all else [parsed]
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


class _Parser:
    """Recursive descent over one text: OR of AND of conditions and groups in parentheses."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0  # of parentheses

    def parse(self) -> Filter:
        found = self._read_any()
        if rest := self._text[self._at :].strip():
            raise self._refuse(f"{rest[:SHOWN]!r} after a whole condition")
        return found

    def _read_any(self) -> Filter:
        return self._read_joined("OR", self._read_all)

    def _read_all(self) -> Filter:
        return self._read_joined("AND", self._read_one)

    def _read_joined(self, word: str, read: Callable[[], Filter]) -> Filter:
        parts = [read()]
        while (found := WORD.match(self._text, self._at)) and found[1] == word:
            self._at = found.end()
            parts.append(read())
        return parts[0] if len(parts) == 1 else Group(tuple(parts), word == "AND")

    def _read_one(self) -> Filter:
        if not self._accept("("):
            return self._read_condition()
        found = self._read_any()
        self._close()
        return found

    def _read_condition(self) -> Filter:
        found = OPERATOR.search(self._text, self._at)
        name = self._text[self._at : found.start()].strip() if found else ""
        if found is None or name[:1] in ("", "(", ")") or found[2] == "!":
            raise self._refuse(f"no comparison in {self._text[self._at :].strip()[:SHOWN]!r}")
        self._at = found.end()
        if found[2]:
            return Condition(name, found[2], self._read_value(""))
        self._accept("(")
        values = [self._read_value(",")]
        while comma := COMMA.match(self._text, self._at):
            self._at = comma.end()
            values.append(self._read_value(","))
        self._close()
        excluded = found[1].startswith("NOT")
        parts = tuple(Condition(name, "!=" if excluded else "=", value) for value in values)
        return parts[0] if len(parts) == 1 else Group(parts, excluded)

    def _read_value(self, separator: str) -> str:
        """A value in quotes, or up to AND, OR, `separator` or the end of a group; it may hold pairs of parentheses."""
        if quoted := QUOTED.match(self._text, self._at):
            self._at = quoted.end()
            return quoted[1][1:-1]
        begin, depth = self._at, 0
        while self._at < len(self._text):
            letter = self._text[self._at]
            is_end = letter == separator or (letter == ")" and self._depth > 0) or WORD.match(self._text, self._at)
            if depth == 0 and is_end:
                break
            depth = max(0, depth + {"(": 1, ")": -1}.get(letter, 0))
            self._at = self._skip_space(self._at) if letter.isspace() else self._at + 1
        value = self._text[begin : self._at].strip()
        word = SMALL_WORD.search(f" {value}")
        if word and SIGN.search(value, word.end() - 1):
            raise self._refuse(f"the value {value[:SHOWN]!r}, which holds a condition", "write AND and OR in capitals")
        if LAST_WORD.search(value):
            raise self._refuse(f"nothing after {value.split()[-1]}", "add a condition, or put the value in quotes")
        return value

    def _accept(self, letter: str) -> bool:
        """Whether the next letter is this parenthesis, which is then read."""
        at = self._skip_space(self._at)
        if self._text[at : at + 1] != letter:
            return False
        self._at = at + 1
        self._depth += 1 if letter == "(" else -1
        if self._depth > DEEPEST:
            raise self._refuse(f"more than {DEEPEST} parentheses within each other")
        return True

    def _skip_space(self, at: int) -> int:
        found = SPACE.match(self._text, at)
        return found.end() if found else at

    def _close(self) -> None:
        if not self._accept(")"):
            raise self._refuse("a parenthesis that is not closed")

    def _refuse(self, actual: str, fix: str = "") -> InputError:
        return InputError(
            f"cannot read the condition {self._text[:SHOWN]!r}",
            expected="name=value, or one of != < <= > >=, or name IN (value, value); joined by AND, OR and parentheses",
            actual=actual,
            fix=fix or 'e.g. "year>=1900" or "city IN (Rome, Paris)"; quotes keep AND, OR and commas in a value',
        )


def refuse_name(name: str, known: Iterable[str]) -> InputError:
    """The error for a condition on an attribute that no image has."""
    names = sorted(known)
    return InputError(
        f"no image has the attribute {name!r}",
        expected=f"one of {', '.join(names[:NAMED])}{' …' if len(names) > NAMED else ''}"
        if names
        else "a collection whose images have attributes: labels in a manifest, positions in EXIF",
        actual=name,
        fix=did_you_mean(name, [*names, *ALIASES], "`resight ls COLLECTION --attributes` lists the attributes"),
    )


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

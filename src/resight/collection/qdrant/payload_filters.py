"""Filters of a search → conditions of Qdrant, and the payload fields that they test.

`Condition.holds` compares numbers as numbers, even if they are written as text, and booleans without regard to case. So
beside the `attributes` themselves, the payload has `numbers` (all that read as one) and `truths` ("true", "false").
Qdrant cannot order text: a condition that needs it is refused, by name.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from resight.errors import InputError
from resight.geodesy import find_position
from resight.index.qdrant_backend.backend import FieldKind
from resight.search.filters import ALIASES, Circle, Condition, Filter, Group, read_number, refuse_name
from resight.types import Attribute

NUMBER, TEXT, TRUTH = "number", "text", "truth"
BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


def translate(filters: Sequence[Filter], kinds: Mapping[str, Sequence[str]]) -> Any:
    """A `qdrant_client.models.Filter`; None without conditions. `kinds`: attribute → the kinds of its values."""
    from qdrant_client import models

    if not filters:
        return None
    return models.Filter(must=[_translate(_resolve(one, kinds), kinds) for one in filters])


def make_fields(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    """The fields that conditions test, for the payload of an image."""
    numbers = {name: _find_number(value) for name, value in attributes.items()}
    position = find_position(attributes)
    return {
        "attributes": {name: _make_plain(value) for name, value in attributes.items()},
        "numbers": {name: number for name, number in numbers.items() if number is not None},
        "truths": {name: str(value).lower() for name, value in attributes.items() if isinstance(value, bool)},
        **({"position": {"lat": position[0], "lon": position[1]}} if position else {}),
    }


def find_kind(value: Attribute) -> str:
    return TRUTH if isinstance(value, bool) else TEXT if _find_number(value) is None else NUMBER


def list_fields(kinds: Mapping[str, Sequence[str]]) -> dict[str, FieldKind]:
    """The fields that Qdrant should index."""
    fields: dict[str, FieldKind] = {"position": "geo"}
    for name, found in kinds.items():
        if '"' in name:
            continue
        if NUMBER in found:
            fields[_name_field("numbers", name)] = "float"
        if TEXT in found:
            fields[_name_field("attributes", name)] = "keyword"
        if TRUTH in found:
            fields[_name_field("truths", name)] = "keyword"
    return fields


def _resolve(one: Filter, kinds: Mapping[str, Sequence[str]]) -> Filter:
    """The filter with the names that the images have; InputError where none has an attribute of that name."""
    if isinstance(one, Group):
        return Group(tuple(_resolve(part, kinds) for part in one.parts), one.all)
    if isinstance(one, Circle) or one.name in kinds or not kinds:
        return one
    name = ALIASES.get(one.name, one.name)
    if name not in kinds:
        raise refuse_name(one.name, kinds)
    return replace(one, name=name)


def _translate(one: Filter, kinds: Mapping[str, Sequence[str]]) -> Any:
    from qdrant_client import models

    if isinstance(one, Group):
        parts = [_translate(part, kinds) for part in one.parts]
        return models.Filter(must=parts) if one.all else models.Filter(should=parts)
    if isinstance(one, Circle):
        centre = models.GeoPoint(lat=one.lat, lon=one.lon)
        return models.FieldCondition(key="position", geo_radius=models.GeoRadius(center=centre, radius=one.metres))
    if '"' in one.name:
        raise _refuse(one, "Qdrant has no way to name an attribute with a quotation mark")
    if one.sign in BOUNDS:
        return _bound(one, kinds.get(one.name, ()))
    if one.sign == "=":
        return _equal(one)
    there = models.IsEmptyCondition(is_empty=models.PayloadField(key=_name_field("attributes", one.name)))
    return models.Filter(must_not=[there, _equal(one)])


def _bound(one: Condition, kinds: Sequence[str]) -> Any:
    from qdrant_client import models

    wanted = read_number(one.value)
    if wanted is None:
        raise _refuse(one, "Qdrant cannot order texts")
    if TEXT in kinds or TRUTH in kinds:
        raise _refuse(one, f"some images have a {one.name!r} that is no number, and Qdrant cannot order texts")
    return models.FieldCondition(key=_name_field("numbers", one.name), range=models.Range(**{BOUNDS[one.sign]: wanted}))


def _equal(one: Condition) -> Any:
    from qdrant_client import models

    wanted = read_number(one.value)
    if wanted is not None:
        return models.FieldCondition(key=_name_field("numbers", one.name), range=models.Range(gte=wanted, lte=wanted))
    texts = [("attributes", one.value), ("truths", one.value.lower())]
    return models.Filter(
        should=[
            models.FieldCondition(key=_name_field(field, one.name), match=models.MatchValue(value=text))
            for field, text in texts
        ]
    )


def _refuse(one: Condition, why: str) -> InputError:
    return InputError(
        f"the condition {one.name}{one.sign}{one.value} cannot be put to Qdrant",
        expected="= and != of anything, and < <= > >= of attributes that are numbers in every image",
        actual=why,
        fix="leave out the condition, or search without --engine",
    )


def _name_field(field: str, name: str) -> str:
    return f'{field}."{name}"'


def _find_number(value: Attribute) -> float | None:
    return None if isinstance(value, bool) else read_number(str(value))


def _make_plain(value: Attribute) -> Attribute:
    """JSON has no NaN and no infinity; conditions compare both as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value

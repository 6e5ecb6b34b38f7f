"""Attributes that a client sends (JSON) in, checked ones out.

Names are text without the signs that conditions are made of; values are text, numbers or truth. null leaves a name
out. `lat` and `lon` come together, in degrees.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Never

from resight.apps.service.upload_ids import is_plain_text
from resight.errors import InputError
from resight.types import Attribute

MOST, LONGEST_NAME, LONGEST_TEXT = 50, 64, 2000
LARGEST = 2**53  # beyond it, numbers in JSON are not exact everywhere
RESERVED = {"box": "a part of an image is added with a manifest"}
DEGREES = {"lat": 90.0, "lon": 180.0}
SIGNS = "!<>="  # of conditions such as "year>=1900"


def read_attributes_of_files(text: str, names: Sequence[str]) -> list[dict[str, Attribute]]:
    """Those of each file by its name, from one object for all of them or from {file name: object}."""
    given = _parse(text)
    if not given or not all(isinstance(value, dict) for value in given.values()):
        return [check_attributes(given)] * len(names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise _refuse("attributes for files that were not sent", "names of the files that were sent", unknown[0])
    return [check_attributes(given.get(name, {})) for name in names]


def read_attributes(text: str) -> dict[str, Attribute]:
    """Those of one image."""
    return check_attributes(_parse(text))


def check_attributes(given: Mapping[str, Any]) -> dict[str, Attribute]:
    said = {name: value for name, value in given.items() if value is not None}
    if len(said) > MOST:
        raise _refuse("too many attributes", f"at most {MOST}", str(len(said)))
    for name, value in said.items():
        _check_name(name)
        _check_value(name, value)
    if ("lat" in said) != ("lon" in said):
        raise _refuse("half a position", "both lat and lon, or neither", "one of them")
    return said


def _parse(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text, parse_constant=_refuse_constant) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _refuse("the attributes are not JSON", 'an object such as {"label": "crater"}', str(error)) from error
    if not isinstance(given, dict):
        raise _refuse("the attributes are not an object", 'such as {"label": "crater"}', type(given).__name__)
    return given


def _check_name(name: str) -> None:
    if name in RESERVED:
        raise _refuse(f"{name!r} is not for clients", "another name", RESERVED[name])
    clean = name.strip() == name and 0 < len(name) <= LONGEST_NAME and is_plain_text(name)
    if not clean or any(sign in name for sign in SIGNS):
        expected = f"1 to {LONGEST_NAME} characters, none of {' '.join(SIGNS)}, no control character"
        raise _refuse("an attribute's name cannot be used", expected, repr(name[:80]))


def _check_value(name: str, value: Any) -> None:
    if name in DEGREES:
        limit = DEGREES[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= limit:
            raise _refuse(f"{name} is out of range", f"degrees from {-limit:g} to {limit:g}", repr(value)[:80])
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT or not is_plain_text(value.replace("\n", "").replace("\t", "")):
            expected = f"at most {LONGEST_TEXT:,} characters, no control character"
            raise _refuse(f"the text of {name!r} cannot be used", expected, f"{len(value):,} characters")
    elif not isinstance(value, (int, float)):
        raise _refuse(f"{name!r} holds a {type(value).__name__}", "text, a number, true or false", repr(value)[:80])
    elif (isinstance(value, int) and abs(value) > LARGEST) or not math.isfinite(value):
        raise _refuse(f"the number {name!r} is out of range", f"at most {LARGEST:,} either way", repr(value)[:80])


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _refuse(problem: str, expected: str, actual: str) -> InputError:
    return InputError(problem, expected=expected, actual=actual[:200], fix="correct the attributes and send it again")

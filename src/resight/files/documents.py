"""JSON and TOML from elsewhere: bytes or text in, plain tables and lists out, within bounds.

`json.loads` and `tomllib.loads` follow nesting by recursion, so that a file of brackets ends in a RecursionError, there
or in the code that walks the result. Here a document has at most `DEPTH` levels and `most` bytes; whatever breaks a
bound or the syntax leaves as one error of the caller's choice, with the problem "{what} cannot be read".
"""

import json
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

from resight.errors import InputError, ResightError

DEPTH = 64  # levels of tables and lists
LARGEST = 1 << 30  # bytes; a caller that expects a small document says so


def parse_json(
    data: bytes | str,
    *,
    what: str,
    error: type[ResightError] = InputError,
    most: int = LARGEST,
    fix: str = "",
    constants: bool = True,
) -> Any:
    """A JSON document in UTF-8 (with or without a byte order mark); `constants=False` refuses NaN and Infinity."""
    load = json.loads if constants else partial(json.loads, parse_constant=_refuse_constant)
    return _parse(data, load, "JSON", what, error, most, fix)


def parse_toml(
    data: bytes | str, *, what: str, error: type[ResightError] = InputError, most: int = LARGEST, fix: str = ""
) -> dict[str, Any]:
    """A TOML document in UTF-8."""
    table: dict[str, Any] = _parse(data, tomllib.loads, "TOML", what, error, most, fix)
    return table


def read_json(
    path: Path, *, what: str = "", error: type[ResightError] = InputError, most: int = LARGEST, fix: str = ""
) -> Any:
    """A JSON file; plain OSErrors pass through."""
    return parse_json(_read(path, most), what=what or str(path), error=error, most=most, fix=fix)


def read_table(
    path: Path, *, what: str = "", error: type[ResightError] = InputError, most: int = LARGEST, fix: str = ""
) -> dict[str, Any]:
    """A JSON file that holds a table (an object)."""
    found = read_json(path, what=what, error=error, most=most, fix=fix)
    return require_table(found, what=what or str(path), error=error, fix=fix)


def require_table(value: Any, *, what: str, error: type[ResightError] = InputError, fix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _refuse(error, what, "a table of keys and values", f"a {type(value).__name__}", fix)
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most + 1)


def _parse(data: bytes | str, load: Any, kind: str, what: str, error: type[ResightError], most: int, fix: str) -> Any:
    if len(data) > most:
        raise _refuse(error, what, f"at most {most:,} bytes", "more", fix)
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        found = load(text)
    except RecursionError:
        raise _refuse(error, what, f"at most {DEPTH} levels", "far more levels of nesting", fix) from None
    except ValueError as problem:  # JSONDecodeError, TOMLDecodeError, UnicodeDecodeError, a number of 5,000 digits
        raise _refuse(error, what, f"valid {kind} in UTF-8", str(problem)[:200], fix) from problem
    if (
        text.count("[") + text.count("{") + text.count(".") > DEPTH
        and isinstance(found, (dict, list))
        and _is_deep(found)
    ):
        raise _refuse(error, what, f"at most {DEPTH} levels", "more levels of nesting", fix)
    return found


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH):
        parts = (part for item in level for part in (item.values() if isinstance(item, dict) else item))
        level = [part for part in parts if isinstance(part, (dict, list))]
        if not level:
            return False
    return True


def _refuse(error: type[ResightError], what: str, expected: str, actual: str, fix: str) -> ResightError:
    return error(f"{what} cannot be read", expected=expected, actual=actual, fix=fix or "correct the file")

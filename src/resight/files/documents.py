"""JSON and TOML from elsewhere: bytes or text in, plain tables and lists out, within bounds.

`json.loads` and `tomllib.loads` follow nesting by recursion, so that a file of brackets ends in a RecursionError, there
or in the code that walks the result. Here a document has at most `DEPTH` levels. `load_json` and `load_toml` raise a
ValueError, for callers that word their own errors; `parse_json` and `read_…` also bound the size, and raise an error of
the caller's choice with the problem "{what} cannot be read".
"""

import json
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from resight.errors import InputError, ResightError

DEPTH = 64  # levels of tables and lists
TOO_DEEP = f"more than {DEPTH} levels of nesting"
LARGEST = 1 << 30  # bytes; a caller that expects a small document says so


def load_json(data: bytes | str, constants: bool = True) -> Any:
    """`json.loads` with a bounded depth: a ValueError for whatever it refuses; `constants=False` refuses NaN."""
    text = _decode(data)
    return _check_depth(_load(text, json.loads if constants else partial(json.loads, parse_constant=_refuse)), text)


def load_toml(data: bytes | str) -> dict[str, Any]:
    """`tomllib.loads` with a bounded depth: a ValueError for whatever it refuses."""
    text = _decode(data)
    table: dict[str, Any] = _check_depth(_load(text, tomllib.loads), text)
    return table


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
    with _translate(data, what, error, most, fix):
        return load_json(data, constants)


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
        actual = f"a {type(value).__name__}"
        raise error(f"{what} cannot be read", expected="a table of keys and values", actual=actual, fix=fix)
    return value


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most + 1)


def _decode(data: bytes | str) -> str:
    return data.decode("utf-8-sig") if isinstance(data, bytes) else data


def _load(text: str, load: Callable[[str], Any]) -> Any:
    try:
        return load(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def _check_depth(found: Any, text: str) -> Any:
    """Walk the document only if it has marks enough to be too deep."""
    level = [found] if isinstance(found, (dict, list)) else []
    if text.count("[") + text.count("{") + text.count(".") <= DEPTH:
        return found
    for _ in range(DEPTH):
        parts = (part for item in level for part in (item.values() if isinstance(item, dict) else item))
        level = [part for part in parts if isinstance(part, (dict, list))]
    if level:
        raise ValueError(TOO_DEEP)
    return found


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


@contextmanager
def _translate(data: bytes | str, what: str, error: type[ResightError], most: int, fix: str) -> Iterator[None]:
    fix, problem = fix or "correct the file", f"{what} cannot be read"
    if len(data) > most:
        raise error(problem, expected=f"at most {most:,} bytes", actual="more", fix=fix)
    try:
        yield
    except ValueError as reason:  # JSONDecodeError, TOMLDecodeError, UnicodeDecodeError, a number of 5,000 digits
        raise error(problem, expected="valid JSON in UTF-8", actual=str(reason)[:200], fix=fix) from reason

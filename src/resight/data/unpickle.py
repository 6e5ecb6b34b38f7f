"""Restricted unpickling (`load`): a pickle file in, plain values out; no code that the pickle names is imported or run.

A pickle is a program: it may name any function of any package and call it. `load` accepts only the names that plain
data needs (sets, and numpy's arrays, dtypes and scalars), and maps even these to the constructors below instead of
numpy's own functions. It refuses every other name. `take_names` and `take_numbers` then read lists out of a table.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import ManifestError
from resight.files.restricted_pickle import ForbiddenName, load_restricted

FETCH = "download it again; `resight data check` shows from where"
ARRAY = "numpy.ndarray"  # stands for the class, which a pickle passes on and must not call


def load(path: Path) -> Any:
    """The value in a pickle file: containers, text, numbers and numpy arrays, nested in any way."""
    try:
        data = path.read_bytes()
    except OSError as error:
        actual = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise _refuse(path, "cannot be read", "a readable file", actual, FETCH) from error
    try:
        # latin1 preserves the bytes that Python 2 wrote, numpy's arrays included.
        return load_restricted(io.BytesIO(data), NAMES, encoding="latin1")
    except ForbiddenName as error:
        expected = "containers, text, numbers and numpy arrays"
        fix = "do not open it by other means: a data set never needs to run code; download it again from its makers"
        raise _refuse(path, "is not plain data", expected, str(error), fix) from error
    except Exception as error:  # a damaged pickle may raise any of them
        actual = f"{type(error).__name__}: {error}"
        raise _refuse(path, "is damaged", "a whole pickle", actual, FETCH) from error


def take_names(table: Any, key: str, path: Path) -> list[str]:
    """The list of strings that `table` has under `key`."""
    values = _take_list(table, key, path)
    if not all(isinstance(value, str) for value in values):
        raise _refuse_key(path, key, "a list of names", f"{values!r:.100}")
    return [str(value) for value in values]


def take_numbers(table: Any, key: str, path: Path, below: int) -> list[int]:
    """The list of whole numbers in [0, below) that `table` has under `key`."""
    values = _take_list(table, key, path)
    for value in values:
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or not 0 <= value < below:
            raise _refuse_key(path, key, f"whole numbers from 0 to {below - 1:,}", repr(value))
    return [int(value) for value in values]


def _take_list(table: Any, key: str, path: Path) -> list[Any]:
    if not isinstance(table, Mapping) or key not in table:
        found = ", ".join(map(str, table)) if isinstance(table, Mapping) else type(table).__name__
        raise _refuse_key(path, key, f"a table with {key!r}", found[:200])
    values = table[key]
    if isinstance(values, np.ndarray):
        values = values.ravel().tolist()
    if not isinstance(values, (list, tuple)):
        raise _refuse_key(path, key, "a list", type(values).__name__)
    return list(values)


def _make_empty_array(kind: str, shape: Any, dtype: Any) -> NDArray[Any]:  # noqa: ARG001
    """An array whose shape and content the pickle sets in its next step."""
    if kind != ARRAY:
        raise ForbiddenName(f"it needs an array of class {kind!r}")
    return np.empty(0, np.uint8)


def _make_array(data: Any, dtype: Any, shape: Any, order: str) -> NDArray[Any]:
    return np.frombuffer(data, dtype).reshape(shape, order="F" if order == "F" else "C")


def _make_scalar(dtype: Any, data: Any) -> Any:
    return np.frombuffer(data.encode("latin1") if isinstance(data, str) else data, dtype, count=1)[0]


def _make_dtype(code: Any, *_: Any) -> Any:
    """A copy, since the pickle sets its byte order in its next step and numpy shares its own dtypes."""
    if not isinstance(code, str):
        raise ForbiddenName(f"it gives a dtype as {type(code).__name__}")
    return np.dtype(code, copy=True)


def _make_bytes(text: str, encoding: str) -> bytes:
    """Python 3 writes bytes in this way in the protocols of Python 2."""
    if encoding != "latin1":
        raise ForbiddenName(f"it needs the encoding {encoding!r}")
    return text.encode("latin1")


NAMES: Mapping[str, Any] = {
    ARRAY: ARRAY,
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "numpy.dtype": _make_dtype,
    "numpy.core.multiarray._reconstruct": _make_empty_array,
    "numpy.core.multiarray.scalar": _make_scalar,
    "numpy.core.numeric._frombuffer": _make_array,
    "_codecs.encode": _make_bytes,
}


def _refuse(path: Path, problem: str, expected: str, actual: str, fix: str) -> ManifestError:
    return ManifestError(f"{path} {problem}", expected=expected, actual=actual[:300], fix=fix)


def _refuse_key(path: Path, key: str, expected: str, actual: str) -> ManifestError:
    return _refuse(path, f"has another form: {key!r}", expected, actual, FETCH)

"""Data frames of pandas and polars, for users who have one of them: columns in, a frame out, and back.

Neither is required. A frame is recognised by its methods, so that reading one imports nothing.
"""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from resight.errors import MissingExtra

LIBRARIES = ("pandas", "polars")


def make_frame(columns: Mapping[str, Sequence[Any]], library: str | None = None) -> Any:
    """A frame of pandas if it is installed, else of polars; `library` names one of them."""
    for name in [library] if library else LIBRARIES:
        if name in LIBRARIES and importlib.util.find_spec(name) is not None:
            return importlib.import_module(name).DataFrame({key: list(values) for key, values in columns.items()})
    raise MissingExtra(
        f"{library or 'a library for data frames'} is not installed",
        expected="pandas or polars",
        actual=library or "neither",
        fix="pip install pandas, or pip install polars",
    )


def is_frame(value: object) -> bool:
    """Whether this is a frame of pandas or polars, or a table of pyarrow."""
    return hasattr(value, "columns") and (hasattr(value, "to_dict") or hasattr(value, "to_pydict"))


def read_frame(frame: Any) -> dict[str, list[Any]]:
    """Name → the values of each column."""
    if hasattr(frame, "to_pydict"):  # pyarrow
        return {str(name): list(values) for name, values in frame.to_pydict().items()}
    return {str(name): frame[name].to_list() for name in frame.columns}

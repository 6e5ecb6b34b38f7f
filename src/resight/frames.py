"""Data frames of pandas and polars, for users who have one of them: columns in, a frame out. Neither is required."""

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

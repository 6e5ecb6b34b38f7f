"""Columns become frames of whatever library is there, and come back."""

import importlib.util

import pytest

from resight.errors import MissingExtra
from resight.frames import is_frame, make_frame, read_frame

COLUMNS = {"id": ["a", "b"], "probability": [0.5, None]}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_survive_both_ways(library: str) -> None:
    pytest.importorskip(library)
    frame = make_frame(COLUMNS, library)
    assert type(frame).__module__.startswith(library) and is_frame(frame)
    assert read_frame(frame)["id"] == ["a", "b"]


def test_without_either_the_fix_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match="pip install pandas, or pip install polars"):
        make_frame(COLUMNS)


def test_what_is_no_frame() -> None:
    assert not is_frame({"id": ["a"]}) and not is_frame(["a"]) and not is_frame("columns")

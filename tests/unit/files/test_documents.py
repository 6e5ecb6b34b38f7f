"""Bounds of JSON and TOML from elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

from resight.errors import CollectionError, InputError, ManifestError
from resight.files.documents import DEPTH, load_json, load_toml, parse_json, read_json, read_table

LEVELS = 100_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * LEVELS,
        "[" * LEVELS + "]" * LEVELS,
        '{"a":' * LEVELS + "1" + "}" * LEVELS,
        "[" * (DEPTH + 1) + "]" * (DEPTH + 1),
        '{"a": [' * DEPTH + "]}" * DEPTH,
        "",
        "{",
        '{"a": 1} x',
        "9" * 5000,
        b"\xff",
    ],
)
def test_json_that_breaks_a_bound_is_one_error(text: str | bytes) -> None:
    with pytest.raises(ManifestError, match="list cannot be read"):
        parse_json(text, what="list", error=ManifestError)


@pytest.mark.parametrize(
    "text",
    [
        f"a = {'[' * LEVELS}{']' * LEVELS}",
        f"a = {'{a = ' * 5000}1{'}' * 5000}",
        f"{'a.' * (DEPTH + 1)}a = 1",
        f"[{'a.' * (DEPTH + 1)}a]",
        "a = ",
        b"a = '\xff'",
    ],
)
def test_toml_that_breaks_a_bound_is_one_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        load_toml(text)


def test_ordinary_documents_are_read() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": [1, 2.5, null, "[[[["]}', what="x") == {"a": [1, 2.5, None, "[[[["]}
    assert parse_json("[" * DEPTH + "]" * DEPTH, what="x")
    assert parse_json('"' + "[" * 1000 + '"', what="x") == "[" * 1000
    assert load_toml("[a.b]\nc = [1, {d = 2}]") == {"a": {"b": {"c": [1, {"d": 2}]}}}


def test_files_are_read_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    assert read_table(path) == {"a": 1}
    with pytest.raises(InputError, match=r"a\.json cannot be read"):
        read_json(path, most=4)
    path.write_text("[]")
    with pytest.raises(CollectionError, match="a list"):
        read_table(path, error=CollectionError)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "b.json")


@pytest.mark.parametrize("load", [load_json, load_toml])
def test_loading_raises_value_errors_only(load: Callable[[str], object]) -> None:
    for text in ("[" * LEVELS, f"a = {'[' * LEVELS}", '{"a":' * LEVELS, f"{'a.' * 5000}a = 1", "\0"):
        with pytest.raises(ValueError):
            load(text)

"""Every reader of JSON or TOML from elsewhere answers odd documents with an error in words, never with a traceback."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resight import recipe
from resight.audit.review import recalibration, review
from resight.data import download_catalogue, manifest_rows, truth_tables
from resight.encode import heads
from resight.errors import ResightError
from resight.evaluate import summary_file
from resight.index.shards import shard_manifest
from resight.search import calibration
from resight.types import Choice

DEEP = 100_000
JSON = {
    "nested lists": "[" * DEEP,
    "nested tables": '{"a":' * DEEP,
    "nested beyond the bound": '{"a": [' * 400 + "]}" * 400,
    "a list": "[]",
    "a list of lists": "[[]]",
    "a number": "1e400",
    "numbers": '[{"bias": 1e400, "weights": {}, "pairs": 1e400, "same": 1e400}]',
    "null": "null",
    "nothing": "",
    "no text": "\udcff",
    "a long number": "9" * 5000,
}
TOML = {
    "nested lists": f"a = {'[' * DEEP}",
    "nested tables": f"a = {'{a = ' * 2000}1{'}' * 2000}",
    "nested keys": f"{'a.' * 5000}a = 1",
    "no TOML": "= 1",
    "no text": "\udcff",
    "no recipe": "branches = 1e400",
}


def read_review(path: Path) -> Any:
    path.rename(path.with_name(review.FILE))
    return review.read_settings(path.parent)


def read_shards(path: Path) -> Any:
    path.rename(path.with_name(shard_manifest.FILE))
    return shard_manifest.read_manifest(path.parent, Choice("exact"))


def read_manifest_lines(path: Path) -> Any:
    path.rename(path.with_suffix(".jsonl"))
    return list(manifest_rows.read_rows(path.with_suffix(".jsonl")))


READERS: dict[str, Callable[[Path], Any]] = {
    "calibration": calibration.load,
    "manifest": lambda path: list(manifest_rows.read_rows(path)),
    "manifest, line by line": read_manifest_lines,
    "review": read_review,
    "recalibration": recalibration.load_correction,
    "shards": read_shards,
    "truth": lambda path: truth_tables.read_json(path, "fix"),
    "summary": summary_file.read_values,
    "head": heads.load,
}
FINE = {("calibration", "a list"), ("manifest", "a list"), ("manifest, line by line", "nothing")}  # empty ones


@pytest.mark.parametrize("document", JSON)
@pytest.mark.parametrize("reader", READERS)
def test_odd_json_is_an_error_in_words(reader: str, document: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(JSON[document], encoding="utf-8", errors="surrogateescape")
    if (reader, document) in FINE or reader == "truth":
        with contextlib.suppress(ResightError):
            READERS[reader](path)
        return
    with pytest.raises(ResightError):
        READERS[reader](path)


@pytest.mark.parametrize("document", TOML)
@pytest.mark.parametrize(
    "read", [recipe.load, lambda path: download_catalogue.find_entry("a", path)], ids=["recipe", "downloads"]
)
def test_odd_toml_is_an_error_in_words(read: Callable[[Path], Any], document: str, tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text(TOML[document], encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ResightError):
        read(path)

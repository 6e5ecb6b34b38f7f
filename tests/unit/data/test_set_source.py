"""Data sets as sources: which texts name one, and which are paths."""

from pathlib import Path

import numpy as np
import pytest
from support.samples import revisited

from resight.data.set_source import SetSource, parse_source, suggest_set
from resight.errors import InputError, RecipeError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gldv2:data/gldv2", SetSource("gldv2", (), Path("data/gldv2"))),
        ("gldv2:/data", SetSource("gldv2", (), Path("/data"))),
        ("gldv2:C:/data", SetSource("gldv2", (), Path("C:/data"))),
        ("folder,labels=true:photos", SetSource("folder", ("labels=true",), Path("photos"))),
        (
            'msls,cities=["cph", "sf"],split=val:msls',
            SetSource("msls", ('cities=["cph", "sf"]', "split=val"), Path("msls")),
        ),
        (
            'ilias,distractors="a:b,c":data:x',  # in quotes nothing separates; of the rest the first colon does
            SetSource("ilias", ('distractors="a:b,c"',), Path("data:x")),
        ),
    ],
)
def test_name_settings_and_folder(text: str, expected: SetSource) -> None:
    assert parse_source(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "photos",
        "photos/a:b.jpg",
        "C:/photos",
        "C:\\photos",
        "s3://bucket/photos",
        "s3:/bucket/photos",
        "https://example.org/a.jpg",
        "file:///photos",
        "gldv2",
        "gldv2/train",
        "gldv3:data",
        "GLDV2:data",
        "folder,old/a.jpg",
        ":data",
        "",
    ],
)
def test_everything_else_is_a_path(text: str) -> None:
    assert parse_source(text) is None


def test_a_file_of_exactly_that_name_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_source("gldv2:data") is not None
    Path("gldv2:data").mkdir()
    assert parse_source("gldv2:data") is None


def test_a_name_without_a_folder_is_refused() -> None:
    with pytest.raises(InputError, match="names no folder") as refused:
        parse_source("gldv2:")
    assert "NAME:ROOT" in refused.value.expected


def test_a_misspelt_name_gets_a_suggestion() -> None:
    assert "gldv2" in suggest_set("gldv3:data")
    assert suggest_set("photos/a:b") == suggest_set("qqqq:data") == suggest_set("photos") == ""


def test_settings_reach_the_reader(tmp_path: Path) -> None:
    revisited.write(tmp_path, np.random.default_rng(0))
    found = parse_source(f"revisited,which=rparis6k:{tmp_path}")
    assert found is not None
    assert found.load().queries[0].id.startswith("paris_")
    for wrong in ("which=rome", "city=paris", "which"):
        source = parse_source(f"revisited,{wrong}:{tmp_path}")
        assert source is not None
        with pytest.raises(RecipeError):
            source.load()

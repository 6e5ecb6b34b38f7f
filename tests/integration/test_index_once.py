"""`resight index` walks its folder once and loads each network once, and a search loads each once."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.running import run
from support.scenes import write_scenes

from resight.collection import image_list
from resight.encode import backbones

LEARN = """
index = "bow_histogram"

[[branches]]
encoder = "sift"
descriptor = { name = "bow", codebook = "learn", words = 16 }
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a folder was walked, and each backbone built."""
    counted: Counter[str] = Counter()
    walk, build = image_list.walk, backbones.build

    def walk_counted(*words: Any) -> object:
        counted["walk"] += 1
        return walk(*words)

    def build_counted(name: str, **settings: object) -> object:
        counted[name] += 1
        return build(name, **settings)

    monkeypatch.setattr(image_list, "walk", walk_counted)
    monkeypatch.setattr(backbones, "build", build_counted)
    return counted


@pytest.mark.parametrize(
    "words", [[], ["--encoder", "sift"], ["--recipe", "learn.toml"]], ids=["usual", "sift", "learn"]
)
def test_one_walk_and_one_load_per_network(
    counts: Counter[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("learn.toml").write_text(LEARN)
    write_scenes(tmp_path / "photos", 4)
    for report in ("4 added", "4 unchanged"):
        counts.clear()
        assert report in run("index", "photos", "--into", "c.resight", *words).out
        assert counts.pop("walk") == 1
        assert counts and set(counts.values()) == {1}
    counts.clear()
    assert run("search", "c.resight", "photos/scene_02.jpg", "--json", "--set", "rerankers=[]").answer["hits"]
    assert set(counts.values()) == {1}

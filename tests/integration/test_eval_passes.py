"""How often a network runs: once a picture, however many descriptors ask, and never again with the cache."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.running import run
from support.scenes import write_views

from resight.encode.backbones import efficientnet_lite

POOLINGS = """
data = "manifest"
metrics = ["recall@1", "ap"]

[[branches]]
encoder = { name = "efficientnet_lite", size = 64 }

[branches.descriptor]
mean = { name = "pooled", pooling = "mean" }
max = { name = "pooled", pooling = "max" }
GeM = { name = "pooled", pooling = "gem" }
"""
TOKENS = (
    POOLINGS.partition("[branches.descriptor]")[0] + 'descriptor = { name = "aggregated", k = 4 }\nindex = "maxsim"\n'
)


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    write_views(folder, 4)
    (folder / "poolings.toml").write_text(POOLINGS)
    (folder / "tokens.toml").write_text(TOKENS)
    return folder


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each picture went through the network itself; the blank one that shows the layout left out."""
    seen: Counter[str] = Counter()
    extract = efficientnet_lite.EfficientNetLite.extract

    def count(self: Any, pictures: Any, scale: float = 1.0) -> Iterator[Any]:
        seen.update(picture.ref.id for picture in pictures if picture.ref.id != "blank")
        return extract(self, pictures, scale)

    monkeypatch.setattr(efficientnet_lite.EfficientNetLite, "extract", count)
    return seen


def test_all_poolings_come_from_one_pass_a_picture(views: Path, passes: Counter[str]) -> None:
    ran = run("eval", views / "poolings.toml", "--data", views, "--no-cache", "--json", views / "a.json")
    assert (ran.code, ran.err) == (0, "")
    assert len(json.loads((views / "a.json").read_text())["rows"]) == 3
    names = [f"{kind}_{scene}" for kind in ("scene", "view") for scene in range(4)]
    assert passes == Counter(names)


def test_another_descriptor_takes_no_pass_where_the_cache_knows_the_picture(
    views: Path, passes: Counter[str], tmp_path: Path
) -> None:
    cached = ("--data", views, "--cache", tmp_path / "features")
    assert run("eval", views / "poolings.toml", *cached).code == 0
    assert passes.total() == 8
    ran = run("eval", views / "tokens.toml", *cached, "--json", tmp_path / "tokens.json")
    assert (ran.code, passes.total()) == (0, 8)
    assert "8 images came from the cache of features" in ran.out
    plain = run("eval", views / "tokens.toml", "--data", views, "--no-cache", "--json", tmp_path / "plain.json")
    assert (plain.code, passes.total()) == (0, 16)
    first, second = (json.loads((tmp_path / name).read_text()) for name in ("tokens.json", "plain.json"))
    assert first["metrics"] == second["metrics"]
    assert (first["pictures_from_cache"], second["pictures_from_cache"]) == (8, 0)


def test_an_evaluation_that_was_stopped_goes_on_where_it_was(
    views: Path, passes: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = efficientnet_lite.EfficientNetLite.extract

    def stop(self: Any, pictures: Any, scale: float = 1.0) -> Iterator[Any]:
        if any(picture.ref.id == "view_2" for picture in pictures):
            raise KeyboardInterrupt
        return counting(self, pictures, scale)

    cached = ("--data", views, "--cache", tmp_path / "features")
    with monkeypatch.context() as patch:
        patch.setattr(efficientnet_lite.EfficientNetLite, "extract", stop)
        assert run("eval", views / "poolings.toml", *cached).code != 0
    done = passes.total()
    assert 4 <= done < 8
    assert run("eval", views / "poolings.toml", *cached).code == 0
    assert passes.total() == 8
    assert set(passes.values()) == {1}


def test_indexing_keeps_features_when_asked_to(views: Path, passes: Counter[str], tmp_path: Path) -> None:
    words = ("--recipe", views / "tokens.toml", "--cache", tmp_path / "features")
    assert run("index", views / "manifest.jsonl", "--into", tmp_path / "a.resight", *words).code == 0
    once = passes.total()
    assert run("index", views / "manifest.jsonl", "--into", tmp_path / "b.resight", *words).code == 0
    assert passes.total() == once > 0


def test_rows_that_were_measured_are_not_measured_again_and_new_ones_are(views: Path, tmp_path: Path) -> None:
    cached = ("--data", views, "--cache", tmp_path / "features", "--json", tmp_path / "a.json")
    assert run("eval", views / "poolings.toml", *cached).code == 0
    first = json.loads((tmp_path / "a.json").read_text())
    more = views / "more.toml"
    more.write_text(POOLINGS + 'signed = { name = "pooled", pooling = "gem", negative = "signed" }\n')
    ran = run("eval", more, *cached)
    assert ran.code == 0 and "3 of the rows were measured before" in ran.out
    second = json.loads((tmp_path / "a.json").read_text())
    assert [row["label"] for row in second["rows"]] == [*(row["label"] for row in first["rows"]), "signed"]
    for old, new in zip(first["rows"], second["rows"], strict=False):
        assert old["evaluation"]["metrics"] == new["evaluation"]["metrics"]
        assert old["evaluation"]["per_query"] == new["evaluation"]["per_query"]


def test_rankings_are_written_as_run_files_and_can_be_judged(views: Path, tmp_path: Path) -> None:
    words = ("--data", views, "--no-cache", "--json", tmp_path / "a.json")
    ran = run("eval", views / "tokens.toml", *words, "--run", tmp_path / "tokens.run")
    assert ran.code == 0 and "wrote" in ran.out
    figures = json.loads((tmp_path / "a.json").read_text())["metrics"]
    judged = run("judge", tmp_path / "tokens.run", "--data", views, "--recipe", views / "tokens.toml", "--json")
    assert judged.code == 0
    assert json.dumps(judged.answer).count(str(figures["ap"]["mean"])[:8])
    assert run("eval", views / "poolings.toml", *words, "--run", tmp_path / "runs").code == 0
    assert len(list((tmp_path / "runs").glob("*.run"))) == 3

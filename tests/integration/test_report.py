"""`resight eval` with strata and other light, and `resight report` over what it wrote."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg

RECIPE = """
data = "manifest"
metrics = ["recall@1", "ap"]

[[branches]]
encoder = "sift"
descriptor = "vlad"
"""
SCENES = 4


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four scenes with a year each, and a slanted view of each."""
    folder = tmp_path_factory.mktemp("views")
    rows: list[dict[str, object]] = []
    for scene in range(SCENES):
        write_jpeg(folder / f"scene_{scene}.jpg", draw_scene(scene))
        write_jpeg(folder / f"view_{scene}.jpg", look_at(draw_scene(scene)))
        rows.append({"id": f"scene_{scene}", "path": f"scene_{scene}.jpg", "year": 2000 + scene})
        truth = {"role": "query", "positives": [f"scene_{scene}"]}
        rows.append({"id": f"view_{scene}", "path": f"view_{scene}.jpg"} | truth)
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "vlad.toml").write_text(RECIPE)
    (folder / "asmk.toml").write_text(RECIPE.replace("vlad", "asmk") + '\n[index]\nname = "asmk_inverted"\n')
    return folder


def evaluate(views: Path, recipe: str, *words: object) -> tuple[str, dict[str, Any]]:
    file = views / f"{recipe}.json"
    ran = run("eval", views / f"{recipe}.toml", "--data", views, "--no-cache", "--json", file, *words)
    assert ran.code == 0, ran.err
    return ran.out, json.loads(file.read_text())


def test_strata_are_printed_kept_and_drawn(views: Path) -> None:
    out, values = evaluate(views, "vlad", "--strata", "brightness,year", "--bins", "2", "--html", views / "vlad.html")
    assert "By year" in out
    brightness, year = values["breakdowns"]
    assert [one["label"] for one in year["bins"]] == ["2000–2001", "2002–2003"]
    assert [one["positives"] for one in brightness["bins"]] == [2, 2]
    page = (views / "vlad.html").read_text()
    assert "Quality by brightness" in page
    assert 'class="map"' in page
    assert page.count("data:image/jpeg") >= SCENES  # every query is among the best or the worst
    assert len(values["map"]["points"]) == 2 * SCENES


def test_a_stratum_that_is_not_there_is_refused_by_name(views: Path) -> None:
    ran = run("eval", views / "vlad.toml", "--data", views, "--no-cache", "--strata", "colour")
    assert ran.code == 2
    assert "has no property or attribute called 'colour'" in ran.err
    assert "year" in ran.err
    ran = run("eval", views / "vlad.toml", "--data", views, "--no-cache", "--strata", "size")
    assert ran.code == 2
    assert "no true boxes" in ran.err


def test_other_light_is_a_row_a_factor(views: Path) -> None:
    out, values = evaluate(views, "vlad", "--relight", "0.6,1")
    assert [row["label"] for row in values["rows"]] == ["L × 0.6", "L × 1"]
    assert values["reference"] == "L × 1"
    assert "recall@1 against L × 1" in out
    ran = run("eval", views / "vlad.toml", "--data", views, "--relight", "dark")
    assert (ran.code, "takes numbers" in ran.err) == (2, True)


def test_a_report_sets_runs_side_by_side(views: Path) -> None:
    evaluate(views, "vlad")
    evaluate(views, "asmk")
    files = [views / "vlad.json", f"words={views / 'asmk.json'}"]
    ran = run("report", *files, "--metric", "ap", "--html", views / "r.html", "--markdown", views / "r.md")
    assert ran.code == 0, ran.err
    assert "ap against vlad" in ran.out
    assert "| words |" in (views / "r.md").read_text()
    assert "words" in (views / "r.html").read_text()
    ran = run("report", views / "manifest.jsonl")
    assert ran.code == 2
    assert "is not the file of an evaluation" in ran.err

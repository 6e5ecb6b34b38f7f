"""`resight eval` on photographs with known truth: its figures against the metrics called by hand."""

import json
from pathlib import Path

import pytest
from support.running import run
from support.scenes import QUAD, box_around, draw_scene, hang, write_jpeg

import resight
from resight.evaluate import judge
from resight.types import Judgement

RECIPE = """
name = "walls"
data = "manifest"
index = "asmk_inverted"
metrics = ["recall@1", "recall_fraction@2", "ap", "locscore"]

[[branches]]
encoder = "sift"
descriptor = "asmk"

[[branches]]
encoder = "sift"
descriptor = "local"
weight = 0

[[rerankers]]
name = "geometry"
"""
SMALL = [(150, 100), (330, 90), (340, 230), (140, 250)]


@pytest.fixture(scope="module")
def walls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six walls: scene i hangs large on wall 2i and small on wall 2i + 1. The query "nowhere" hangs on none."""
    folder = tmp_path_factory.mktemp("walls")
    rows: list[dict[str, object]] = []
    for scene, parity in enumerate(["even", "odd", "even"]):
        for number, quad in ((2 * scene, QUAD), (2 * scene + 1, SMALL)):
            write_jpeg(folder / f"wall_{number}.jpg", hang(draw_scene(scene), draw_scene(100 + number), quad))
            rows.append({"id": f"wall_{number}", "path": f"wall_{number}.jpg"})
        write_jpeg(folder / f"scene_{scene}.jpg", draw_scene(scene))
        large, small = f"wall_{2 * scene}", f"wall_{2 * scene + 1}"
        boxes = {large: box_around(QUAD), small: box_around(SMALL)}
        truth = {"role": "query", "positives": [large, small], "positive_boxes": boxes, "set": parity}
        rows.append({"id": f"scene_{scene}", "path": f"scene_{scene}.jpg"} | truth)
    write_jpeg(folder / "nowhere.jpg", draw_scene(50))
    rows.append({"id": "nowhere", "path": "nowhere.jpg", "role": "query", "positives": []})
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "walls.toml").write_text(RECIPE)
    return folder


@pytest.fixture(scope="module")
def evaluated(walls: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one run has written."""
    out = tmp_path_factory.mktemp("evaluated")
    files = [("--json", "a.json"), ("--html", "a.html"), ("--latex", "a.tex"), ("--keep", "walls.resight")]
    ran = run("eval", walls / "walls.toml", "--data", walls, *(word for o, name in files for word in (o, out / name)))
    assert (ran.code, ran.err) == (0, "")
    assert "walls: manifest, 6 images" in ran.out
    assert "1 queries have no positive" in ran.out
    return out


def test_the_figures_are_those_of_the_metrics_called_by_hand(walls: Path, evaluated: Path) -> None:
    figures = json.loads((evaluated / "a.json").read_text())
    collection = resight.open(evaluated / "walls.resight")
    by_query = {entry["id"]: entry for entry in figures["per_query"]}
    assert (figures["queries"], figures["queries_without_positives"], figures["database"]) == (3, 1, 6)
    values = []
    for scene in range(3):
        answer = collection.ask(walls / f"scene_{scene}.jpg", k=6)
        truth = {f"wall_{2 * scene}": box_around(QUAD), f"wall_{2 * scene + 1}": box_around(SMALL)}
        judgement = Judgement(dict.fromkeys(truth, 1), boxes=truth)
        whole = {f"wall_{number}": (0.0, 0.0, 480.0, 360.0) for number in range(6)}
        boxes = whole | {hit.id: hit.box for hit in answer.hits if hit.box is not None}
        values.append(judge([hit.id for hit in answer.hits], judgement, list(figures["metrics"]), boxes=boxes))
        assert {name: by_query[f"scene_{scene}"][name] for name in values[-1]} == pytest.approx(values[-1])
    for name, figure in figures["metrics"].items():
        assert figure["mean"] == pytest.approx(sum(value[name] for value in values) / 3)
        assert figure["low"] <= figure["mean"] <= figure["high"]
        assert figure["convention"]
    odd = {name: pytest.approx(value) for name, value in values[1].items()}
    assert figures["strata"]["odd"] == odd


def test_both_walls_of_every_scene_are_found_and_located(evaluated: Path) -> None:
    figures = json.loads((evaluated / "a.json").read_text())
    assert [figures["metrics"][name]["mean"] for name in ("recall@1", "recall_fraction@2", "ap")] == [1, 1, 1]
    assert figures["metrics"]["locscore"]["mean"] > 0.9
    assert figures["auc_known_against_unknown"] == 1


def test_the_page_and_the_latex_show_the_same_figures(evaluated: Path) -> None:
    figures = json.loads((evaluated / "a.json").read_text())
    shown = f"{figures['metrics']['locscore']['mean']:.4f}"
    assert shown in (evaluated / "a.html").read_text()
    latex = (evaluated / "a.tex").read_text()
    assert shown in latex
    assert latex.count(r"\\") == 1 + 3  # the head; all, even and odd
    assert r"recall\_fraction@2" in latex


def test_a_second_run_starts_from_the_collection_that_was_kept(walls: Path, evaluated: Path, tmp_path: Path) -> None:
    words = ("--data", walls, "--keep", evaluated / "walls.resight", "--json", tmp_path / "b.json")
    assert run("eval", walls / "walls.toml", *words).code == 0
    first, second = (json.loads(file.read_text()) for file in (evaluated / "a.json", tmp_path / "b.json"))
    assert first["metrics"] == second["metrics"]
    assert second["index_seconds"] < first["index_seconds"]


def test_data_without_truth_cannot_be_evaluated(walls: Path, scenes: Path) -> None:
    folder = run("eval", walls / "walls.toml", "--data", scenes, "--set", "data=folder")
    assert folder.code == 2
    assert "has no query with a positive" in folder.err
    nothing = run("eval", "sift", "--data", walls)
    assert nothing.code == 2
    assert "a recipe with data and metrics" in nothing.err


def test_images_of_another_data_set_are_not_searched_in_silence(walls: Path, scenes: Path, tmp_path: Path) -> None:
    resight.open(tmp_path / "kept.resight", walls / "walls.toml").add(scenes / "scene_00.jpg")
    ran = run("eval", walls / "walls.toml", "--data", walls, "--keep", tmp_path / "kept.resight")
    assert ran.code == 3
    assert "--keep another folder" in ran.err


def test_a_split_of_the_queries_is_judged_part_by_part(walls: Path, evaluated: Path, tmp_path: Path) -> None:
    (tmp_path / "overlap.csv").write_text("id,split\nscene_0,overlapping\nscene_1,other\nscene_2,other\n")
    split = ("--split", tmp_path / "overlap.csv", "--keep", evaluated / "walls.resight", "--json", tmp_path / "a.json")
    assert run("eval", walls / "walls.toml", "--data", walls, *split).code == 0
    figures = json.loads((tmp_path / "a.json").read_text())
    values = {entry["id"]: entry["locscore"] for entry in figures["per_query"] if "locscore" in entry}
    assert sorted(figures["strata"]) == ["other", "overlapping"]
    assert figures["strata"]["overlapping"]["locscore"] == pytest.approx(values["scene_0"])
    assert figures["strata"]["other"]["locscore"] == pytest.approx((values["scene_1"] + values["scene_2"]) / 2)

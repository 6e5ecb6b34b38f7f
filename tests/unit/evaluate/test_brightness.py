"""Images under other light: L is multiplied, the data set's truth stays."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.evaluations import make_summary

from resight.errors import InputError
from resight.evaluate import brightness
from resight.evaluate.brightness import change_brightness, scale_lightness, sweep_brightness
from resight.evaluate.evaluation import AbsentRow, Evaluation, Row
from resight.evaluate.properties import lightness
from resight.types import Branch, Choice, Dataset, ImageRef, Judgement, Recipe


def test_lightness_is_multiplied_and_ends_at_white() -> None:
    grey = np.full((4, 4, 3), 119, np.uint8)  # L is 50
    assert abs(float(lightness(grey).mean()) - 50) < 0.5
    assert abs(float(lightness(scale_lightness(grey, 0.2)).mean()) - 10) < 0.5
    assert abs(float(lightness(scale_lightness(grey, 1.4)).mean()) - 70) < 0.5
    assert (scale_lightness(grey, 3) >= 254).all()
    assert (scale_lightness(grey, 1) == grey).all()


def test_a_relit_data_set_has_other_files_and_the_same_truth(tmp_path: Path) -> None:
    Image.fromarray(np.full((20, 30, 3), 119, np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    refs = (ImageRef("a", tmp_path / "a.png", (0, 0, 10, 10)), ImageRef("b", tmp_path / "broken.png"))
    dataset = Dataset("made", refs, (ImageRef("q", tmp_path / "a.png"),), {"q": Judgement({"a": 1})})
    folder = tmp_path / "dark"
    folder.mkdir()
    dark = change_brightness(dataset, 0.6, folder)
    assert [ref.id for ref in (*dark.database, *dark.queries)] == ["a", "b", "q"]
    assert dark.database[0].box == (0, 0, 10, 10)
    assert dark.judgements == dataset.judgements
    assert dark.database[0].path.parent == dark.queries[0].path.parent == folder
    assert dark.database[1].path == tmp_path / "broken.png"  # it is skipped as it would be
    with Image.open(dark.database[0].path) as copy:
        assert copy.size == (30, 20)
        assert abs(float(lightness(np.array(copy)).mean()) - 30) < 0.5
    assert change_brightness(dataset, 1, folder) is dataset


def make_recipe(name: str) -> Recipe:
    return Recipe(f"zoo: {name}", (Branch(Choice("sift"), Choice("vlad")),), metrics=("ap",))


def fake_variants(recipes: Sequence[Recipe], dataset: Dataset, **how: Any) -> Evaluation:  # noqa: ARG001
    """Quality is the factor, which stands at the end of the mark; "lost" never runs, "frail" only at factor 1."""
    factor = float(str(how["mark"]).rpartition(" ")[2])
    names = [recipe.name.partition(": ")[2] for recipe in recipes]
    absent = [name for name in names if name == "lost" or (name == "frail" and factor != 1)]
    rows = [Row(name, make_summary({"ap": [factor / 10]})) for name in names if name not in absent]
    return Evaluation("zoo: walls", tuple(rows), absent=tuple(AbsentRow(name, 0, "no weights") for name in absent))


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(brightness, "measure_variants", fake_variants)
    return object()


def test_every_recipe_has_a_row_per_factor(cache: Any) -> None:
    recipes = [make_recipe("plain"), make_recipe("frail"), make_recipe("lost")]
    found = sweep_brightness(recipes, Dataset("walls", (), (), {}), (1.8, 0.2, 1.0), cache=cache)
    assert [row.label for row in found.rows] == [
        "plain, L × 0.2",
        "plain, L × 1",
        "plain, L × 1.8",
        "frail, L × 1",
    ]
    assert [row.summary.figures["ap"].mean for row in found.rows] == pytest.approx([0.02, 0.1, 0.18, 0.1])
    assert found.reference_label == "plain, L × 1"
    assert [(row.label, row.after) for row in found.absent] == [
        ("frail, L × 0.2", 3),
        ("frail, L × 1.8", 4),
        ("lost, L × 0.2", 4),
        ("lost, L × 1", 4),
        ("lost, L × 1.8", 4),
    ]
    (chart,) = found.charts
    assert [line.name for line in chart.lines] == ["plain", "frail"]
    assert np.isnan(chart.lines[1].values).tolist() == [True, False, True]
    assert found.table.columns[:2] == ("light", "factor")


def test_one_recipe_is_called_by_its_light_alone(cache: Any) -> None:
    found = sweep_brightness([make_recipe("plain")], Dataset("walls", (), (), {}), (0.8, 1.4), cache=cache)
    assert [row.label for row in found.rows] == ["L × 0.8", "L × 1.4"]
    assert found.reference_label == "L × 0.8"
    assert [line.name for line in found.charts[0].lines] == ["ap"]
    assert found.title == "zoo: walls, under other light"
    with pytest.raises(InputError, match="no such brightness"):
        sweep_brightness([make_recipe("plain")], Dataset("walls", (), (), {}), (-1.0,), cache=cache)

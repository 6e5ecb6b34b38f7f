"""Tables of Patchify end to end on small samples, with one small network in place of the large ones."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import run
from support.same_process import SameProcess
from support.samples import ilias, instre

import resight
from resight.reproduce.kinds import find
from resight.reproduce.paper_table import PaperTable, load_table
from resight.reproduce.run import Cell, DataFolders, Measured, NotRun

ENCODER = {"name": "efficientnet_lite", "variant": "lite0", "block": 10, "size": 64}
POOLED = {"name": "pooled", "pooling": "mean"}
GRID = {"rerankers.0.candidates": [0, 3], "rerankers.0.balance": [0.0, 1.0], "rerankers.0.gamma": [0.0, 0.5]}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    for name, sample in (("ilias", ilias), ("instre", instre)):
        (root / name).mkdir()
        sample.write(root / name, np.random.default_rng(0))
    return root


def shrink(value: Any) -> Any:
    """A recipe with the small network in every branch, and codes that its 112 dimensions allow."""
    if isinstance(value, list):
        return [shrink(part) for part in value]
    if not isinstance(value, dict):
        return value
    small = {key: shrink(part) for key, part in value.items()}
    if "encoder" in small:
        small["encoder"] = ENCODER
        if isinstance(small["descriptor"], dict) and small["descriptor"]["name"] == "pooled":
            small["descriptor"] = POOLED
    if small.get("name") == "ivfpq":
        small |= {"m": 16, "nlist": 4, "nbits": 4}
    return small


def measure(
    name: str, root: Path, folder: Path, *chosen: str, **settings: Any
) -> tuple[PaperTable, dict[tuple[str, str], Cell]]:
    """The rows whose names begin with one of `chosen`."""
    table = load_table(f"patchify/{name}")
    rows = [row for row in table.rows if row.name.startswith(chosen)]
    table = replace(
        table,
        recipe=shrink(dict(table.recipe)),
        columns=tuple(replace(column, recipe=shrink(dict(column.recipe))) for column in table.columns),
        rows=tuple(replace(row, recipe=shrink(dict(row.recipe))) for row in rows),
        settings={**table.settings, **settings},
    )
    here = SameProcess(folder, DataFolders(root), cache_folder=folder / "cache")
    cells = {(row, column): cell for row, column, cell in find(table.kind).measure(table, table.rows, here)}
    assert set(cells) == {(row.name, column.name) for row in table.rows for column in table.measured}
    return table, cells


def test_levels_metrics_and_both_sets(root: Path, tmp_path: Path) -> None:
    table, cells = measure("table_9", root, tmp_path, "SigLIP")
    assert len(table.rows) == 4
    assert all(isinstance(cell, Measured) for cell in cells.values())
    for row in table.rows:
        for data in ("INSTRE", "ILIAS"):
            ap, loc, mean, *parts = (cells[row.name, f"{data} {name}"].value for name in METRICS)
            assert 0 < ap <= 1 and loc <= ap and mean == pytest.approx(sum(parts) / 3)


METRICS = ("mAP", "LocScore", "mLocScore", "LocScore(0.3)", "LocScore(0.4)", "LocScore(0.5)")


def test_bytes_before_and_after_product_quantisation(root: Path, tmp_path: Path) -> None:
    _, cells = measure("table_7", root, tmp_path, "L0", "L3")
    images, dimensions = 4, 112
    before = {level: regions * images * dimensions * 4 / 1e6 for level, regions in (("L0 (1)", 1), ("L3 (30)", 30))}
    for level, expected in before.items():
        assert cells[level, "ILIAS MB"].value == pytest.approx(expected)
    after = cells["L3 (30)", "ILIAS PQ MB"].value
    lists, words, codes = 4 * dimensions * 4 + 4 * 8, 16 * dimensions * 4, 120 * (8 + 8)
    offsets = 5 * 8
    assert 0 < after * 1e6 - (lists + words + codes + offsets) < 400  # the header of faiss
    assert cells["L3 (30)", "ILIAS CR"].value == pytest.approx(before["L3 (30)"] / after)


def test_true_boxes_are_written_once_and_those_of_the_command(root: Path, tmp_path: Path) -> None:
    _, cells = measure("table_6", root, tmp_path, "mAP")
    assert all(isinstance(cell, Measured) for cell in cells.values())
    (written,) = tmp_path.glob("boxes_*.csv")
    assert run("data", "boxes", "ilias", root / "ilias", "--out", tmp_path / "own.csv").code == 0
    assert written.read_bytes() == (tmp_path / "own.csv").read_bytes()
    made = written.stat().st_mtime_ns
    _, again = measure("table_6", root, tmp_path, "mAP")  # remembered: the file has not changed
    assert again == cells
    assert [path.stat().st_mtime_ns for path in tmp_path.glob("boxes_*.csv")] == [made]


def test_a_detector_that_is_missing_costs_its_own_row(root: Path, tmp_path: Path) -> None:
    _, cells = measure("table_2", root, tmp_path, "Sliding windows, stride 0.5", "Region")
    assert isinstance(cells["Sliding windows, stride 0.5", "ILIAS LocScore"], Measured)
    assert isinstance(cells["Region proposals", "ILIAS mAP"], NotRun)


def test_bins_and_light(root: Path, tmp_path: Path) -> None:
    rows = ("size, smallest fifth", "centre, second", "L × 0.2")
    _, cells = measure("figure_s1", root, tmp_path, *rows, "centre, farthest fifth")
    assert cells["centre, farthest fifth", "CLIP local mAP"] == NotRun("the positives fill 4 bins")  # there are four
    for row in rows:
        local, whole = (cells[row, f"CLIP {part} mAP"] for part in ("local", "global"))
        gain = cells[row, "CLIP mAP, local − global"]
        assert isinstance(local, Measured) and isinstance(whole, Measured) and isinstance(gain, Measured)
        assert gain.value == pytest.approx(local.value - whole.value)
    assert cells["L × 0.2", "CLIP mAP, local − global"].note


def test_the_grid_of_rerankers(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # without ames.pt
    _, cells = measure("reranking_grid", root, tmp_path, "", grid=GRID)
    plain = cells["SigLIP, whole image", "ILIAS mAP"]
    assert isinstance(plain, Measured)
    for row in ("ILIAS baseline", "Patchify"):
        best = cells[row, "ILIAS mAP"]
        assert isinstance(best, Measured) and not math.isnan(best.value) and "candidates" in best.note
    # λ = 1 is a point of the grid and leaves the order of the whole image.
    assert cells["Patchify", "ILIAS mAP"].value >= plain.value
    ames = cells["AMES", "ILIAS mAP"]
    assert isinstance(ames, NotRun) and "no detector of AMES" in ames.reason


def test_ames_at_random_weights(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_ames(tmp_path, dimensions=112)
    _, cells = measure("reranking_grid", root, tmp_path, "AMES", grid=GRID)
    assert all(isinstance(cell, Measured) for cell in cells.values())


def write_ames(folder: Path, dimensions: int, width: int = 8, inner: int = 16) -> None:
    """A binary network of one layer, and a detector, in the published layout."""
    torch = pytest.importorskip("torch")
    layer = "decoder.layers.0."
    shapes: dict[str, tuple[int, ...]] = {"mtc_token": (width,), "remap_local.0.W": (dimensions, width)}
    linear = {"remap_local.1": (width, width), "classifier": (1, width)}
    linear |= {f"{layer}linear1": (inner, width), f"{layer}linear2": (width, inner)}
    for block in ("self_attn", "cross_attn"):
        shapes |= {f"{layer}{block}.in_proj_weight": (3 * width, width), f"{layer}{block}.in_proj_bias": (3 * width,)}
        linear[f"{layer}{block}.out_proj"] = (width, width)
    for name in ("remap_local.2", *(f"{layer}norm{number}" for number in (1, 2, 3))):
        shapes |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    generator = torch.Generator().manual_seed(0)
    state = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    torch.save({"state": state}, folder / "ames.pt")
    found = {f"bn.{name}": torch.ones(dimensions) for name in ("weight", "bias", "running_mean", "running_var")}
    found |= {"conv1.weight": torch.randn(dimensions, dimensions, 1, 1, generator=generator)}
    found |= {"conv1.bias": torch.zeros(dimensions), "conv2.bias": torch.zeros(1)}
    found |= {"conv2.weight": torch.randn(1, dimensions, 1, 1, generator=generator)}
    torch.save({"state": found}, folder / "ames_detector.pt")


def test_other_light_for_a_table_of_rows(root: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "levels.toml"
    encoder = ", ".join(f"{key} = {value!r}" for key, value in ENCODER.items())
    recipe.write_text(
        f"""
data = "ilias"
metrics = ["ap", "locscore"]
[[branches]]
encoder = {{ {encoder} }}
descriptor = {{ name = "pooled", pooling = "mean" }}
[rows]
"whole" = {{ regions = {{ name = "grid", level = 0 }} }}
"parts" = {{ regions = {{ name = "grid", level = 1 }} }}
"lost" = {{ regions = {{ name = "file", path = "absent.csv" }} }}
"""
    )
    found = resight.evaluate(recipe, root / "ilias", brightness=[0.6, 1.0])
    assert [row.label for row in found.rows] == ["whole, L × 0.6", "whole, L × 1", "parts, L × 0.6", "parts, L × 1"]
    assert found.reference_label == "whole, L × 1"
    assert [row.label for row in found.absent] == ["lost, L × 0.6", "lost, L × 1"]

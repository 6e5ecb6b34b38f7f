"""Tables of MoonBench end to end on a small Moon, with their own networks at a small size."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.same_process import SameProcess
from support.samples import moonbench as sample

from resight.reproduce.kinds import find
from resight.reproduce.paper_table import list_tables, load_table
from resight.reproduce.run import Cell, DataFolders, Measured, NotRun

TABLES = list_tables("moonbench")
NO_COUNTERPART = {"All tokens", "R@1", "B/tok", "Comp."}  # rows and columns that the paper's table need not have


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moon")
    sample.write(folder, np.random.default_rng(0))
    return folder


def shrink(value: Any, crops: Path) -> Any:
    """Few queries, a smaller picture for the transformer, and every image as a candidate of two stages."""
    if isinstance(value, list):
        return [shrink(part, crops) for part in value]
    if not isinstance(value, dict):
        return value
    small = {key: shrink(part, crops) for key, part in value.items()}
    if small.get("name") == "moonbench":
        small = {"name": "moonbench", "queries": 2, "pixels": 64, "crops": str(crops)}
    if small.get("name") == "onnx_vit":
        small |= {"size": 112}  # 64 tokens
    if "share" in small:
        small |= {"share": 1.0}
    return small


def measure(name: str, root: Path, folder: Path, *chosen: str) -> dict[tuple[str, str], Cell]:
    table = load_table(f"moonbench/{name}")
    table = replace(
        table,
        name=f"sample/{name}",  # the kind would load the rows of a shipped table again
        recipe=shrink(dict(table.recipe), folder / "crops"),
        columns=tuple(replace(part, recipe=shrink(dict(part.recipe), folder)) for part in table.columns),
        rows=tuple(
            replace(row, recipe=shrink(dict(row.recipe), folder))
            for row in table.rows
            if not chosen or row.name in chosen
        ),
    )
    run = SameProcess(folder, DataFolders(root, alone="moonbench"), cache_folder=folder / "cache")
    return {(row, column): cell for row, column, cell in find(table.kind).measure(table, table.rows, run)}


@pytest.mark.parametrize("name", TABLES)
def test_rows_and_columns_are_those_of_the_papers_table(name: str) -> None:
    table = load_table(name)
    like = load_table(table.like)
    assert table.like.startswith("craterbench/")
    assert any("not CraterBench-R" in note for note in table.notes)
    if table.kind != "retrieval":
        return
    rows, columns = ({part.name for part in parts} for parts in (like.rows, like.columns))
    for row in table.rows:
        assert row.settings.get("like", row.name) in rows | NO_COUNTERPART
    compared = [column for column in table.columns if column.settings.get("like", column.name) in columns]
    assert compared
    for column in table.columns:
        assert column in compared or column.name.endswith("R@1") or column.name in NO_COUNTERPART


def test_a_network_without_attention_leaves_out_the_selections_that_need_it(root: Path, tmp_path: Path) -> None:
    cells = measure("table_8_lite2", root, tmp_path)
    for row in ("Norm", "Random", "Spatial grid", "All tokens"):
        found = cells[row, "mAP"]
        assert isinstance(found, Measured) and 0 < found.value <= 1
    for row in ("Attention", "Norm×Attn", "CLS similarity", "CLS distance"):
        missing = cells[row, "mAP"]
        assert isinstance(missing, NotRun) and "no CLS" in missing.reason


def test_the_transformer_has_every_selection(root: Path, tmp_path: Path) -> None:
    cells = measure("table_8", root, tmp_path)
    assert len(cells) == 16
    values = {cell.value for cell in cells.values() if isinstance(cell, Measured)}
    assert len(cells) == 16 and values
    # At K = 64 of 64 tokens every selection keeps all.
    everything = cells["All tokens", "mAP"]
    assert isinstance(everything, Measured)
    for (row, column), cell in cells.items():
        if column == "mAP":
            assert isinstance(cell, Measured) and cell.value == pytest.approx(everything.value, abs=0.02), row


def test_bytes_per_token_are_the_papers(root: Path, tmp_path: Path) -> None:
    cells = measure("table_12", root, tmp_path, "FP32", "FP16", "INT8")
    sizes = [cells[row, "B/tok"] for row in ("FP32", "FP16", "INT8")]
    assert all(isinstance(size, Measured) for size in sizes)
    values = [size.value for size in sizes if isinstance(size, Measured)]
    assert values == pytest.approx([1536, 768, 388], rel=0.02)  # offsets of the images are beside them


def test_two_stages_over_the_whole_gallery_are_the_exhaustive_search(root: Path, tmp_path: Path) -> None:
    cells = measure("two_stages", root, tmp_path, "Exhaustive", "S = 0: one vector", "S = 10 %")
    whole, both = cells["Exhaustive", "mAP"], cells["S = 10 %", "mAP"]
    assert isinstance(whole, Measured) and isinstance(both, Measured)
    assert both.value == pytest.approx(whole.value, abs=0.02)
    share = cells["S = 10 %", "share (%)"]
    assert isinstance(share, Measured) and share.value == pytest.approx(1, abs=0.05)


def test_the_gain_of_merging_is_a_difference_of_two_rows(root: Path, tmp_path: Path) -> None:
    cells = measure("directions_lite2", root, tmp_path, "K = 16, raw", "K = 16, merged")
    raw, merged, gain = (
        cells[row, column]
        for row, column in (("K = 16, raw", "mAP"), ("K = 16, merged", "mAP"), ("K = 16, merged", "gain (points)"))
    )
    assert isinstance(raw, Measured) and isinstance(merged, Measured) and isinstance(gain, Measured)
    assert gain.value == pytest.approx(merged.value - raw.value)

"""The grid of a reranker: its points, its checks, and the best of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resight.errors import RecipeError
from resight.reproduce.kinds import rerank_grid
from resight.reproduce.kinds.rerank_grid import list_points
from resight.reproduce.paper_table import Column, PaperRow, PaperTable, load_table
from resight.reproduce.run import DataFolders, Measured, NotRun, Run

TABLE = PaperTable(
    "patchify/reranking_grid",
    "t",
    "s",
    "rerank_grid",
    data=("ilias",),
    recipe={
        "data": "ilias",
        "branches": [
            {"encoder": "resnet18", "descriptor": "pooled"},
            {"encoder": "resnet18", "descriptor": "tokens", "weight": 0},
        ],
        "rerankers": [{"name": "late"}],
    },
    columns=(Column("mAP", "ap"),),
    rows=(PaperRow("grid"), PaperRow("as it is", settings={"grid": {}})),
    settings={"grid": {"rerankers.0.candidates": [0, 100], "rerankers.0.gamma": [0.0, 0.5]}},
)


class Answers(Run):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, DataFolders(named={"ilias": folder}))
        self.chains: list[Any] = []

    def isolate(self, function: str, arguments: dict[str, Any], remember: bool = True) -> dict[str, Any] | NotRun:  # noqa: ARG002
        self.chains.append(arguments["rerankers"])
        return {"best": len(arguments["rerankers"]) - 1, "value": 0.5, "low": 0.4, "high": 0.6, "queries": {"q": 0.5}}


def test_every_combination_is_measured_and_the_best_is_named(tmp_path: Path) -> None:
    run = Answers(tmp_path)
    (_, _, best), (_, _, plain) = rerank_grid.measure(TABLE, TABLE.rows, run)
    assert run.chains == [
        [[{"name": "late", "candidates": count, "gamma": gamma}] for count in (0, 100) for gamma in (0.0, 0.5)],
        [[{"name": "late"}]],
    ]
    assert best == Measured(0.5, 0.4, 0.6, "0.candidates=100, 0.gamma=0.5", {"q": 0.5})
    assert isinstance(plain, Measured) and plain.note == ""


def test_points() -> None:
    assert list_points({}) == [()]
    assert list_points({"rerankers.0.kind": ["fp16"], "rerankers.0.balance": [0.0, 1]}) == [
        ('rerankers.0.kind="fp16"', "rerankers.0.balance=0.0"),
        ('rerankers.0.kind="fp16"', "rerankers.0.balance=1"),
    ]


def test_the_grid_of_the_paper_has_792_points() -> None:
    table = load_table("patchify/reranking_grid")
    assert [len(list_points(rerank_grid.find_grid(table, row))) for row in table.rows] == [1, 792, 792, 792]


@pytest.mark.parametrize(
    "grid",
    [{"branches.0.weight": [0, 1]}, {"rerankers.0.candidates": []}, {"rerankers.0.candidates": 3}],
)
def test_grids_of_something_else_are_refused(grid: dict[str, Any]) -> None:
    rerank_grid.check(TABLE)
    with pytest.raises(RecipeError, match="not a setting of a reranker"):
        rerank_grid.check(replace(TABLE, settings={"grid": grid}))


def test_settings_that_no_reranker_has_are_refused() -> None:
    with pytest.raises(RecipeError, match="rank"):
        rerank_grid.check(replace(TABLE, settings={"grid": {"rerankers.1.candidates": [1]}}))


def test_missing_data_are_the_reason(tmp_path: Path) -> None:
    (_, _, cell), _ = rerank_grid.measure(TABLE, TABLE.rows, Run(tmp_path))
    assert isinstance(cell, NotRun) and "ilias was not given" in cell.reason


def test_files_that_rows_name_are_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = load_table("patchify/reranking_grid")
    files = ("ames_detector.pt", "ames.pt")
    (tmp_path / "ames.pt").touch()
    found = rerank_grid.requirements(table)
    assert found.weights[-2:] == files
    assert [line.partition(" ")[0] for line in found.missing if line.startswith("ames")] == ["ames_detector.pt"]

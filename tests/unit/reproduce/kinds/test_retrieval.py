"""Cells of retrieval tables, from answers of a process that the tests stand in for."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resight.evaluate.evaluation import BYTES, COMPRESSION, MEGABYTES, ROWS
from resight.reproduce.kinds import retrieval, statement
from resight.reproduce.kinds._retrieval_group import find_facts
from resight.reproduce.paper_table import Best, Column, PaperRow, PaperTable
from resight.reproduce.run import Cell, DataFolders, Measured, NotRun, Run

WORDS = "branches.0.descriptor.words={}".format
TABLE = PaperTable(
    "paper/table_1",
    "title",
    "source",
    "retrieval",
    data=("manifest",),
    recipe={"data": "manifest", "branches": [{"encoder": "sift", "descriptor": {"name": "vlad", "words": 1}}]},
    columns=(Column("mAP", "ap"), Column("B", "bytes_per_image", unit="")),
    rows=tuple(PaperRow(f"K = {words}", set=(WORDS(words),)) for words in (1, 2, 3, 4)),
)


class FakeRun(Run):
    """Answers like the processes: ap is a tenth of the words; `fatal` words kill any process that has them."""

    def __init__(self, folder: Path, fatal: tuple[int, ...] = (), failing: tuple[int, ...] = ()) -> None:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        super().__init__(folder / "run", DataFolders(folder / "data", alone="manifest"))
        self.fatal, self.failing = fatal, failing
        self.asked: list[list[int]] = []

    def isolate(self, function: str, arguments: dict[str, Any], remember: bool = True) -> dict[str, Any] | NotRun:
        del remember
        if function != retrieval.MEASURE:
            return {}
        words = [recipe["branches"][0]["descriptor"]["words"] for recipe in arguments["recipes"]]
        self.asked.append(words)
        if any(number in self.fatal for number in words):
            return NotRun("out of memory (killed)")
        return {"queries": ["a", "b"], "rows": [self.answer(number) for number in words]}

    def answer(self, words: int) -> dict[str, Any]:
        if words in self.failing:
            return {"reason": "no such region source"}
        value = words / 10
        return {
            "figures": {"ap": [value, value - 0.05, value + 0.05, [value, value]]},
            "facts": {"bytes_per_image": 8.0},
        }


def measure(table: PaperTable, run: Run) -> Mapping[tuple[str, str], Cell]:
    return {(row, column): cell for row, column, cell in retrieval.measure(table, table.rows, run)}


def test_experiments_with_the_same_encoder_share_a_process(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)
    cells = measure(TABLE, run)
    assert run.asked == [[1, 2, 3, 4]]
    assert cells["K = 3", "mAP"] == Measured(0.3, 0.25, 0.35, queries={"a": 0.3, "b": 0.3})
    assert cells["K = 3", "B"] == Measured(8.0)
    assert measure(TABLE, again := FakeRun(tmp_path)) == cells
    assert again.asked == []  # remembered, each by itself


def test_a_process_that_dies_is_halved_until_the_guilty_is_alone(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, fatal=(3,))
    cells = measure(TABLE, run)
    assert run.asked == [[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]]
    assert cells["K = 3", "mAP"] == NotRun("out of memory (killed)")
    assert all(isinstance(cells[f"K = {words}", "mAP"], Measured) for words in (1, 2, 4))
    measure(TABLE, again := FakeRun(tmp_path))
    assert again.asked == [[3]]  # only what failed


def test_a_row_that_raises_has_its_reason(tmp_path: Path) -> None:
    cells = measure(TABLE, FakeRun(tmp_path, failing=(2,)))
    assert cells["K = 2", "B"] == NotRun("no such region source")
    assert isinstance(cells["K = 1", "mAP"], Measured)


def test_the_best_alternative_is_shown_with_its_name(tmp_path: Path) -> None:
    column = Column("mAP", "ap", best=Best("ap", ((WORDS(5),), (WORDS(7),), (WORDS(6),))))
    table = replace(TABLE, columns=(column, replace(TABLE.columns[1], best=column.best)), rows=TABLE.rows[:1])
    cells = measure(table, FakeRun(tmp_path / "one"))
    best = cells["K = 1", "mAP"]
    assert isinstance(best, Measured) and (best.value, best.note) == (0.7, WORDS(7))
    lacking = measure(table, FakeRun(tmp_path / "two", failing=(7,)))["K = 1", "mAP"]
    assert isinstance(lacking, Measured) and lacking.value == 0.6
    assert "1 of 3 alternatives not run: no such region source" in lacking.note
    assert measure(table, FakeRun(tmp_path / "three", fatal=(5, 6, 7)))["K = 1", "B"] == NotRun(
        "out of memory (killed)"
    )


def test_rows_without_data_or_that_nobody_can_measure(tmp_path: Path) -> None:
    table = replace(TABLE, rows=(PaperRow("closed", skip="not public"), TABLE.rows[0]))
    run = FakeRun(tmp_path)
    run.data = DataFolders()
    cells = measure(table, run)
    assert cells["closed", "mAP"] == NotRun("not public")
    missing = cells["K = 1", "mAP"]
    assert isinstance(missing, NotRun) and missing.reason.startswith("the data set manifest was not given; ")


def test_which_of_two_data_sets_in_one_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "paris").mkdir()
    data = {"name": "revisited", "which": "rparis6k"}
    table = replace(TABLE, recipe={**TABLE.recipe, "data": data}, rows=TABLE.rows[:1])
    run = FakeRun(tmp_path)
    run.data = DataFolders(None, {"rparis6k": tmp_path / "paris"})
    assert isinstance(measure(table, run)["K = 1", "mAP"], Measured)


BOXES = "branches.0.regions={ name = 'file', path = '{boxes}' }"


class BoxRun(FakeRun):
    """Writes the file of true boxes, unless there are none."""

    def __init__(self, folder: Path, has_boxes: bool = True) -> None:
        super().__init__(folder)
        self.has_boxes = has_boxes
        self.written: list[Path] = []
        self.read: list[Path] = []

    def isolate(self, function: str, arguments: dict[str, Any], remember: bool = True) -> dict[str, Any] | NotRun:
        if function == retrieval.WRITE_BOXES:
            if not self.has_boxes:
                return NotRun("manifest has no boxes")
            self.written.append(Path(arguments["path"]))
            self.written[-1].parent.mkdir(parents=True, exist_ok=True)
            self.written[-1].touch()
        if function == retrieval.MEASURE:
            branches = [recipe["branches"][0] for recipe in arguments["recipes"]]
            self.read += [Path(branch["regions"]["path"]) for branch in branches if "regions" in branch]
        return super().isolate(function, arguments, remember)


def test_true_boxes_are_written_once_per_data_set(tmp_path: Path) -> None:
    table = replace(TABLE, rows=(TABLE.rows[0], *(replace(row, set=(*row.set, BOXES)) for row in TABLE.rows[1:])))
    first = BoxRun(tmp_path)
    cells = measure(table, first)
    assert all(isinstance(cell, Measured) for cell in cells.values())
    (path,) = first.written
    assert first.read == [path] * 3 and path.parent == first.folder
    again = BoxRun(tmp_path)
    assert measure(table, again) == cells
    assert (again.written, again.read) == ([], [])  # remembered
    (tmp_path / "data" / "more.csv").touch()  # other data, other boxes
    changed = BoxRun(tmp_path)
    measure(table, changed)
    assert len(changed.written) == 1 and changed.written[0] != path


def test_a_data_set_without_true_boxes_costs_the_cells_that_need_them(tmp_path: Path) -> None:
    table = replace(TABLE, rows=(TABLE.rows[0], replace(TABLE.rows[1], set=(BOXES,))))
    cells = measure(table, BoxRun(tmp_path, has_boxes=False))
    assert isinstance(cells["K = 1", "mAP"], Measured)
    assert cells["K = 2", "mAP"] == NotRun("manifest has no boxes")


def test_facts_of_an_evaluation() -> None:
    facts = {BYTES: 64.0, ROWS: 4.0, MEGABYTES: 0.5, COMPRESSION: 16.0}
    assert find_facts(facts) == {
        "bytes_per_image": 64.0,
        "bytes_per_token": 16.0,
        "megabytes": 0.5,
        "compression": 16.0,
    }


def test_a_statement_measures_nothing(tmp_path: Path) -> None:
    cells = list(statement.measure(replace(TABLE, notes=("a drawing",)), TABLE.rows[:1], FakeRun(tmp_path)))
    assert cells == [("K = 1", name, NotRun("nothing to measure: see the notes")) for name in ("mAP", "B")]


@pytest.mark.parametrize("metric", ["ap", "recall@1"])
def test_a_figure_that_no_query_has_is_not_run(tmp_path: Path, metric: str) -> None:
    class Empty(FakeRun):
        def answer(self, words: int) -> dict[str, Any]:  # noqa: ARG002
            return {"figures": {metric: [float("nan")] * 3 + [[float("nan")] * 2]}, "facts": {}}

    table = replace(TABLE, columns=(Column("x", metric), TABLE.columns[1]), rows=TABLE.rows[:1])
    cells = measure(table, Empty(tmp_path))
    assert cells["K = 1", "x"] == NotRun(f"no query has a value of {metric}")
    assert isinstance(cells["K = 1", "B"], NotRun)

"""Figures by bins of positives and by light: cells from values that were written down by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resight.errors import RecipeError
from resight.reproduce.kinds import strata
from resight.reproduce.kinds.strata import average, subtract
from resight.reproduce.paper_table import Column, PaperRow, PaperTable
from resight.reproduce.run import DataFolders, Measured, NotRun, Run

BRANCHES = [{"encoder": "resnet18", "descriptor": "pooled", "regions": {"name": "grid", "level": 0}}]
LOCAL = [{"encoder": "resnet18", "descriptor": "pooled", "regions": {"name": "grid", "level": 3}}]
TABLE = PaperTable(
    "patchify/figure_s1",
    "t",
    "s",
    "strata",
    data=("ilias",),
    recipe={"data": "ilias"},
    columns=(
        Column("global", "ap", recipe={"branches": BRANCHES}),
        Column("local", "ap", recipe={"branches": LOCAL}),
        Column("gain", "ap", settings={"minus": ["local", "global"]}),
    ),
    rows=(
        PaperRow("small", settings={"property": "size", "bin": 1, "says": "+"}),
        PaperRow("large", settings={"property": "size", "bin": 2, "says": "-"}),
        PaperRow("dark", settings={"light": 0.2, "says": "+"}),
    ),
)


class Answers(Run):
    """Answers from a table instead of a process; notes what was asked."""

    def __init__(self, folder: Path, broken: str = "") -> None:
        super().__init__(folder, DataFolders(named={"ilias": folder}))
        self.asked: list[tuple[str, Any]] = []
        self._broken = broken

    def isolate(self, function: str, arguments: dict[str, Any], remember: bool = True) -> dict[str, Any] | NotRun:  # noqa: ARG002
        name = function.partition(":")[2]
        self.asked.append((name, arguments.get("factor") or arguments["properties"]))
        if name == self._broken:
            return NotRun("killed")
        if name == "measure_light":
            return {"rows": [{"values": {"q": {"ap": 0.25}}}, {"reason": "no weights"}]}
        level = arguments["recipe"]["branches"][0]["regions"]["level"]
        small, large = ((0.2, 0.4), 0.9) if level == 0 else ((0.6, 0.8), 0.5)
        bins = [{"q1": {"ap": small[0]}, "q2": {"ap": small[1]}}, {"q2": {"ap": large}}]
        return {"size": [{"label": "", "values": values} for values in bins]}


def test_cells_by_bin_and_light(tmp_path: Path) -> None:
    run = Answers(tmp_path)
    cells = {(row, column): cell for row, column, cell in strata.measure(TABLE, TABLE.rows, run)}
    assert run.asked == [("measure_bins", ["size"]), ("measure_bins", ["size"]), ("measure_light", 0.2)]
    values = {key: round(cell.value, 9) for key, cell in cells.items() if isinstance(cell, Measured)}
    assert values == {
        ("small", "global"): 0.3,
        ("small", "local"): 0.7,
        ("small", "gain"): 0.4,
        ("large", "global"): 0.9,
        ("large", "local"): 0.5,
        ("large", "gain"): -0.4,
        ("dark", "global"): 0.25,
    }
    assert {cells["small", "gain"].note, cells["large", "gain"].note} == {"as the text says"}
    assert cells["dark", "local"] == cells["dark", "gain"] == NotRun("no weights")


def test_a_process_that_dies_costs_its_own_cells(tmp_path: Path) -> None:
    cells = {
        (row, column): cell
        for row, column, cell in strata.measure(TABLE, TABLE.rows, Answers(tmp_path, "measure_bins"))
    }
    assert cells["small", "gain"] == NotRun("killed")
    assert isinstance(cells["dark", "global"], Measured)


def test_a_data_set_that_was_not_given_is_the_reason(tmp_path: Path) -> None:
    cells = list(strata.measure(TABLE, TABLE.rows, Run(tmp_path)))
    assert len(cells) == 9
    assert all(isinstance(cell, NotRun) and "ilias was not given" in cell.reason for _, _, cell in cells)


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        ([0.5, 0.6], [0.2, 0.3], "as the text says"),
        ([0.2, 0.3], [0.5, 0.6], "against the text"),
        ([0.0, 1.0], [1.0, 0.0], "unclear: the interval holds 0"),
    ],
)
def test_the_sign_that_the_text_states(first: list[float], second: list[float], note: str) -> None:
    one, two = ({f"q{n}": value for n, value in enumerate(side)} for side in (first, second))
    cell = subtract(one, two, "+")
    assert isinstance(cell, Measured) and cell.note == note
    assert isinstance(subtract(one, two), Measured) and subtract(one, two).note == ""  # type: ignore[union-attr]


def test_queries_that_only_one_side_has_are_left_out() -> None:
    cell = subtract({"a": 1.0, "b": 0.5}, {"b": 0.25, "c": 0.0, "d": float("nan")})
    assert isinstance(cell, Measured) and (cell.value, cell.low, cell.high) == (0.25, 0.25, 0.25)
    assert subtract({"a": 1.0}, {"b": 1.0}) == NotRun("no query has a positive here")
    assert average({"a": float("nan")}) == NotRun("no query has a positive here")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": (PaperRow("r"),)}, "no part of the data"),
        ({"rows": (PaperRow("r", settings={"light": 1, "property": "size", "bin": 1}),)}, "no part of the data"),
        ({"rows": (PaperRow("r", settings={"light": 1, "says": "more"}),)}, "says does not fit"),
        ({"rows": (PaperRow("r", settings={"light": 1, "bins": 3}),)}, "bins"),
        ({"columns": (*TABLE.columns[:2], Column("d", "ap", settings={"minus": ["local", "other"]}))}, "minus"),
        ({"columns": (Column("c", recipe={"branches": BRANCHES}),)}, "no metric"),
        ({"settings": {"bin": 5}}, "bin"),
        ({"recipe": {"data": "ilias", "colour": 3}}, "colour"),
    ],
)
def test_tables_that_do_not_fit_are_refused(change: dict[str, Any], words: str) -> None:
    strata.check(TABLE)
    with pytest.raises(RecipeError, match=words):
        strata.check(replace(TABLE, **change))

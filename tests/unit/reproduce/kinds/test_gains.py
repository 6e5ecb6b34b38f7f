"""Two models under two poolings, with three queries each; the figures are worked out by hand."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from resight.errors import RecipeError
from resight.reproduce.kinds import gains, retrieval
from resight.reproduce.paper_table import Column, PaperRow, PaperTable, load_table
from resight.reproduce.run import Cell, Measured, NotRun, Run

VALUES = {  # model, column → value of each query
    ("a", "CLS"): (0.0, 0.0, 1.0),
    ("a", "GeM"): (1.0, 0.0, 1.0),
    ("b", "CLS"): (0.0, 1.0, 0.0),
    ("b", "GeM"): (1.0, 1.0, 1.0),
}


def measured(*values: float) -> Measured:
    return Measured(sum(values) / len(values), queries={f"q{number}": value for number, value in enumerate(values)})


def make_models(*rows: PaperRow, **settings: object) -> PaperTable:
    columns = (Column("CLS", "recall@1", ("pooling=cls",)), Column("GeM", "recall@1", ("pooling=gem",)))
    models = (PaperRow("a", "one"), PaperRow("b", "two"))
    return PaperTable("p/models", "models", "", "gains", columns=columns, rows=(*models, *rows), settings=settings)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """A retrieval kind that knows VALUES; returns what it was asked for. ap is half of recall."""
    questions: list[tuple[str, ...]] = []

    def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
        questions.append((str(run.folder), *(row.name for row in rows)))
        for row in rows:
            for column in table.measured:
                pooling = {"pooling=cls": "CLS", "pooling=gem": "GeM"}[column.set[0]]
                factor = 0.5 if column.metric == "ap" else 1.0
                yield row.name, column.name, measured(*(factor * value for value in VALUES[row.name, pooling]))

    monkeypatch.setattr(retrieval, "measure", measure)
    return questions


def run(table: PaperTable, tmp_path: Path, rows: Sequence[PaperRow] | None = None) -> dict[tuple[str, str], Cell]:
    chosen = table.rows if rows is None else rows
    found = gains.measure(table, chosen, Run(tmp_path / "runs" / "table"))
    return {(row, column): cell for row, column, cell in found}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> PaperTable:
    table = make_models(metrics=["recall@1", "ap"])
    monkeypatch.setattr(gains, "load_table", lambda name: {"p/models": table}[name])
    return table


def make_gains(**settings: object) -> PaperTable:
    columns = (Column("R@1", "recall@1"), Column("mAP", "ap"))
    rows = (PaperRow("CLS"), PaperRow("pooled", settings={"column": "GeM"}))
    settings = {"of": "p/models", "over": "CLS", **settings}
    return PaperTable("p/gains", "gains", "", "gains", columns=columns, rows=rows, settings=settings)


def value(cell: Cell) -> float:
    assert isinstance(cell, Measured), cell
    return cell.value


def test_a_gain_is_the_mean_over_models_of_what_a_column_adds(tmp_path, asked, source):  # noqa: ARG001
    # a: 2/3 - 1/3, b: 1 - 1/3; mean 1/2. AP: half of it.
    found = run(make_gains(), tmp_path)
    assert value(found["pooled", "R@1"]) == pytest.approx(0.5)
    assert value(found["pooled", "mAP"]) == pytest.approx(0.25)
    assert value(found["CLS", "R@1"]) == 0.0
    assert asked == [(str(tmp_path / "runs" / "models"), "a", "b")]  # once, where the other table keeps its answers


def test_the_interval_is_over_the_queries_each_averaged_over_the_models(tmp_path, asked, source):  # noqa: ARG001
    cell = run(make_gains(), tmp_path)["pooled", "R@1"]
    assert isinstance(cell, Measured)
    assert dict(cell.queries) == {"q0": 1.0, "q1": 0.0, "q2": 0.5}
    assert cell.low == pytest.approx(0.0) and cell.high == pytest.approx(1.0)  # three queries: each extreme is drawn


def test_a_pattern_chooses_the_models_by_group_and_name(tmp_path, asked, source):  # noqa: ARG001
    found = run(make_gains(models="two/*"), tmp_path)
    assert value(found["pooled", "R@1"]) == pytest.approx(2 / 3)
    assert asked[0][1:] == ("b",)


def test_without_a_base_it_is_the_mean_and_other_rows_are_as_measured(tmp_path, asked):  # noqa: ARG001
    table = make_models(PaperRow("average", settings={"models": "*"}))
    found = run(table, tmp_path)
    assert value(found["average", "CLS"]) == pytest.approx(1 / 3)
    assert value(found["average", "GeM"]) == pytest.approx(5 / 6)
    assert value(found["a", "GeM"]) == pytest.approx(2 / 3)


def test_the_rows_of_a_choice_are_measured_and_a_mean_still_takes_all_models(tmp_path, asked, monkeypatch):
    whole = make_models(PaperRow("average", settings={"models": "*"}))
    monkeypatch.setattr(gains, "list_tables", lambda: ["p/models"])
    monkeypatch.setattr(gains, "load_table", lambda name: {"p/models": whole}[name])
    chosen = replace(whole, rows=whole.rows[2:])
    assert value(run(chosen, tmp_path)["average", "GeM"]) == pytest.approx(5 / 6)
    chosen = replace(whole, rows=whole.rows[:1])
    assert list(run(chosen, tmp_path)) == [("a", "CLS"), ("a", "GeM")]
    assert [models[1:] for models in asked] == [("a", "b"), ("a",)]


def test_a_model_that_did_not_run_is_left_out_and_named():
    cells: dict[str, Cell] = {"a": measured(1.0, 0.0), "b": NotRun("no weights"), "c": measured(1.0, 1.0)}
    found = gains.average(cells, {"a": measured(0.0, 0.0), "b": measured(0.0, 0.0), "c": measured(0.0, 0.0)})
    assert isinstance(found, Measured)
    assert found.value == pytest.approx(0.75)
    assert found.note == "mean of 2 of 3 models; not run: b"
    found = gains.average(cells, dict.fromkeys(cells, NotRun("no data")))
    assert found == NotRun("no model could run; a: no data")


@pytest.mark.parametrize(("comparison", "expected"), [("difference", 0.25), ("share", 1.5)])
def test_a_row_against_another(comparison: str, expected: float):
    # 0.75 against 0.5, over four queries of which one differs.
    found = gains.compare(measured(1, 1, 1, 0), measured(1, 1, 0, 0), comparison)
    assert isinstance(found, Measured)
    assert found.value == pytest.approx(expected)
    assert found.low is not None and found.high is not None
    assert found.low <= expected <= found.high
    same = gains.compare(measured(1, 0), measured(1, 0), comparison)
    assert isinstance(same, Measured)
    nothing = 0.0 if comparison == "difference" else 1.0
    assert (same.value, same.low, same.high) == (nothing, nothing, nothing)  # both sides draw the same queries


def test_nothing_is_compared_with_what_did_not_run_or_is_0():
    assert gains.compare(measured(1), NotRun("no weights"), "share") == NotRun("no weights")
    assert isinstance(gains.compare(measured(1), measured(0), "share"), NotRun)
    assert gains.compare(Measured(3.0), Measured(2.0), "difference") == Measured(1.0)


def test_only_rows_that_name_another_are_compared(tmp_path, asked):  # noqa: ARG001
    table = make_models()
    columns = (*table.columns, Column("kept", "recall@1", ("pooling=gem",), settings={"compare": "share"}))
    rows = (table.rows[0], replace(table.rows[1], settings={"against": "a"}))
    found = run(replace(table, columns=columns, rows=rows), tmp_path)
    assert value(found["b", "kept"]) == pytest.approx(1.5)
    assert isinstance(found["a", "kept"], NotRun)


Change = Callable[[PaperTable], PaperTable]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda table: replace(table, settings={**table.settings, "over": "Min"}), "has no column 'Min'"),
        (lambda table: replace(table, settings={**table.settings, "models": "three/*"}), "no model matches"),
        (lambda table: replace(table, settings={**table.settings, "less": 1}), "less"),
        (lambda table: replace(table, columns=(Column("R@5", "recall@5"),)), "does not measure 'recall@5'"),
        (lambda table: replace(table, rows=(PaperRow("Mean"),)), "has no column 'Mean'"),
        (
            lambda table: replace(table, rows=(PaperRow("CLS", settings={"against": "none"}),)),
            "there is no row 'none'",
        ),
        (
            lambda table: replace(table, columns=(Column("x", "ap", settings={"compare": "ratio"}),)),
            "cannot be compared",
        ),
    ],
)
def test_settings_that_name_nothing_are_refused(change: Change, problem: str, source):  # noqa: ARG001
    gains.check(make_gains())
    with pytest.raises(RecipeError, match=problem):
        gains.check(change(make_gains()))


@pytest.mark.parametrize("name", ["msls_london/table_6", "msls_london/table_12", "craterbench/two_stages"])
def test_shipped_tables_fit_and_name_their_encoders(name: str):
    table = load_table(name)
    assert table.kind == "gains"
    assert gains.requirements(table).weights

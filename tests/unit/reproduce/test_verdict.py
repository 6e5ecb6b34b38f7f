"""Verdicts, on figures worked out by hand."""

from typing import Any

import pytest

from resight.reproduce.paper_table import Column, PaperRow, PaperTable, Published
from resight.reproduce.run import Cell, Measured, NotRun
from resight.reproduce.verdict import convert, count_digits, explain_rule, find_difference, judge, judge_difference


def paper(*texts: str, doubt: str = "") -> tuple[Published, ...]:
    return tuple(Published(None if text == "—" else float(text), doubt, text) for text in texts)


def make_table(rows: dict[str, tuple[Published, ...]], columns: tuple[Column, ...] = (), **more: Any) -> PaperTable:
    return PaperTable(
        "paper/table_1",
        "title",
        "source",
        "retrieval",
        columns=columns or (Column("mAP", "ap"),),
        rows=tuple(PaperRow(name, published=cells) for name, cells in rows.items()),
        baseline="base",
        **more,
    )


def verdicts(table: PaperTable, cells: dict[tuple[str, str], Cell], like: PaperTable | None = None) -> dict[str, str]:
    return {name: verdict.word for name, verdict in judge(table, table.rows, cells, like).items()}


def test_figures_are_compared_with_our_interval_and_then_with_the_baseline() -> None:
    table = make_table({"base": paper("0.40"), "in": paper("0.50"), "up": paper("0.60"), "down": paper("0.30")})
    cells: dict[tuple[str, str], Cell] = {
        ("base", "mAP"): Measured(0.20, 0.15, 0.25),
        ("in", "mAP"): Measured(0.48, 0.45, 0.497),  # 0.50 may be 0.495 before it was rounded
        ("up", "mAP"): Measured(0.25, 0.22, 0.28),  # above ours, as in the paper
        ("down", "mAP"): Measured(0.21, 0.20, 0.22),  # above ours, below in the paper
    }
    assert verdicts(table, cells) == {
        "base": "not reproduced",
        "in": "inside the interval",
        "up": "direction kept",
        "down": "not reproduced",
    }
    found = judge(table, table.rows, cells)
    assert found["up"].detail == "outside: mAP"
    assert "baseline of directions" in found["base"].detail


def test_every_metric_has_to_agree() -> None:
    columns = (Column("mAP", "ap"), Column("R@1", "recall@1"), Column("net", text=True))
    table = make_table({"base": paper("0.4", "0.4", "—"), "row": paper("0.6", "0.6", "—")}, columns)
    cells: dict[tuple[str, str], Cell] = {
        ("base", "mAP"): Measured(0.1, 0.0, 0.2),
        ("base", "R@1"): Measured(0.1, 0.0, 0.2),
        ("row", "mAP"): Measured(0.6, 0.5, 0.7),
        ("row", "R@1"): Measured(0.05, 0.0, 0.1),
    }
    assert verdicts(table, cells)["row"] == "not reproduced"
    assert judge(table, table.rows, cells)["row"].detail == "outside: R@1"
    cells["row", "R@1"] = Measured(0.2, 0.1, 0.3)
    assert verdicts(table, cells)["row"] == "direction kept"


def test_what_was_not_run_or_not_printed() -> None:
    table = make_table({"base": paper("0.4"), "failed": paper("0.5"), "unprinted": paper("—")})
    cells: dict[tuple[str, str], Cell] = {
        ("base", "mAP"): Measured(0.4, 0.3, 0.5),
        ("failed", "mAP"): NotRun("no weights"),
        ("unprinted", "mAP"): Measured(0.5, 0.4, 0.6),
    }
    found = judge(table, table.rows, cells)
    assert str(found["failed"]) == "not run: no weights"
    assert found["unprinted"].word == "nothing to compare"
    assert found["base"].word == "inside the interval"


def test_doubtful_figures_do_not_count_and_missing_cells_are_told() -> None:
    columns = (Column("mAP", "ap"), Column("R@1", "recall@1"))
    table = make_table({"base": (*paper("0.9", doubt="0.1 in the text"), *paper("0.4"))}, columns)
    cells: dict[tuple[str, str], Cell] = {
        ("base", "mAP"): Measured(0.1, 0.0, 0.2),
        ("base", "R@1"): Measured(0.4, 0.3, 0.5),
    }
    assert verdicts(table, cells) == {"base": "inside the interval"}
    cells["base", "mAP"] = NotRun("killed")
    assert judge(table, table.rows, cells)["base"].detail == "1 of 2 cells not run: killed"


def test_a_missing_baseline_leaves_directions_unknown() -> None:
    table = make_table({"base": paper("0.4"), "row": paper("0.6")})
    cells: dict[tuple[str, str], Cell] = {("base", "mAP"): NotRun("killed"), ("row", "mAP"): Measured(0.1, 0.0, 0.2)}
    found = judge(table, table.rows, cells)["row"]
    assert found.word == "not reproduced"
    assert "directions are unknown" in found.detail


def test_facts_without_an_interval_agree_within_their_rounding() -> None:
    columns = (Column("bytes", "bytes_per_token", unit=""),)
    table = make_table({"base": paper("1536"), "int8": paper("388"), "pq": paper("96")}, columns)
    cells: dict[tuple[str, str], Cell] = {
        ("base", "bytes"): Measured(1536.0),
        ("int8", "bytes"): Measured(388.4),
        ("pq", "bytes"): Measured(98.0),
    }
    assert list(verdicts(table, cells).values()) == ["inside the interval", "inside the interval", "direction kept"]


def test_figures_are_converted_to_the_unit_of_the_paper() -> None:
    cell = Measured(0.5, 0.4, 0.6)
    percent = convert(cell, Column("mAP", "ap", unit="percent"))
    assert (percent.value, percent.low, percent.high) == (50.0, 40.0, 60.0)
    assert convert(cell, Column("mAP", "ap")) == cell
    assert convert(cell, Column("params", "params", unit="percent")) == cell  # millions
    assert [count_digits(cell) for cell in paper("0.420", "388", "—")] == [3, 0, None]


@pytest.mark.parametrize(
    ("printed", "low", "high", "word"),
    [
        (0.1, 0.01, 0.2, "confirmed"),
        (0.1, -0.01, 0.2, "unclear"),
        (0.1, -0.2, -0.01, "refuted"),
        (-0.1, -0.2, -0.01, "confirmed"),
        (0.0, -0.009, 0.009, "confirmed"),
        (0.0, -0.02, 0.009, "unclear"),
        (0.0, 0.011, 0.02, "refuted"),
    ],
)
def test_directions(printed: float, low: float, high: float, word: str) -> None:
    assert judge_difference(printed, low, high) == word


def test_differences_are_paired_where_the_queries_are_the_same() -> None:
    first = Measured(0.5, 0.1, 0.9, queries={"a": 0.2, "b": 0.8})
    second = Measured(0.4, 0.0, 0.8, queries={"a": 0.1, "b": 0.7})
    assert find_difference(first, second) == pytest.approx((0.1, 0.1))  # each query gains 0.1
    assert find_difference(first, Measured(0.4, 0.0, 0.8)) == pytest.approx((-0.7, 0.9))
    assert find_difference(Measured(3.0), Measured(1.0)) == (2.0, 2.0)


def test_a_table_like_another_is_compared_by_directions() -> None:
    like = make_table({"base": paper("0.4"), "up": paper("0.6"), "same": paper("0.4"), "printed": paper("0.5")})
    columns = (Column("ViT mAP", "ap", settings={"like": "mAP"}),)
    names = ("base", "up", "same", "other")
    table = make_table({name: paper("—") for name in names}, columns, like="paper/table_0")
    cells: dict[tuple[str, str], Cell] = {
        ("base", "ViT mAP"): Measured(0.1, 0.0, 0.2, queries={"a": 0.1, "b": 0.1}),
        ("up", "ViT mAP"): Measured(0.2, 0.1, 0.3, queries={"a": 0.2, "b": 0.2}),
        ("same", "ViT mAP"): Measured(0.1, 0.0, 0.2, queries={"a": 0.105, "b": 0.1}),
        ("other", "ViT mAP"): Measured(0.1, 0.0, 0.2),
    }
    found = judge(table, table.rows, cells, like)
    assert {name: verdict.word for name, verdict in found.items()} == {
        "base": "nothing to compare",
        "up": "confirmed",
        "same": "confirmed",
        "other": "nothing to compare",
    }
    assert found["up"].detail == "ViT mAP +0.1 [+0.1, +0.1] (paper +0.2) confirmed"
    assert "paper/table_0" in explain_rule(table)
    cells["up", "ViT mAP"] = Measured(0.05, 0.0, 0.1, queries={"a": 0.05, "b": 0.05})
    assert verdicts(table, cells, like)["up"] == "refuted"

"""Rows side by side: differences, shares and the choice of the cheapest, worked out by hand."""

import json
import math

import pytest
from evaluations import RECIPE, make_result

from resight.errors import InputError
from resight.evaluate import report
from resight.evaluate.comparison import (
    Comparison,
    Fact,
    Row,
    average,
    choose_cheapest,
    choose_metric,
    compare_pairs,
    median_seconds,
    summarise_all,
    tabulate,
)

FULL = make_result({"recall@1": [1, 1, 1, 0], "ap": [1.0, 0.8, 0.6, 0.4]}, [0.004, 0.002, 0.006, 0.1])
LESS = make_result({"recall@1": [1, 1, 0, 0], "ap": [1.0, 0.6, 0.4, 0.4]}, [0.001, 0.001, 0.001, 0.001])


def compare(**more: object) -> Comparison:
    rows = (Row("less", {"bytes": Fact(10, "10 B")}, LESS), Row("full", {"bytes": Fact(1000, "1 kB")}, FULL))
    settings = {"title": "t", "heading": "codes", "rows": rows, "reference": 1, "metric": "recall@1", "cells": "share"}
    return Comparison(**(settings | more))  # type: ignore[arg-type]


def test_a_row_has_its_facts_its_shares_its_difference_and_its_time() -> None:
    table = tabulate(compare())
    assert table.columns == ("codes", "bytes", "recall@1", "ap", "recall@1 against full", "ms a query")
    less, full = table.rows
    assert less[:4] == ("less", "10 B", "0.5000 (66.7 %)", "0.6000 (85.7 %)")  # (1+.6+.4+.4)/4 of (1+.8+.6+.4)/4
    assert less[4].startswith("-0.2500 [")
    assert less[5] == "1.0"
    assert full == ("full", "1 kB", "0.7500 (100.0 %)", "0.7000 (100.0 %)", "", "5.0")  # median of 2, 4, 6 and 100


def test_beside_a_mean_may_stand_its_interval_or_what_was_lost() -> None:
    assert tabulate(compare(cells="loss")).rows[0][2] == "0.5000 -0.2500"
    assert tabulate(compare(cells="loss")).rows[1][2] == "0.7500"
    assert "±" in tabulate(compare(cells="interval")).rows[0][2]


def test_the_notes_say_what_figures_mean() -> None:
    notes = " | ".join(tabulate(compare(notes=("first",))).notes)
    assert notes.startswith("first")
    for part in ("what ap means", "pairs", "encoding a query took 500 ms", "boxes of the best took 200 ms"):
        assert part in notes


def test_values_for_programs_hold_every_row_whole() -> None:
    values = json.loads(report.to_json(summarise_all(compare(chosen=0, settings={"curve": "x", "loss": 0.1}))))
    assert (values["chosen"], values["reference"], values["curve"], values["loss"]) == ("less", "full", "x", 0.1)
    less = values["rows"][0]
    assert (less["label"], less["bytes"], less["rank_seconds_a_query"]) == ("less", 10, pytest.approx(0.001))
    assert less["against_reference"]["ap"]["difference"] == pytest.approx(-0.1)
    assert less["against_reference"]["ap"]["share"] == pytest.approx(6 / 7)
    assert less["evaluation"]["metrics"]["recall@1"]["mean"] == 0.5
    assert len(less["evaluation"]["per_query"]) == 4


def test_the_page_marks_the_chosen_row_and_shows_the_answer() -> None:
    page = report.to_html(tabulate(compare(chosen=0, answer="less <is> enough")))
    assert "<tr class=chosen><th scope=row>less" in page
    assert "<p class=answer>less &lt;is&gt; enough</p>" in page
    assert page.count("class=chosen") == 1


def test_latex_has_a_line_for_the_head_and_for_each_row() -> None:
    latex = report.to_latex(tabulate(compare(answer="enough")))
    assert latex.count(r"\\") == 3
    assert r"66.7 \%" in latex
    assert "% enough" in latex


def test_a_paired_difference_knows_that_the_queries_are_the_same() -> None:
    lower = make_result({"ap": [0.0, 0.5, 0.9]})
    higher = make_result({"ap": [0.1, 0.6, 1.0]})
    pair = compare_pairs(higher, lower, "ap")
    assert [pair[key] for key in ("difference", "low", "high")] == pytest.approx([0.1, 0.1, 0.1])


def test_there_is_no_share_of_nothing() -> None:
    nothing = make_result({"ap": [0.0, 0.0]})
    assert compare_pairs(nothing, nothing, "ap")["share"] is None
    rows = (Row("a", {}, nothing), Row("b", {}, nothing))
    assert tabulate(compare(rows=rows, metric="ap")).rows[0][1] == "0.0000"


def test_values_that_a_metric_does_not_have_are_left_out_of_its_mean() -> None:
    assert average(make_result({"locscore": [0.5, math.nan]}), "locscore") == 0.5
    unknown = make_result({"locscore": [math.nan]})
    assert math.isnan(average(unknown, "locscore"))
    assert tabulate(compare(rows=(Row("a", {}, unknown),), reference=0, metric="locscore")).rows[0][1] == "–"


def test_the_median_is_that_of_the_time_until_the_images_are_in_order() -> None:
    assert median_seconds(FULL) == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("loss", "chosen"),
    [(0.0, 3), (0.06, 2), (0.1, 1), (0.9, 0)],
)
def test_the_cheapest_that_keeps_enough_is_chosen(loss: float, chosen: int) -> None:
    assert choose_cheapest([0.40, 0.72, 0.76, 0.80], [1, 2, 3, 4], 0.80, loss) == chosen


def test_at_equal_cost_the_better_one_is_chosen_and_none_when_none_is_good_enough() -> None:
    assert choose_cheapest([0.70, 0.75, 0.80], [5, 5, 9], 0.80, 0.2) == 1
    assert choose_cheapest([0.1, math.nan], [1, 2], 0.8, 0.1) is None


def test_the_metric_is_the_recipes_first_or_the_one_that_is_named() -> None:
    assert choose_metric(RECIPE, "") == "recall@1"
    assert choose_metric(RECIPE, "ap") == "ap"
    with pytest.raises(InputError, match="does not measure 'map'"):
        choose_metric(RECIPE, "map")

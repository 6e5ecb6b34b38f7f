"""Rows side by side: differences, shares and the choice of the cheapest, worked out by hand."""

import json
import math
from dataclasses import replace

import pytest
from support.evaluations import RECIPE, make_summary

from resight.errors import InputError
from resight.evaluate import table as tables
from resight.evaluate.evaluation import (
    AbsentRow,
    Evaluation,
    Fact,
    Row,
    choose_cheapest,
    choose_metric,
    find_difference,
    rank_best,
)
from resight.evaluate.pages.evaluation_page import render
from resight.evaluate.summary_file import to_json

FULL = make_summary({"recall@1": [1, 1, 1, 0], "ap": [1.0, 0.8, 0.6, 0.4]}, [0.004, 0.002, 0.006, 0.1])
LESS = make_summary({"recall@1": [1, 1, 0, 0], "ap": [1.0, 0.6, 0.4, 0.4]}, [0.001, 0.001, 0.001, 0.001])


def evaluation(**more: object) -> Evaluation:
    rows = (Row("less", LESS, {"bytes": Fact(10, "10 B")}), Row("full", FULL, {"bytes": Fact(1000, "1 kB")}))
    settings = {"title": "t", "heading": "codes", "rows": rows, "reference": 1, "metric": "recall@1", "cells": "share"}
    return Evaluation(**(settings | more))  # type: ignore[arg-type]


def test_a_row_has_its_facts_its_shares_its_difference_and_its_time() -> None:
    table = evaluation().table
    assert table.columns == ("codes", "bytes", "recall@1", "ap", "recall@1 against full", "ms per query")
    less, full = table.rows
    assert less[:4] == ("less", "10 B", "0.5000 (66.7 %)", "0.6000 (85.7 %)")  # (1+.6+.4+.4)/4 of (1+.8+.6+.4)/4
    assert less[4].startswith("-0.2500 [")
    assert less[5] == "1.0"
    assert full == ("full", "1 kB", "0.7500 (100.0 %)", "0.7000 (100.0 %)", "", "5.0")  # median of 2, 4, 6 and 100


def test_beside_a_mean_may_stand_its_interval_or_what_was_lost() -> None:
    assert evaluation(cells="loss").table.rows[0][2] == "0.5000 -0.2500"
    assert evaluation(cells="loss").table.rows[1][2] == "0.7500"
    assert "±" in evaluation(cells="interval").table.rows[0][2]


def test_the_notes_say_what_figures_mean() -> None:
    notes = " | ".join(evaluation(notes=("first",)).table.notes)
    assert notes.startswith("first")
    for part in ("what ap means", "pairs", "encoding a query took 500 ms", "boxes of the best took 200 ms"):
        assert part in notes


def test_values_for_programs_hold_every_row_whole() -> None:
    values = json.loads(to_json(evaluation(chosen=0, settings={"curve": "x", "loss": 0.1}).to_dict()))
    assert (values["chosen"], values["reference"], values["curve"], values["loss"]) == ("less", "full", "x", 0.1)
    less = values["rows"][0]
    assert (less["label"], less["bytes"], less["rank_seconds_a_query"]) == ("less", 10, pytest.approx(0.001))
    assert less["against_reference"]["ap"]["difference"] == pytest.approx(-0.1)
    assert less["against_reference"]["ap"]["share"] == pytest.approx(6 / 7)
    assert less["evaluation"]["metrics"]["recall@1"]["mean"] == 0.5
    assert len(less["evaluation"]["per_query"]) == 4


def test_the_page_marks_the_chosen_row_and_shows_the_answer() -> None:
    page = render(evaluation(chosen=0, answer="less <is> enough").table)
    assert '<tr class="chosen"><th scope="row">less' in page
    assert '<p class="answer">less &lt;is&gt; enough</p>' in page
    assert page.count('class="chosen"') == 1


def test_latex_has_a_line_for_the_head_and_for_each_row() -> None:
    latex = tables.to_latex(evaluation(answer="enough").table)
    assert latex.count(r"\\") == 3
    assert r"66.7 \%" in latex
    assert "% enough" in latex


def test_a_paired_difference_knows_that_the_queries_are_the_same() -> None:
    lower = make_summary({"ap": [0.0, 0.5, 0.9]})
    higher = make_summary({"ap": [0.1, 0.6, 1.0]})
    pair = find_difference(higher, lower, "ap")
    assert [pair.difference, pair.low, pair.high] == pytest.approx([0.1, 0.1, 0.1])


def test_there_is_no_share_of_nothing() -> None:
    nothing = make_summary({"ap": [0.0, 0.0]})
    assert find_difference(nothing, nothing, "ap").share is None
    rows = (Row("a", nothing, {}), Row("b", nothing, {}))
    assert evaluation(rows=rows, metric="ap").table.rows[0][1] == "0.0000"


def test_values_that_a_metric_does_not_have_are_left_out_of_its_mean() -> None:
    assert make_summary({"locscore": [0.5, math.nan]}).figures["locscore"].mean == 0.5
    unknown = make_summary({"locscore": [math.nan]})
    assert math.isnan(unknown.figures["locscore"].mean)
    assert evaluation(rows=(Row("a", unknown, {}),), reference=0, metric="locscore").table.rows[0][1] == "–"


def test_the_median_is_that_of_the_time_until_the_images_are_in_order() -> None:
    assert FULL.rank_seconds == pytest.approx(0.005)


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


GOOD = make_summary({"recall@1": [1, 1, 1, 0], "ap": [0.9, 0.9, 0.9, 0.5]})  # 0.75 and 0.80
WEAK = make_summary({"recall@1": [1, 0, 0, 0], "ap": [0.9, 0.9, 0.9, 0.9]})  # 0.25 and 0.90


def rank(**more: object) -> Evaluation:
    """FULL has 0.75 and 0.70, LESS 0.50 and 0.60."""
    rows = tuple(
        Row(label, summary, {"bytes": Fact(10, "10 B")})
        for label, summary in (("full", FULL), ("less", LESS), ("good", GOOD), ("weak", WEAK))
    )
    return evaluation(**({"rows": rows, "reference": 0, "cells": "interval", "ranked": True} | more))


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([0.1, 0.3, 0.2], {1: "best", 2: "second"}),
        ([0.3, 0.1, 0.3, 0.2, 0.2], {0: "best", 2: "best", 3: "second", 4: "second"}),
        ([0.30001, 0.30002, 0.1], {0: "best", 1: "best", 2: "second"}),  # written alike
        ([math.nan, 0.1], {1: "best"}),
        ([math.nan], {}),
        ([], {}),
    ],
)
def test_the_best_and_the_second_best_are_found_and_ties_share(values: list[float], marks: dict[int, str]) -> None:
    assert rank_best(values) == marks


def test_metrics_are_marked_and_what_a_row_costs_is_not() -> None:
    table = rank().table
    assert table.columns[1:4] == ("bytes", "recall@1", "ap")
    assert table.marks == {(0, 2): "best", (2, 2): "best", (1, 2): "second", (3, 3): "best", (2, 3): "second"}
    assert rank(ranked=False).table.marks == {}
    assert rank(rows=(Row("full", FULL, {}),)).table.marks == {}  # alone, it is no better than any other


def test_marks_stand_on_the_figure_alone_in_html_and_latex() -> None:
    page, latex = render(rank().table), tables.to_latex(rank().table)
    assert page.count("<strong>0.7500</strong><small> ±") == 2
    assert "<u>0.5000</u><small> ±" in page
    assert '<p class="legend"><strong>bold</strong>' in page
    assert latex.count(r"\textbf{0.7500} $\pm$") == 2
    assert r"\underline{0.8000} $\pm$" in latex
    assert f"% {tables.LEGEND}" in latex
    plain = render(evaluation().table)
    assert "<strong>" not in plain
    assert 'class="legend"' not in plain


def test_marks_stand_beside_the_values_for_programs() -> None:
    figures = [row["evaluation"]["metrics"]["recall@1"] for row in rank().to_dict()["rows"]]
    assert [figure.get("best") for figure in figures] == [True, None, True, None]
    assert [figure.get("second") for figure in figures] == [None, True, None, None]
    assert figures[0]["mean"] == 0.75


def test_rows_without_figures_stand_in_their_place_and_say_why() -> None:
    absent = (AbsentRow("a", 0, "no net <here>"), AbsentRow("b", 2, "no net <here>"), AbsentRow("c", 4, "gated"))
    table = rank(absent=absent, chosen=1).table
    assert [row[0] for row in table.rows] == ["a", "full", "less", "b", "good", "weak", "c"]
    assert table.rows[3] == ("b", "–", "–", "–", "–", "–")
    assert table.marks[1, 2] == "best"  # it has moved with its row
    assert table.chosen == 2
    assert tables.explain_absent(table) == ["a; b: no net <here>", "c: gated"]
    values = json.loads(to_json(rank(absent=absent).to_dict()))
    assert values["missing"] == {"a": "no net <here>", "b": "no net <here>", "c": "gated"}
    assert [row["label"] for row in values["rows"]] == ["full", "less", "good", "weak"]
    page = render(table)
    assert '<tr class="absent" title="no net &lt;here&gt;"><th scope="row">a' in page
    assert '<h3>Not measured</h3>\n<ul class="notes"><li>a; b: no net &lt;here&gt;</li>' in page
    assert "% Not measured: c: gated" in tables.to_latex(table)


def test_rows_that_lack_the_same_share_its_words() -> None:
    reasons = {"a": "no net", "b": "no x; get it", "c": "no y; get it", "d": "no x; get it", "e": "gated; ask"}
    assert tables.explain_absent(tables.Table("t", ("v",), (), (), absent=reasons)) == [
        "a: no net",
        "b; d: no x",
        "c: no y",
        "to fix these 2: get it",
        "e: gated; ask",
    ]


def test_latex_shows_every_letter_of_a_label() -> None:
    table = tables.Table("t", ("a", "b"), ((r"50% {of} a_b & $x^2 ~\y", "1"),), ())
    assert r"50\% \{of\} a\_b \& \$x\^{}2 \~{}\textbackslash{}y & 1 \\" in tables.to_latex(table)


def test_the_time_to_encode_is_told_once_where_all_rows_share_it() -> None:
    def note(found: Evaluation) -> str:
        return next(note for note in found.table.notes if note.startswith("ms per query"))

    assert "encoding a query took 500 ms, once for all rows" in note(rank())
    slow = replace(GOOD, queries=tuple(replace(query, encode_seconds=3.0) for query in GOOD.queries))
    assert "500 ms" not in note(rank(rows=(Row("full", FULL, {}), Row("slow", slow, {}))))

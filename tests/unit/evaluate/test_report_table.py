"""Files of evaluations side by side: rows, groups of columns, differences, sweeps and the front of costs."""

import importlib
import json
import math
from pathlib import Path

import pytest
from support.evaluations import make_summary

from resight.errors import InputError
from resight.evaluate import table as tables
from resight.evaluate.comparison import compare
from resight.evaluate.evaluation import Evaluation, Fact, Row, single_row
from resight.evaluate.pages.charts import Dot, find_front, format_number
from resight.evaluate.pages.evaluation_page import render
from resight.evaluate.strata_tables import chart_settings, flatten
from resight.evaluate.summary_file import to_json
from resight.types import Branch, Choice, Recipe

LOW = {"recall@1": [0.0, 1.0, 0.0, 1.0], "ap": [0.2, 0.6, 0.4, 0.8]}
HIGH = {"recall@1": [1.0, 1.0, 0.0, 1.0], "ap": [0.3, 0.7, 0.5, 0.9]}


def recipe(name: str, k: int, data: str = "walls") -> Recipe:
    branch = Branch(Choice("sift"), Choice("aggregated", {"k": k}))
    return Recipe(name, (branch,), data=Choice(data), metrics=("recall@1", "ap"))


def write(path: Path, values: dict[str, object]) -> str:
    path.write_text(to_json(values), encoding="utf-8")
    return str(path)


def single(path: Path, name: str, values: dict[str, list[float]], k: int = 8, data: str = "walls") -> str:
    return write(path, single_row(make_summary(values, recipe=recipe(name, k, data)), name).to_dict())


def sweep(counts: list[int]) -> Evaluation:
    rows = tuple(
        Row(
            f"k={k}",
            make_summary({"ap": [k / 100]}, [k / 1000], recipe=recipe(f"k={k}", k)),
            {"bytes an image": Fact(100.0 * k, str(100 * k))},
        )
        for k in counts
    )
    return Evaluation("t", rows, metric="ap", ranked=True)


def test_two_runs_stand_in_one_table_with_their_paired_difference(tmp_path: Path) -> None:
    files = [single(tmp_path / "a.json", "low", LOW), single(tmp_path / "b.json", "high", HIGH)]
    table = compare(files, metric="ap").table
    assert table.columns == ("configuration", "recall@1", "ap", "ap against low", "ms per query")
    assert [row[0] for row in table.rows] == ["low", "high"]
    assert table.rows[1][3] == "+0.1000 [+0.1000, +0.1000]"  # four queries are too few for a star
    assert table.marks == {(1, 1): "best", (0, 1): "second", (1, 2): "best", (0, 2): "second"}
    assert table.groups == ()


def test_many_data_sets_are_groups_of_columns_and_a_mean_follows(tmp_path: Path) -> None:
    files = [
        f"one={single(tmp_path / 'a.json', 'x', LOW)}",
        f"one={single(tmp_path / 'b.json', 'y', HIGH, data='roofs')}",
        f"two={single(tmp_path / 'c.json', 'z', HIGH)}",
    ]
    table = compare(files, metrics=["ap"]).table
    assert [count for _, count in table.groups] == [3, 2, 1]
    assert [row[0] for row in table.rows] == ["one", "two"]
    assert table.rows[0][-1] == "0.5500"  # (0.5 + 0.6) / 2
    assert table.rows[1][-1] == "–"  # it lacks one data set
    latex, markdown = tables.to_latex(table), tables.to_markdown(table)
    assert r"\multicolumn{3}{c}" in latex
    assert r"\cmidrule(lr){2-4}\cmidrule(lr){5-6}\cmidrule(lr){7-7}" in latex
    assert markdown.count("\n| ") == 4
    assert "all data sets: mean ap" in markdown


def test_other_queries_are_refused_by_name(tmp_path: Path) -> None:
    first = single(tmp_path / "a.json", "low", LOW)
    fewer = single(tmp_path / "b.json", "fewer", {name: values[:3] for name, values in HIGH.items()})
    with pytest.raises(InputError, match="not judged on the same queries") as refused:
        compare([first, fewer])
    assert "'q3'" in refused.value.actual


def test_files_that_are_no_evaluations_are_refused(tmp_path: Path) -> None:
    wrong, newer = tmp_path / "wrong.json", tmp_path / "newer.json"
    wrong.write_text("[1]", encoding="utf-8")
    newer.write_text('{"rows": [], "schema": 99}', encoding="utf-8")
    for path, words in (
        (wrong, "not the file of an evaluation"),
        (newer, "another version"),
        (tmp_path, "cannot read"),
    ):
        with pytest.raises(InputError, match=words):
            compare([str(path)])


def test_rows_of_one_label_are_told_apart_by_their_files(tmp_path: Path) -> None:
    same = [single(tmp_path / name, "same", LOW) for name in ("a.json", "b.json")]
    assert [row.label for row in compare(same).rows] == ["same (a)", "same (b)"]


def test_a_file_has_all_that_is_needed_to_repeat_and_to_trust_it(tmp_path: Path) -> None:
    values = json.loads(Path(single(tmp_path / "a.json", "low", {"ap": [0.5, math.nan]})).read_text(encoding="utf-8"))
    assert values["schema"] == 2
    assert {"python", "resight", "numpy", "onnxruntime"} <= values["versions"].keys()
    assert values["machine"]["cores"] >= 1
    assert values["seeds"] == {"bootstrap": 0, "map": 0}
    assert values["recipe"]["branches"][0]["descriptor"]["k"] == 8
    assert values["per_query"][1]["ap"] is None  # JSON has no NaN


def test_a_number_that_alone_differs_is_drawn_against_quality() -> None:
    (chart,) = chart_settings(sweep([4, 8, 64]).rows, "ap")
    assert (chart.title, chart.x_label, chart.ticks) == ("ap against k", "k, logarithmic", ("4", "8", "64"))
    assert chart.lines[0].values == (0.04, 0.08, 0.64)
    assert chart_settings(sweep([4, 8]).rows, "ap") == ()
    assert flatten({"a": [{"k": 1}], "b": 2}) == {"a.0.k": 1, "b": 2}


def test_the_front_is_what_nothing_cheaper_beats() -> None:
    dots = [Dot("a", 1, 0.5), Dot("b", 2, 0.4), Dot("c", 3, 0.7), Dot("d", 3, 0.6), Dot("e", 9, 0.7)]
    assert [dots[number].name for number in find_front(dots)] == ["a", "c"]
    assert [format_number(value) for value in (0.5, 12, 1500, 2_000_000)] == ["0.5", "12", "1.5k", "2M"]


def test_markdown_marks_and_escapes() -> None:
    table = tables.Table("a_b", ("v", "ap"), (("x|y", "0.5 ±0.1"),), ("note",), marks={(0, 1): "best"})
    lines = tables.to_markdown(table).splitlines()
    assert lines[0] == r"**a\_b**"
    assert lines[4] == r"| x\|y | **0.5** ±0.1 |"
    assert lines[-1] == "- note"


def test_the_page_has_plots_of_costs_and_hides_nothing_behind_a_server() -> None:
    comparison = compare([sweep([4, 8, 64])])
    page = render(comparison.table, comparison)
    for words in ("ap against bytes per image", "ap against ms per query", "ap against k", "How it was made"):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_an_evaluation_read_from_a_file_has_the_rows_that_were_written(tmp_path: Path) -> None:
    written = sweep([4, 8])
    read = Evaluation.read(write(tmp_path / "a.json", written.to_dict()))
    for before, after in zip(written.rows, read.rows, strict=True):
        assert (after.label, after.summary) == (before.label, before.summary)
        assert (after.median_seconds, after.source) == (before.median_seconds, "a.json")
        assert after.facts["bytes an image"].value == before.facts["bytes an image"].value
    assert (read.title, read.metric, read.reference) == ("t", "ap", 0)


def test_every_interval_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = sweep([4, 8, 64])
    calls: list[str] = []
    for module, name in (("evaluation", "paired_interval"), ("report_table", "compare_many")):
        home = importlib.import_module(f"resight.evaluate.{module}")
        original = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *a, name=name, run=original, **k: (calls.append(name), run(*a, **k))[1])
    monkeypatch.setattr("resight.evaluate.summary.bootstrap_interval", lambda *_: calls.append("bootstrap"))
    comparison = compare([evaluation])
    for _ in range(2):
        tables.to_latex(evaluation.table)
        tables.to_markdown(comparison.table)
        evaluation.to_dict()
        render(comparison.table, comparison)
        render(evaluation.table, comparison)
    assert calls.count("paired_interval") == len(evaluation.rows)  # one metric
    assert (calls.count("compare_many"), calls.count("bootstrap")) == (1, 0)

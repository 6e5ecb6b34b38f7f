"""Runs and truths in every form that people have them in give the same figures."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resight
from resight.errors import InputError
from resight.evaluate import judge as judge_one
from resight.evaluate import trec
from resight.evaluate.given_runs import is_run, read_run, read_truth
from resight.types import Dataset, Hit, ImageRef, Judgement

RUN = {"p": {"a": 0.9, "c": 0.6, "b": 0.3}, "q": {"c": 0.7, "b": 0.2}}
TRUTH = {"p": {"a": 2, "b": 1, "x": -1}, "q": {"b": 1}}
AP = ((1 + 2 / 3) / 2 + 1 / 2) / 2
ROWS = [(query, id, score) for query, ranked in RUN.items() for id, score in ranked.items()]
GRADES = [(query, id, grade) for query, graded in TRUTH.items() for id, grade in graded.items()]


def list_runs(folder: Path) -> dict[str, Any]:
    """The same run in every form."""
    pandas, polars = (pytest.importorskip(name) for name in ("pandas", "polars"))
    columns = {name: [row[n] for row in ROWS] for n, name in enumerate(("query", "image", "score"))}
    trec.write_run(folder / "a.run", [(query, list(ranked), list(ranked.values())) for query, ranked in RUN.items()])
    return {
        "scores": RUN,
        "shuffled scores": {query: dict(reversed(ranked.items())) for query, ranked in RUN.items()},
        "ids": {query: list(ranked) for query, ranked in RUN.items()},
        "pairs": {query: list(ranked.items()) for query, ranked in RUN.items()},
        "arrays": {query: np.array(list(ranked)) for query, ranked in RUN.items()},
        "hits": {q: [Hit(id, Path(id), score, None) for id, score in one.items()] for q, one in RUN.items()},
        "rankings": [(query, list(ranked), list(ranked.values())) for query, ranked in RUN.items()],
        "file": folder / "a.run",
        "name of a file": str(folder / "a.run"),
        "pandas": pandas.DataFrame(columns),
        "shuffled frame": pandas.DataFrame(columns).sample(frac=1, random_state=0),
        "polars": polars.DataFrame(columns),
        "pyarrow": polars.DataFrame(columns).to_arrow(),
        "columns of ranx": pandas.DataFrame(columns).rename(columns={"query": "q_id", "image": "doc_id"}),
        "ranks": pandas.DataFrame({**columns, "rank": [1, 2, 3, 1, 2]}).drop(columns="score"),
    }


def list_truths(folder: Path) -> dict[str, Any]:
    pandas, polars = (pytest.importorskip(name) for name in ("pandas", "polars"))
    columns = {name: [row[n] for row in GRADES] for n, name in enumerate(("query", "image", "grade"))}
    judged = {"p": Judgement({"a": 2, "b": 1}, frozenset({"x"})), "q": Judgement({"b": 1})}
    trec.write_qrels(folder / "truth.qrels", judged.items())
    refs = tuple(ImageRef(name, Path(name)) for name in "abcx")
    return {
        "grades": TRUTH,
        "positives": {"p": ["a", "b"], "q": "b"},
        "sets": {"p": {"a", "b"}, "q": {"b"}},
        "judgements": judged,
        "file": folder / "truth.qrels",
        "pandas": pandas.DataFrame(columns),
        "polars": polars.DataFrame(columns),
        "without grades": pandas.DataFrame({"qid": ["p", "p", "q"], "docno": ["a", "b", "b"]}),
        "floats": pandas.DataFrame({**columns, "grade": [float(grade) for grade in columns["grade"]]}),
        "data set": Dataset("mine", refs, (), judged),
    }


def test_a_run_in_every_form_gives_the_same_figure(tmp_path: Path) -> None:
    for form, run in list_runs(tmp_path).items():
        assert resight.judge(run, TRUTH, ["ap"]).figures["ap"].value == pytest.approx(AP), form


def test_a_truth_in_every_form_gives_the_same_figure(tmp_path: Path) -> None:
    for form, truth in list_truths(tmp_path).items():
        assert resight.judge(RUN, truth, ["ap"]).figures["ap"].value == pytest.approx(AP), form


def test_the_figure_is_that_of_the_function_for_one_query() -> None:
    judged = resight.judge(RUN, TRUTH, ["ap"])
    assert judged.values["p"]["ap"] == judge_one(list(RUN["p"]), Judgement({"a": 2, "b": 1}), ["ap"])["ap"]


def test_numbers_are_ids_too() -> None:
    assert resight.judge({1: [7, 8]}, {1: [8]}, ["ap"]).figures["ap"].value == 0.5


def test_scores_reach_metrics_of_a_whole_run() -> None:
    assert resight.judge(RUN, TRUTH, ["uap"]).figures["uap"].value > 0
    with pytest.raises(InputError, match="scores"):
        resight.judge({query: list(ranked) for query, ranked in RUN.items()}, TRUTH, ["uap"])


def test_a_data_set_gives_the_ids_that_a_ranking_may_hold() -> None:
    data = Dataset("mine", (ImageRef("a", Path("a")),), (), {"p": Judgement({"a": 1})})
    with pytest.raises(InputError, match="lacks"):
        resight.judge({"p": ["a", "typo"]}, data, ["ap"])


def test_evaluate_judges_a_run() -> None:
    assert resight.evaluate(RUN, TRUTH, metrics=["ap"]).figures["ap"].value == pytest.approx(AP)
    assert list(resight.evaluate(RUN, TRUTH).figures) == ["ap", "recall@1", "recall@10", "precision@10"]
    rankings = [(query, list(ranked)) for query, ranked in RUN.items()]
    assert resight.evaluate(rankings, TRUTH, metrics=["ap"]).figures["ap"].value == pytest.approx(AP)


def test_options_that_a_run_has_no_use_for_are_refused() -> None:
    evaluate: Any = resight.evaluate
    with pytest.raises(InputError, match="by, strata cannot be given with a run"):
        evaluate(RUN, TRUTH, by="label", strata=["size"])


def test_what_is_a_run(tmp_path: Path) -> None:
    file = tmp_path / "mine.run"
    assert not is_run(file)
    file.write_text("q Q0 a 1 0.5 x\n")
    assert is_run(file) and is_run(RUN) and not is_run("sift") and not is_run(["sift", "tokens"])


@pytest.mark.parametrize(
    ("run", "truth", "words"),
    [
        (3, TRUTH, "this is no run"),
        ({"p": "a"}, TRUTH, "this is no ranking of 'p'"),
        ({"p": 3}, TRUTH, "this is no ranking of 'p'"),
        (["p"], TRUTH, "this is no ranking"),
        (RUN, None, "this is no truth"),
        (RUN, {"p": 1}, "this is no truth of 'p'"),
        (RUN, {"p": {"a": 0.5}}, "the grade of 'a'"),
        (RUN, {"p": {"a": "high"}}, "the grade of 'a'"),
        ({"p": ["a", "a"]}, TRUTH, "more than once"),
        ({"p": {"a": float("nan"), "b": 1.0}}, TRUTH, "the score of 'a' for the query 'p'"),
        ({"p": {"a": "high"}}, TRUTH, "the score of 'a'"),
        ({"p": [("a", None)]}, TRUTH, "the score of 'a'"),
        ([("p", None)], TRUTH, "this is no ranking of 'p'"),
    ],
)
def test_anything_else_is_refused_with_what_was_expected(run: Any, truth: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        resight.judge(run, truth, missing="leave")
    assert caught.value.expected or caught.value.fix


def test_a_frame_without_the_columns_is_refused_with_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"left": ["p"], "right": ["a"]})
    with pytest.raises(InputError, match="has no column 'query'"):
        read_run(frame)
    with pytest.raises(InputError, match="has no column 'query'"):
        read_truth(frame)


def test_reading_dictionaries_imports_no_library_of_frames() -> None:
    before = set(sys.modules)
    read_run(RUN)
    read_truth(TRUTH)
    assert not {"pandas", "polars", "ranx"} & (set(sys.modules) - before)


def test_results_convert_to_frames_latex_and_html() -> None:
    pytest.importorskip("pandas")
    judged = resight.judge(RUN, TRUTH, ["ap", "recall@1"])
    frame = judged.to_frame()
    assert list(frame.columns) == ["metric", "value", "low", "high", "queries"]
    assert frame["value"][0] == pytest.approx(AP)
    queries = judged.to_frame(per_query=True)
    assert list(queries["query"]) == ["p", "q"] and list(queries["recall@1"]) == [1.0, 0.0]
    assert r"\toprule" in judged.to_latex() and judged.to_markdown().startswith("**2 queries**")
    assert judged._repr_html_().count("<tr>") == 3


def test_runs_are_compared_in_pairs_of_queries() -> None:
    first = resight.judge(RUN, TRUTH, ["ap"])
    better = resight.judge({"p": ["a", "b"], "q": ["b"]}, TRUTH, ["ap"])
    (compared,) = first.compare({"better": better})["ap"]
    assert compared.label == "better" and compared.difference == pytest.approx(1 - AP)

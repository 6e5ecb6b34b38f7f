"""`resight judge`: rankings of any origin against qrels or a data set, from the command line."""

import json
from pathlib import Path

import pytest
from support.running import run
from support.scenes import draw_scene, write_jpeg


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Qrels of four queries and two runs; in `good` every positive is first, in `poor` second."""
    (tmp_path / "qrels").write_text(
        "".join(f"q{n} 0 a {1 + n % 2}\n" for n in range(4)) + "alone 0 a 0\nq0 0 junk -1\n"
    )
    for name, order in (("good", "ab"), ("poor", "ba")):
        lines = [f"q{n} Q0 {id} {rank} {1 - 0.4 * rank} t" for n in range(4) for rank, id in enumerate(order, 1)]
        (tmp_path / name).write_text("\n".join([*lines, "q0 Q0 junk 0 1 t", "alone Q0 b 1 0.5 t", "else Q0 b 1 0.5 t"]))
    return tmp_path


def test_run_is_judged_by_qrels(files: Path) -> None:
    answer = run("judge", files / "poor", "--qrels", files / "qrels", "--metric", "ap", "--json").answer
    judged = answer["runs"][str(files / "poor")]
    assert judged["metrics"]["ap"]["value"] == 0.5
    assert (judged["queries"], judged["unjudged"], judged["without_positives"]) == (4, ["else"], ["alone"])
    assert judged["per_query"]["q0"] == {"ap": 0.5}  # the junk above has left


def test_table_shows_each_figure_with_its_convention(files: Path) -> None:
    ran = run("judge", files / "good", "--qrels", files / "qrels", "--metric", "easy/ap", "--metric", "uap")
    assert (ran.code, ran.err) == (0, "")
    assert "1.0000 ±0.000" in ran.out
    assert "Easy: grade 2 and above are positives" in ran.out
    assert "Queries without a value: 2." in ran.out
    assert "for lack of judgements: 1" in ran.out


def test_runs_are_compared_by_paired_tests(files: Path) -> None:
    words = ("judge", files / "good", "--qrels", files / "qrels", "--metric", "ap", "--compare", files / "poor")
    answer = run(*words, "--json").answer
    (one,) = answer["differences"]["ap"]
    assert (one["label"], one["difference"], one["queries"]) == (str(files / "poor"), -0.5, 4)
    assert one["p"]["randomisation"] == one["corrected"]["randomisation"] == 2 / 2**4
    assert set(answer["runs"]) == {str(files / "good"), str(files / "poor")}
    table = run(*words)
    assert table.code == 0
    assert "-0.5000 [-0.5000, -0.5000]" in table.out
    assert "holm" in table.out


def test_json_has_null_where_there_is_no_value(files: Path) -> None:
    (files / "qrels").write_text("q0 0 a 2\n")
    ran = run("judge", files / "good", "--qrels", files / "qrels", "--metric", "hard/ap", "--json")
    assert "NaN" not in ran.out
    assert json.loads(ran.out)["runs"][str(files / "good")]["metrics"]["hard/ap"]["value"] is None


def test_query_that_the_run_lacks_is_named_and_may_be_counted_as_zero(files: Path) -> None:
    with (files / "qrels").open("a") as file:
        file.write("q9 0 a 1\n")
    words = ("judge", files / "good", "--qrels", files / "qrels", "--metric", "ap", "--json")
    refused = run(*words)
    assert (refused.code, refused.out) == (2, "")
    assert "lacks 'q9'" in refused.err
    judged = run(*words, "--missing", "zero").answer["runs"][str(files / "good")]
    assert (judged["metrics"]["ap"]["value"], judged["missing"], judged["positives_not_found"]) == (0.8, ["q9"], 1)


def test_bad_line_is_named(files: Path) -> None:
    with (files / "good").open("a") as file:
        file.write("\nq0 Q0 c 3\n")
    ran = run("judge", files / "good", "--qrels", files / "qrels")
    assert ran.code == 2
    assert f"{files / 'good'}, line 12" in ran.err


@pytest.mark.parametrize(
    "words", [(), ("--data", "here"), ("--recipe", "museum_tokens"), ("--qrels", "a", "--data", "b", "--recipe", "c")]
)
def test_truth_that_is_missing_or_twofold_is_refused(files: Path, words: tuple[str, ...]) -> None:
    ran = run("judge", files / "good", *words)
    assert ran.code == 2
    assert "--qrels FILE, or --data ROOT with --recipe NAME" in ran.err


@pytest.mark.parametrize(("option", "value"), [("--missing", "guess"), ("--correction", "tukey"), ("--metric", "map")])
def test_unknown_choice_is_refused(files: Path, option: str, value: str) -> None:
    ran = run("judge", files / "good", "--qrels", files / "qrels", "--compare", files / "poor", option, value)
    assert ran.code == 2
    assert value in ran.err


def test_run_is_judged_by_a_data_set(tmp_path: Path) -> None:
    for number in range(3):
        write_jpeg(tmp_path / f"{number}.jpg", draw_scene(number))
    rows = ["path,role,positives", "0.jpg,query,1.jpg", "1.jpg,database,", "2.jpg,database,"]
    (tmp_path / "views.csv").write_text("\n".join(rows))
    (tmp_path / "views.toml").write_text(
        'name = "views"\ndata = "manifest"\nmetrics = ["ap", "locscore"]\n\n'
        '[[branches]]\nencoder = "sift"\ndescriptor = "vlad"\n'
    )
    (tmp_path / "run").write_text("0.jpg Q0 2.jpg 1 9 t\n0.jpg Q0 1.jpg 2 8 t\n")
    words = ("judge", tmp_path / "run", "--data", tmp_path / "views.csv", "--recipe", tmp_path / "views.toml")
    answer = run(*words, "--json").answer
    figures = answer["runs"][str(tmp_path / "run")]["metrics"]
    assert {name: figure["value"] for name, figure in figures.items()} == {"ap": 0.5}
    assert answer["notes"] == ["locscore: left out, because a run file has no boxes"]
    (tmp_path / "run").write_text("0.jpg Q0 7.jpg 1 9 t\n")
    ran = run(*words)
    assert ran.code == 2
    assert "'7.jpg'" in ran.err

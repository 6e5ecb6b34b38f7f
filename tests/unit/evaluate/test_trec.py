"""TREC files: what is read and written, in which order, and which lines are refused.

Rankings that are recorded while recipes are measured, and the files that they become.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resight.errors import InputError, ManifestError, ResightError
from resight.evaluate.trec import DEPTH, RunRecorder, open_run, read_qrels, write_qrels, write_run
from resight.types import Judgement, Recipe

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
IDS = st.text(st.characters(blacklist_characters="\t\r\n", blacklist_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda text: not text.startswith("\ufeff")
)


def write(path: Path, *lines: str) -> Path:
    path.write_bytes("\n".join(lines).encode())
    return path


def read(path: Path) -> dict[str, tuple[list[str], list[float]]]:
    return {query: (list(ids), scores.tolist()) for query, ids, scores in open_run(path)}


def test_ranking_is_ordered_by_score_then_rank_then_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run", "q Q0 c 3 0.5 t", "q Q0 b 2 0.5 t", "q Q0 a 9 0.7 t", "q Q0 e 4 -1e-3 t", "q Q0 d 4 -1e-3 t"
    )
    assert read(path) == {"q": (["a", "b", "c", "e", "d"], [0.7, 0.5, 0.5, -0.001, -0.001])}


def test_lines_of_a_query_may_stand_anywhere(tmp_path: Path) -> None:
    lines = [f"q{number % 3} Q0 i{number} {number} {-number} t" for number in range(9)]
    sorted_lines = sorted(lines)
    assert read(write(tmp_path / "mixed", *lines)) == read(write(tmp_path / "sorted", *sorted_lines))
    assert len(open_run(tmp_path / "sorted").stretches["q0"]) == 3  # one stretch: offset, length, line
    assert len(open_run(tmp_path / "mixed").stretches["q0"]) == 9


def test_run_can_be_read_again_and_query_by_query(tmp_path: Path) -> None:
    run = open_run(write(tmp_path / "run", "q Q0 a 1 2 t", "p Q0 b 1 3 t"))
    assert [query for query, *_ in run] == [query for query, *_ in run] == ["q", "p"]
    assert run.read("p")[1] == ["b"]
    assert len(run) == 2


def test_white_space_of_any_width_windows_lines_and_a_mark_of_order_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"\xef\xbb\xbfq1  Q0\ta 1   2.0 t\r\n\r\n   \n q1 Q0 b 2 1.0 t\r\nq11 Q0 c 1 1 t")
    assert read(path) == {"q1": (["a", "b"], [2.0, 1.0]), "q11": (["c"], [1.0])}


def test_query_that_begins_like_the_one_before_is_another(tmp_path: Path) -> None:
    path = write(tmp_path / "run", "a Q0 x 1 1 t", "a b\tQ0\tx\t1\t1\tt", "a Q0 y 2 0 t")
    assert list(read(path)) == ["a", "a b"]


@in_one_folder
@given(st.dictionaries(IDS, st.dictionaries(IDS, st.floats(-1e9, 1e9), min_size=1, max_size=5), min_size=1, max_size=4))
def test_what_is_written_is_read_back(tmp_path: Path, run: dict[str, dict[str, float]]) -> None:
    rankings = [
        (query, sorted(ids, key=ids.get, reverse=True), sorted(ids.values(), reverse=True))
        for query, ids in run.items()
    ]  # type: ignore[arg-type]
    assert write_run(tmp_path / "run", iter(rankings), "tag") == len(run)
    assert read(tmp_path / "run") == {query: (ids, scores) for query, ids, scores in rankings}


@in_one_folder
@given(st.dictionaries(IDS, st.dictionaries(IDS, st.integers(-1, 3), min_size=1, max_size=5), min_size=1, max_size=4))
def test_qrels_are_read_back(tmp_path: Path, grades: dict[str, dict[str, int]]) -> None:
    truth = {
        query: Judgement({id: g for id, g in of.items() if g >= 0}, frozenset(id for id, g in of.items() if g < 0))
        for query, of in grades.items()
    }
    write_qrels(tmp_path / "qrels", truth.items())
    assert read_qrels(tmp_path / "qrels") == truth


BAD_RUNS = {
    "five fields": ("q Q0 b 2 0.5", "line 2"),
    "seven fields": ("q Q0 b b 2 0.5 t", "line 2"),
    "rank in words": ("q Q0 b two 0.5 t", "line 2"),
    "rank with a fraction": ("q Q0 b 2.5 0.5 t", "line 2"),
    "score in words": ("q Q0 b 2 high t", "line 2"),
    "score that is no number": ("q Q0 b 2 nan t", "line 2"),
    "infinite score": ("q Q0 b 2 inf t", "line 2"),
    "image twice": ("q Q0 a 2 0.5 t", "line 2"),
    "empty field between tabs": ("q\tQ0\t\t2\t0.5\tt", "line 2"),
}


@pytest.mark.parametrize("kind", BAD_RUNS)
def test_bad_line_of_a_run_is_named(tmp_path: Path, kind: str) -> None:
    line, named = BAD_RUNS[kind]
    path = write(tmp_path / "run", "q Q0 a 1 0.9 t", line, "q Q0 z 3 0.1 t")
    with pytest.raises(ManifestError, match=named):
        list(open_run(path))


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"q Q0 a 1 0.9 t\nq Q0 \xff 2 0.8 t\n")
    with pytest.raises(ManifestError, match="line 2"):
        list(open_run(tmp_path / "run"))


def test_image_twice_names_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "run", "q Q0 a 1 0.9 t", "p Q0 a 1 0.9 t", "q Q0 a 2 0.5 t")
    with pytest.raises(ManifestError, match="line 3") as caught:
        open_run(path).read("q")
    assert caught.value.actual == "'a', as in line 1"


@pytest.mark.parametrize(
    "line",
    ["q 0 a", "q 0 a 1 x", "q 0 a one", "q 0 a 1.5", "q 0 first 2"],
    ids=["short", "long", "word", "part", "twice"],
)
def test_bad_line_of_qrels_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ManifestError, match="line 3"):
        read_qrels(write(tmp_path / "qrels", "q 0 first 1", "", line))


@in_one_folder
@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    for reading in (lambda: list(open_run(path)), lambda: read_qrels(path)):
        try:
            reading()
        except ResightError as error:
            assert str(path) in error.problem


@pytest.mark.parametrize("reading", [open_run, read_qrels])
def test_missing_and_empty_files_are_refused(tmp_path: Path, reading: object) -> None:
    (tmp_path / "empty").write_text("\n\n")
    for name in ("empty", "nowhere"):
        with pytest.raises(InputError, match=name):
            reading(tmp_path / name)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("query", "ids", "scores"),
    [
        ("", ["a"], [1.0]),
        ("q", ["a\tb"], [1.0]),
        ("q", ["a\nb"], [1.0]),
        ("q", ["a", "b"], [1.0]),
        ("q", ["a", "b"], [1.0, 2.0]),
        ("q", ["a"], [np.nan]),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_no_file(
    tmp_path: Path, query: str, ids: list[str], scores: list[float]
) -> None:
    with pytest.raises(InputError):
        write_run(tmp_path / "run", [(query, ids, scores)])
    assert list(tmp_path.iterdir()) == []


def test_scores_of_single_precision_keep_their_order(tmp_path: Path) -> None:
    scores = np.array([0.1, np.nextafter(np.float32(0.1), np.float32(0))], dtype=np.float32)
    write_run(tmp_path / "run", [("q", ["a", "b"], scores)])
    assert open_run(tmp_path / "run").read("q")[2].astype(np.float32).tolist() == scores.tolist()


def test_one_recipe_makes_the_file_that_is_named(tmp_path: Path) -> None:
    recorder = RunRecorder()
    recorder.add(Recipe("walls", ()), "q1", ["b", "a"], np.array([0.75, 0.5], np.float32))
    recorder.add(Recipe("walls", ()), "q2", ["a"], np.array([0.25], np.float32))
    file = tmp_path / "deep" / "walls.txt"
    assert recorder.write(file) == (file,)
    assert file.read_text().splitlines()[0].split() == ["q1", "Q0", "b", "1", "0.75", "walls"]
    assert [(query, list(ids)) for query, ids, _ in open_run(file)] == [("q1", ["b", "a"]), ("q2", ["a"])]


def test_several_recipes_make_a_file_each_called_after_them(tmp_path: Path) -> None:
    recorder = RunRecorder()
    for name in ("zoo: a k=2", "zoo: b"):
        recorder.add(Recipe(name, ()), "q", [name[5]], np.ones(1, np.float32))
    assert recorder.write(tmp_path) == (tmp_path / "zoo_a_k_2.run", tmp_path / "zoo_b.run")
    assert "zoo_b" in (tmp_path / "zoo_b.run").read_text()


def test_answers_beyond_the_depth_are_left_out(tmp_path: Path) -> None:
    recorder = RunRecorder()
    names = [f"i{number}" for number in range(DEPTH + 5)]
    recorder.add(Recipe("long", ()), "q", names, np.linspace(1, 0, DEPTH + 5).astype(np.float32))
    (place,) = recorder.write(tmp_path / "long.run")
    assert len(place.read_text().splitlines()) == DEPTH

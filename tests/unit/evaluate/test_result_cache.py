"""Rows that were measured before."""

from dataclasses import replace
from pathlib import Path

import pytest

from resight.errors import StorageError
from resight.evaluate.result_cache import ResultCache, fingerprint_dataset, make_key
from resight.evaluate.results import (
    AnsweredImage,
    Bin,
    Breakdown,
    EmbeddingMap,
    JudgedQuery,
    Point,
    PositiveRanks,
    RunResult,
)
from resight.evaluate.sizes import Sizes
from resight.types import Branch, Choice, Dataset, ImageRef, Judgement, Recipe

RECIPE = Recipe("r", (Branch(Choice("sift"), Choice("vlad")),), data=Choice("manifest"), metrics=("ap",))
RESULT = RunResult(
    recipe=RECIPE,
    dataset="d",
    database=2,
    metrics=("ap",),
    conventions={"ap": "mean"},
    queries=(
        JudgedQuery(
            "q",
            "",
            {"ap": 0.5},
            "a",
            0.9,
            0.1,
            stages={"shortlist": 0.05},
            positive_ranks=PositiveRanks({"a": 0, "b": None}, (3,), {"a": 0.4}, {"a": 2}),
            answers=(AnsweredImage("a", 1, True, 0.9, (0.0, 1.0, 2.0, 3.0), None, {"vlad": 0.7}, Path("a.jpg")),),
            path=Path("q.jpg"),
            box=(1.0, 2.0, 3.0, 4.0),
        ),
    ),
    unreadable=("x.jpg",),
    index_seconds=1.5,
    strata=(Breakdown("size", "share", (Bin("small", 3, {"q": {"ap": 0.5}}),), 1),),
    map=EmbeddingMap("PCA", (Point("a", 0.5, 0.25, "database", "l"),), 2),
)

SIZES = Sizes(stored=20.0, kept=12.5, rows=2.0)


def write_image(folder: Path, name: str, content: bytes) -> ImageRef:
    (folder / name).write_bytes(content)
    return ImageRef(name, folder / name)


def make_dataset(folder: Path) -> Dataset:
    image, query = write_image(folder, "a.jpg", b"1"), write_image(folder, "q.jpg", b"2")
    return Dataset("d", (image,), (query,), {"q.jpg": Judgement({"a.jpg": 1})})


def test_what_was_kept_comes_back_as_it_was(tmp_path: Path):
    cache = ResultCache(tmp_path / "results")
    assert cache.read("k", RECIPE) is None
    cache.write("k", RESULT, SIZES)
    assert cache.read("k", RECIPE) == (RESULT, SIZES)
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["k.json"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"result": {}}', '{"result": {"dataset": 3}, "sizes": {"stored": 1, "kept": 1, "rows": 1}}'],
)
def test_a_damaged_file_is_measured_again(tmp_path: Path, text: str):
    (tmp_path / "k.json").write_text(text)
    assert ResultCache(tmp_path).read("k", RECIPE) is None


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot keep results"):
        ResultCache(tmp_path / "file").write("k", RESULT, SIZES)


def test_the_name_of_a_recipe_is_no_part_of_what_was_measured():
    assert make_key(RECIPE, "data") == make_key(replace(RECIPE, name="other"), "data")


@pytest.mark.parametrize(
    "other",
    [
        replace(RECIPE, metrics=("ap", "recall@1")),
        replace(RECIPE, index=Choice("hnsw")),
        replace(RECIPE, rerankers=(Choice("geometry"),)),
        replace(RECIPE, branches=(Branch(Choice("sift", {"features": 10}), Choice("vlad")),)),
    ],
)
def test_another_recipe_is_measured_anew(other: Recipe):
    assert make_key(other, "data") != make_key(RECIPE, "data")


def test_other_data_and_another_way_to_look_are_measured_anew():
    keys = {
        make_key(RECIPE, "data"),
        make_key(RECIPE, "other"),
        make_key(RECIPE, "data", "set"),
        make_key(RECIPE, "data", 5),
    }
    assert len(keys) == 4


def test_a_file_that_a_recipe_names_is_part_of_it(tmp_path: Path):
    book = tmp_path / "book.npz"
    book.write_bytes(b"1")
    named = replace(RECIPE, branches=(Branch(Choice("sift"), Choice("vlad", {"codebook": str(book)})),))
    before = make_key(named, "data")
    book.write_bytes(b"22")
    assert make_key(named, "data") != before


def test_the_mark_of_a_data_set_changes_with_its_files_and_its_truth(tmp_path: Path):
    dataset = make_dataset(tmp_path)
    marks = {fingerprint_dataset(dataset), fingerprint_dataset(dataset)}
    marks.add(fingerprint_dataset(replace(dataset, judgements={"q.jpg": Judgement({"a.jpg": 2})})))
    marks.add(fingerprint_dataset(replace(dataset, judgements={"q.jpg": Judgement({"a.jpg": 1}, frozenset({"b"}))})))
    (tmp_path / "a.jpg").write_bytes(b"other")
    marks.add(fingerprint_dataset(dataset))
    assert len(marks) == 4

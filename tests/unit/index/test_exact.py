from pathlib import Path

import numpy as np
import pytest
from support.builders import global_rows, word_rows

from resight import index
from resight.errors import RecipeError, SpaceMismatch
from resight.index.rows import scoring
from resight.types import Descriptors


def unit_rows(rng: np.random.Generator, count: int, dimensions: int = 8) -> np.ndarray:
    rows = rng.normal(size=(count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def search(folder: Path, chunks: list[Descriptors], query: np.ndarray, k: int, **options: object):
    return index.build("exact").create(lambda: iter(chunks), folder).search(global_rows("q", query[None]), k, **options)


@pytest.mark.parametrize("block_bytes", [64 << 20, 7 * 8 * 4])
def test_scores_are_the_dot_products_in_one_block_or_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
):
    monkeypatch.setattr(scoring, "BLOCK_BYTES", block_bytes)
    rng = np.random.default_rng(0)
    vectors, query = unit_rows(rng, 30), unit_rows(rng, 1)[0]
    ids = [f"{number:02}" for number in range(30)]
    chunks = [global_rows(ids[:11], vectors[:11]), global_rows(ids[11:], vectors[11:])]
    ranking = search(tmp_path, chunks, query, 10)
    order = np.argsort(-(vectors @ query))[:10]
    assert ranking.ids == tuple(ids[row] for row in order)
    np.testing.assert_allclose(ranking.scores, (vectors @ query)[order], rtol=1e-5)


@pytest.mark.parametrize("block_bytes", [64 << 20, 2 * 8 * 4])
def test_a_filter_leaves_the_scores_of_the_others_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
):
    monkeypatch.setattr(scoring, "BLOCK_BYTES", block_bytes)
    vectors = np.eye(8, dtype=np.float32)
    query = np.arange(8, dtype=np.float32)
    ranking = search(tmp_path, [global_rows("abcdefgh", vectors)], query, 4, allowed=frozenset("bdfx"))
    assert ranking.ids == ("f", "d", "b")
    assert ranking.scores.tolist() == [5, 3, 1]


def test_a_tie_at_the_cut_is_decided_by_the_id(tmp_path: Path):
    assert search(tmp_path, [global_rows("dbca", np.ones((4, 2)))], np.ones(2), 2).ids == ("a", "b")


def test_half_precision_rows_are_kept_as_they_are_and_compared_in_single(tmp_path: Path):
    rows = Descriptors(("a", "b"), np.array([[2048, 1], [0, 1]], np.float16), np.arange(2, dtype=np.int32))
    ranking = search(tmp_path, [rows], np.array([1, 1]), 2)
    assert np.load(tmp_path / "vectors.npy").dtype == np.float16
    assert ranking.scores.tolist() == [2049, 1]


@pytest.mark.parametrize(
    "rows",
    [word_rows({"a": {3: [1]}}, 1), Descriptors(("a",), np.ones((1, 4), np.uint8), np.zeros(1, np.int32))],
    ids=["words", "bytes"],
)
def test_rows_without_a_dot_product_are_refused(tmp_path: Path, rows: Descriptors):
    with pytest.raises(RecipeError, match="takes vectors"):
        index.build("exact").create(lambda: iter([rows]), tmp_path)


def test_rows_of_two_kinds_are_refused(tmp_path: Path):
    chunks = [global_rows("a", np.ones((1, 4))), global_rows("b", np.ones((1, 5)))]
    with pytest.raises(SpaceMismatch, match="different shapes or spaces"):
        index.build("exact").create(lambda: iter(chunks), tmp_path)


@pytest.mark.parametrize("block_bytes", [64 << 20, 2 * 2 * 4])
def test_the_mean_takes_the_best_row_of_the_image_for_each_row_of_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
):
    monkeypatch.setattr(scoring, "BLOCK_BYTES", block_bytes)
    rows = Descriptors(("a", "b"), np.array([[1, 0], [0, 1], [0.2, 0], [3, 0]], np.float32), np.array([0, 0, 0, 1]))
    query = Descriptors(("q",), np.eye(2, dtype=np.float32), np.zeros(2, np.int32))
    create = index.build("exact", match="mean").create
    ranking = create(lambda: iter([rows]), tmp_path).search(query, 2)
    assert dict(zip(ranking.ids, ranking.scores.tolist(), strict=True)) == {"b": 1.5, "a": 1.0}
    best = index.build("exact", match="best").open(tmp_path).search(query, 2)
    assert dict(zip(best.ids, best.scores.tolist(), strict=True)) == {"b": 3.0, "a": 1.0}


def test_an_index_of_the_time_before_regions_is_not_opened(tmp_path: Path):
    np.save(tmp_path / "vectors.npy", np.ones((1, 4), np.float32))
    (tmp_path / "ids.json").write_text('["a"]', encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        index.build("exact").open(tmp_path)


def test_its_bytes_are_those_of_the_vectors_and_of_all_files(tmp_path: Path):
    searcher = index.build("exact").create(lambda: iter([global_rows("abc", np.ones((3, 5)))]), tmp_path)
    assert searcher.bytes_in_memory == 3 * 5 * 4
    assert searcher.bytes_on_disk == sum(path.stat().st_size for path in tmp_path.iterdir())

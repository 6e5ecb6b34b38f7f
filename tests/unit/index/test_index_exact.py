from pathlib import Path

import numpy as np
import pytest
from builders import global_rows, word_rows

from resight import index
from resight.errors import RecipeError
from resight.index import exact
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
    monkeypatch.setattr(exact, "BLOCK_BYTES", block_bytes)
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
    monkeypatch.setattr(exact, "BLOCK_BYTES", block_bytes)
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
    [
        Descriptors(("a",), np.ones((2, 4), np.float32), np.zeros(2, np.int32)),
        Descriptors(("a",), np.ones((0, 4), np.float32), np.zeros(0, np.int32)),
        word_rows({"a": {3: [1]}}, 1),
    ],
    ids=["two rows", "no row", "words"],
)
def test_anything_but_one_vector_an_image_is_refused(tmp_path: Path, rows: Descriptors):
    with pytest.raises(RecipeError, match="one vector an image"):
        index.build("exact").create(lambda: iter([rows]), tmp_path)

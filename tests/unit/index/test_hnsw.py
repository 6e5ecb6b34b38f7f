from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.builders import global_rows

from resight import index
from resight.index import Searcher

COUNT, DIMENSIONS = 2000, 64


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    vectors = np.random.default_rng(0).normal(size=(COUNT, DIMENSIONS)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def searchers(rows: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Searcher]:
    ids = [f"{number:04}" for number in range(COUNT)]

    def chunks() -> Iterator:
        for start in range(0, COUNT, 700):
            yield global_rows(ids[start : start + 700], rows[start : start + 700])

    return {name: index.build(name).create(chunks, tmp_path_factory.mktemp(name)) for name in ("exact", "hnsw")}


def queries(count: int) -> Iterator:
    for vector in np.random.default_rng(1).normal(size=(count, DIMENSIONS)):
        yield global_rows("q", vector[None] / np.linalg.norm(vector))


def test_nearly_all_of_the_exact_answer_is_found(searchers: dict[str, Searcher]):
    found = 0
    for query in queries(50):
        truth = set(searchers["exact"].search(query, 10).ids)
        found += len(truth & set(searchers["hnsw"].search(query, 10).ids))
    assert found / 500 >= 0.95


def test_the_scores_are_the_dot_products(searchers: dict[str, Searcher], rows: np.ndarray):
    (query,) = queries(1)
    ranking = searchers["hnsw"].search(query, 10)
    found = rows[[int(name) for name in ranking.ids]]
    np.testing.assert_allclose(ranking.scores, found @ query.vectors[0], rtol=1e-4)


@pytest.mark.parametrize("share", [2, 50, 500])
def test_a_narrow_filter_still_finds_nearly_all(searchers: dict[str, Searcher], share: int):
    allowed = frozenset(f"{number:04}" for number in range(0, COUNT, share))
    found = wanted = 0
    for query in queries(10):
        truth = searchers["exact"].search(query, 10, allowed).ids
        answer = searchers["hnsw"].search(query, 10, allowed).ids
        assert set(answer) <= allowed
        found, wanted = found + len(set(truth) & set(answer)), wanted + len(truth)
    assert found / wanted >= 0.95


def test_a_k_beyond_the_search_width_is_filled(rows: np.ndarray, tmp_path: Path):
    ids = [f"{number:04}" for number in range(300)]
    searcher = index.build("hnsw", search_width=4).create(lambda: iter([global_rows(ids, rows[:300])]), tmp_path)
    assert len(searcher.search(global_rows("q", rows[:1]), 200).ids) == 200


def test_equal_rows_do_not_shorten_the_answer(tmp_path: Path):
    ids = [f"{number:04}" for number in range(2000)]
    searcher = index.build("hnsw").create(lambda: iter([global_rows(ids, np.ones((2000, 8)))]), tmp_path)
    assert len(searcher.search(global_rows("q", np.ones((1, 8))), 200).ids) == 200
    allowed = frozenset(ids[:150])
    assert set(searcher.search(global_rows("q", np.ones((1, 8))), 200, allowed).ids) == allowed

from pathlib import Path

import numpy as np
import pytest

from resight import index
from resight.errors import RecipeError
from resight.types import Descriptors


def make_tokens(counts: list[int], seed: int = 0, dimensions: int = 16) -> Descriptors:
    rows = np.random.default_rng(seed).normal(size=(sum(counts), dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = tuple(f"{number:03}" for number in range(len(counts)))
    return Descriptors(ids, rows, np.repeat(np.arange(len(counts), dtype=np.int32), counts))


def score_by_hand(query: Descriptors, images: Descriptors) -> dict[str, float]:
    """(1/Kq) Σ_i max_j ⟨q_i, x_j⟩, written out."""
    scores = {}
    for number, name in enumerate(images.ids):
        tokens = images.vectors[images.owners == number]
        scores[name] = float((query.vectors @ tokens.T).max(axis=1).mean()) if len(tokens) else 0.0
    return scores


@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8", "pq"])
def test_exact_answers_are_those_of_the_formula_in_every_kind(tmp_path: Path, kind: str):
    images = make_tokens([1 + number % 7 for number in range(300)])
    settings = {"kind": kind, "keep": "fp32"}
    searcher = index.build("late", **settings).create(lambda: iter([images]), tmp_path)
    for seed in range(5):
        query = make_tokens([5], seed=100 + seed)
        truth = score_by_hand(query, images)
        found = searcher.search(query, 10)
        assert list(found.ids) == sorted(truth, key=lambda name: (-truth[name], name))[:10]
        assert found.scores == pytest.approx([truth[name] for name in found.ids], abs=1e-5)


def test_an_image_without_tokens_scores_0_and_is_listed(tmp_path: Path):
    images = make_tokens([3, 0, 2])
    searcher = index.build("late").create(lambda: iter([images]), tmp_path)
    found = searcher.search(make_tokens([2], seed=9), 3)
    assert dict(zip(found.ids, found.scores.tolist(), strict=True))["001"] == 0


def test_only_what_is_allowed_is_found(tmp_path: Path):
    images = make_tokens([4] * 20)
    searcher = index.build("late").create(lambda: iter([images]), tmp_path)
    found = searcher.search(make_tokens([4], seed=3), 5, frozenset({"004", "011"}))
    assert set(found.ids) == {"004", "011"}


def test_visual_words_are_refused(tmp_path: Path):
    rows = Descriptors(("a",), np.zeros((1, 2), np.uint8), np.zeros(1, np.int32), words=np.zeros(1, np.int32))
    with pytest.raises(RecipeError, match="needs tokens"):
        index.build("late").create(lambda: iter([rows]), tmp_path)

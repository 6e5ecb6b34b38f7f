"""Tokens of random directions, and their score written out."""

from collections.abc import Iterator, Sequence

import numpy as np

from resight.index import Searcher
from resight.types import Choice, Descriptors


def make_tokens(counts: list[int], seed: int = 0, dimensions: int = 16, space: str = "") -> Descriptors:
    """Images 000, 001, … with so many tokens each."""
    rows = np.random.default_rng(seed).normal(size=(sum(counts), dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = tuple(f"{number:03}" for number in range(len(counts)))
    return Descriptors(ids, rows, np.repeat(np.arange(len(counts), dtype=np.int32), counts), space=space)


def score_by_hand(query: Descriptors, images: Descriptors) -> dict[str, float]:
    """(1/Kq) Σ_i max_j ⟨q_i, x_j⟩, written out."""
    scores = {}
    for number, name in enumerate(images.ids):
        tokens = images.vectors[images.owners == number]
        scores[name] = float((query.vectors @ tokens.T).max(axis=1).mean()) if len(tokens) else 0.0
    return scores


class Shelf:
    """A gallery of images whose tokens are read as they are, in branch 0; it has no index."""

    def __init__(self, *images: Descriptors) -> None:
        self._images = {image.ids[0]: image for image in images}

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        assert branch == 0
        return (self._images[name] for name in ids)

    def searcher(self, branch: int, choice: Choice | None) -> Searcher:
        raise AssertionError(f"tokens are read, not searched: {branch}, {choice}")

"""Tokens of random directions, and their score written out."""

import numpy as np

from resight.types import Descriptors


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

"""Micro average precision: the AP of one list of all pairs of query and image, best score first.

    uap = (1 / P) Σ_{found positives} (positives that score at least as much) / (pairs that score at least as much)

P counts the positives of all queries; one that is not in its ranking adds nothing. Pairs of the same score enter the
list together, so that their order cannot matter. Queries without positives take part: their pairs are all wrong. The
figure asks for scores that mean the same for every query, as where one threshold has to serve all of them.

Memory holds only the positives, each with the number of pairs above it: the metric reads the queries one at a time,
once for the positives' scores and once for the counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from resight.evaluate.metrics import Pairs, refuse_number
from resight.types import IntArray

BLOCK = 32  # queries whose counts are added at once


@dataclass(frozen=True)
class Config:
    at: float | None = None  # takes no number: "uap@5" is an error


def build(config: Config) -> "MicroAveragePrecision":
    refuse_number("uap", config.at)
    return MicroAveragePrecision()


@dataclass(frozen=True)
class MicroAveragePrecision:
    convention: ClassVar[str] = (
        "Average precision of one list of all pairs of all queries, by score, pairs of the same score together; "
        "a positive that is not found counts 0, and queries without positives take part."
    )

    def score_run(self, queries: Iterable[Pairs], counts: IntArray) -> NDArray[np.float64]:
        """Holds two arrays [samples, scores of positives] float64."""
        scores, owners, positives = _gather_positives(queries)
        levels, level = np.unique(-scores, return_inverse=True)  # best first
        at_level = np.zeros((len(counts), len(levels)))
        for sample, times in zip(at_level, counts, strict=True):
            sample += np.bincount(level, weights=times[owners], minlength=len(levels))
        pairs = _count_pairs(queries, counts, -levels)
        above = np.cumsum(at_level, axis=1)
        precision = np.divide(above, pairs, out=pairs, where=pairs > 0)
        wanted = (counts @ positives).astype(np.float64)
        summed = (at_level * precision).sum(axis=1)
        return np.asarray(np.divide(summed, wanted, out=np.full(len(counts), np.nan), where=wanted > 0))


def _gather_positives(queries: Iterable[Pairs]) -> tuple[NDArray[np.float64], IntArray, IntArray]:
    """Score and query of each positive that was found, and how many positives each query has."""
    scores, owners, positives = [np.empty(0)], [np.empty(0, dtype=np.int64)], []
    for number, query in enumerate(queries):
        scores.append(query.scores[query.hits])
        owners.append(np.full(len(query.hits), number))
        positives.append(query.positives)
    return np.concatenate(scores), np.concatenate(owners), np.array(positives, dtype=np.int64)


def _count_pairs(queries: Iterable[Pairs], counts: IntArray, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many pairs of the queries of each sample score at least as much as each level, [samples, levels]."""
    total = np.zeros((len(counts), len(levels)))
    block: list[IntArray] = []
    done = 0
    for query in queries:
        block.append(len(query.scores) - np.searchsorted(query.scores[::-1], levels, side="left"))
        if len(block) == BLOCK:
            total += counts[:, done : done + BLOCK].astype(np.float64) @ np.array(block, dtype=np.float64)
            done += len(block)
            block = []
    if block:
        total += counts[:, done:].astype(np.float64) @ np.array(block, dtype=np.float64)
    return total

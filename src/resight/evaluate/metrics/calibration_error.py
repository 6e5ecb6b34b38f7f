"""How far the scores of a run, taken as probabilities, are from how often they are right.

    calibration_error = Σ_b (n_b / n) · |mean score of bin b − share of positives in it|

over all pairs of query and image, in ten bins of equal count; calibration_error@k takes the first k ranks of each
query alone. 0 is perfect, and lower is better. Queries without positives take part: all their pairs are wrong. Pairs of
the same score share a bin. Refuses scores outside 0..1. Holds the scores of all pairs in memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.evaluate.metrics import Pairs, require_rank
from resight.evaluate.statistics.reliability import expected_calibration_error
from resight.types import IntArray

BINS = 10


@dataclass(frozen=True)
class Config:
    at: float | None = None  # k, the number of ranks to count per query; None: every rank


def build(config: Config) -> "CalibrationError":
    return CalibrationError(None if config.at is None else require_rank("calibration_error", config.at))


@dataclass(frozen=True)
class CalibrationError:
    k: int | None

    @property
    def convention(self) -> str:
        which = "all pairs of all queries" if self.k is None else f"the first {self.k} of each query"
        return (
            f"Mean distance of a probability from the share of positives, over {which} in {BINS} bins of equal count; "
            "lower is better, and queries without positives take part."
        )

    def score_run(self, queries: Iterable[Pairs], counts: IntArray) -> NDArray[np.float64]:
        scores, truths, owners = self._gather(queries)
        if len(scores) == 0:
            return np.full(len(counts), np.nan)
        return np.array(
            [
                expected_calibration_error(scores, truths, BINS, times[owners]) if times[owners].any() else np.nan
                for times in counts
            ]
        )

    def _gather(self, queries: Iterable[Pairs]) -> tuple[NDArray[np.float64], NDArray[np.bool_], IntArray]:
        scores, truths, owners = [np.empty(0)], [np.empty(0, dtype=np.bool_)], [np.empty(0, dtype=np.int64)]
        for number, query in enumerate(queries):
            first = query.scores[: self.k]
            truth = np.zeros(len(first), dtype=np.bool_)
            truth[query.hits[query.hits < len(first)]] = True
            scores.append(first)
            truths.append(truth)
            owners.append(np.full(len(first), number))
        return np.concatenate(scores), np.concatenate(truths), np.concatenate(owners)

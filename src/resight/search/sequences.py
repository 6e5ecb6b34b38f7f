"""Sequence matching (SeqSLAM): rankings of single frames of a video in, rankings by short sequences of frames out.

Images that follow each other in the database follow each other in the query, too. For frame t and image j in the
database's order, the scores of the last `window` frames are summed along straight lines, one per speed v, and the best
line counts:

    S(t, j) = max_v  (1 / n) Σ_{τ < n} ŝ(t - τ, j - round(v τ))      n = min(window, frames so far)

ŝ is the score less the mean of the frame's scores, over their spread. An image that a ranking lacks gets its lowest
score; before the first image, scores are 0. A frame is answered from the frames so far, of which `window` rows with one
number per image are in memory. M. Milford and G. Wyeth, SeqSLAM, 2012; their contrast enhancement within a
neighbourhood of the order is left out: it lost on learnt tokens by night.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resight import topk
from resight.errors import InputError
from resight.plugins import check_range
from resight.types import FloatArray, Ranking


@dataclass(frozen=True)
class Config:
    window: int = 10  # frames
    slowest: float = 0.8  # images of the database per frame of the query
    fastest: float = 1.25
    speeds: int = 5

    def __post_init__(self) -> None:
        check_range("window", self.window, 1, 10_000)
        check_range("slowest", self.slowest, -100, self.fastest)
        check_range("fastest", self.fastest, -100, 100)
        check_range("speeds", self.speeds, 1, 1000)


def match_sequences(
    rankings: Iterable[Ranking], order: Sequence[str], config: Config | None = None
) -> Iterator[Ranking]:
    """One ranking of all images per frame, as the frames come; `order` has the ids in the order of capture."""
    config = config or Config()
    columns = {name: column for column, name in enumerate(order)}
    if len(columns) < len(order) or not order:
        raise InputError(
            "not the order of a database",
            expected="every id once",
            actual=f"{len(order)} ids, {len(columns)} different ones",
            fix="list each image once",
        )
    rows: deque[FloatArray] = deque(maxlen=config.window)
    for ranking in rankings:
        rows.append(standardise(order_scores(ranking, columns)))
        scores = follow(list(rows), np.linspace(config.slowest, config.fastest, config.speeds).tolist())
        found = topk.best(ranking.query_id, order, scores, len(order))
        yield replace(ranking, ids=found.ids, scores=found.scores)


def order_scores(ranking: Ranking, columns: dict[str, int]) -> FloatArray:
    """The scores of a ranking in the order of the database [n]."""
    known = [row for row, name in enumerate(ranking.ids) if name in columns]
    found = ranking.scores[known]
    scores = np.full(len(columns), found.min() if len(found) else 0, np.float32)
    scores[[columns[ranking.ids[row]] for row in known]] = found
    return scores


def standardise(scores: FloatArray) -> FloatArray:
    """(s - mean) / spread [n]; 0 if all are equal."""
    rest = scores - scores.mean(dtype=np.float64)
    spread = float(np.sqrt(np.square(rest).mean()))
    return np.asarray(rest / spread if spread > 1e-9 else np.zeros(len(rest)), np.float32)


def follow(rows: Sequence[FloatArray], speeds: Sequence[float]) -> FloatArray:
    """Rows [n] of the last frames, the newest last → the best mean along a line that ends at each image [n]."""
    best = np.full(len(rows[-1]), -np.inf, np.float32)
    for speed in speeds:
        total = np.zeros(len(best), np.float32)
        for back, row in enumerate(reversed(rows)):
            total += shift(row, round(speed * back))
        best = np.maximum(best, total / len(rows))
    return best


def shift(row: FloatArray, steps: int) -> FloatArray:
    """The row moved by `steps`, with 0 where nothing moves in."""
    moved = np.zeros_like(row)
    first, last = max(steps, 0), len(row) + min(steps, 0)
    if first < last:
        moved[first:last] = row[first - steps : last - steps]
    return moved

"""A video in, looked for in the frames of another: rankings of single frames in, rankings of short sequences out.

Places that follow each other in the database follow each other in the query too. For the frame t and the image at
place j of the database's order, the scores of the last `window` frames are added up along straight lines, one for each
speed v, and the best line counts:

    S(t, j) = max_v  (1 / n) Σ_{τ < n} ŝ(t - τ, j - round(v τ))      n = min(window, frames so far)

ŝ is the score less the mean of the frame's scores, over their spread. An image that a ranking lacks has the lowest
score in it; what lies before the first image counts 0. A frame is answered from those before it alone; kept are
`window` rows of one number an image. M. Milford and G. Wyeth, SeqSLAM, 2012; their contrast within a neighbourhood of
the order is left out: scores of learnt tokens by night lost by it.
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
    slowest: float = 0.8  # images of the database a frame of the query
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
    """One ranking of all images a frame, as the frames come; `order` has the ids of the database as they were taken."""
    config = config or Config()
    places = {name: place for place, name in enumerate(order)}
    if len(places) < len(order) or not order:
        raise InputError(
            "not the order of a database",
            expected="every id once",
            actual=f"{len(order)} ids, {len(places)} different ones",
            fix="list each image once",
        )
    rows: deque[FloatArray] = deque(maxlen=config.window)
    for ranking in rankings:
        rows.append(standardise(spread_out(ranking, places)))
        scores = follow(list(rows), np.linspace(config.slowest, config.fastest, config.speeds).tolist())
        found = topk.best(ranking.query_id, order, scores, len(order))
        yield replace(ranking, ids=found.ids, scores=found.scores)


def spread_out(ranking: Ranking, places: dict[str, int]) -> FloatArray:
    """The scores of a ranking in the order of the database [n]."""
    known = [row for row, name in enumerate(ranking.ids) if name in places]
    found = ranking.scores[known]
    scores = np.full(len(places), found.min() if len(found) else 0, np.float32)
    scores[[places[ranking.ids[row]] for row in known]] = found
    return scores


def standardise(scores: FloatArray) -> FloatArray:
    """(s - mean) / spread [n]; 0 where all are equal."""
    rest = scores - scores.mean(dtype=np.float64)
    spread = float(np.sqrt(np.square(rest).mean()))
    return np.asarray(rest / spread if spread > 1e-9 else np.zeros(len(rest)), np.float32)


def follow(rows: Sequence[FloatArray], speeds: Sequence[float]) -> FloatArray:
    """Rows [n] of the last frames, the newest last → the best mean along a line that ends at each place [n]."""
    best = np.full(len(rows[-1]), -np.inf, np.float32)
    for speed in speeds:
        total = np.zeros(len(best), np.float32)
        for back, row in enumerate(reversed(rows)):
            total += shift(row, round(speed * back))
        best = np.maximum(best, total / len(rows))
    return best


def shift(row: FloatArray, places: int) -> FloatArray:
    """What lay `places` before each place, 0 where nothing lay there."""
    moved = np.zeros_like(row)
    first, last = max(places, 0), len(row) + min(places, 0)
    if first < last:
        moved[first:last] = row[first - places : last - places]
    return moved

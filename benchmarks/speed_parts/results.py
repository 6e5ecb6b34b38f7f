"""What a part of the benchmark hands back, and how it is timed: CPU time, interleaved, medians of ratios per round.

The clock of a shared machine drifts, so two times are only compared when they were taken in the same round.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from resight.types import FloatArray

Run = Callable[[], Any]
Times = dict[str, list[float]]  # seconds, one a round


@dataclass(frozen=True)
class Row:
    """One line of the table. `ratio`: the peer's time by ours, or a share where `share` is set."""

    work: str
    tokens: str
    peer: str
    ratio: float
    bar: float | None = None
    answers: str = ""
    share: bool = False
    right: bool = True  # the answers are as good as the bar asks for

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        return "met" if self.ratio >= self.bar and self.right else "missed"


@dataclass(frozen=True)
class Point:
    """One mark of the roofline."""

    name: str
    intensity: float  # multiply-adds a byte read from memory
    rate: float  # GMAC/s
    ours: bool


@dataclass(frozen=True)
class Part:
    rows: tuple[Row, ...]
    points: tuple[Point, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)


def interleave(runs: dict[str, Run], rounds: int, clock: Callable[[], float] = time.process_time) -> Times:
    times: Times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = clock()
            run()
            times[name].append(clock() - started)
    return times


def compare(times: Times, peer: str, ours: str) -> float:
    return statistics.median(theirs / own for theirs, own in zip(times[peer], times[ours], strict=True))


def rate(times: Times, name: str, work: float) -> float:
    """Billions a second."""
    return work / statistics.median(times[name]) / 1e9


def is_top(scores: FloatArray, found: Sequence[int], k: int = 10) -> bool:
    """Rank by rank the answer that `scores` [N] give; images whose scores differ by rounding alone may swap."""
    best = np.sort(np.partition(scores, len(scores) - k)[len(scores) - k :])[::-1]
    return len(found) == k and bool(np.abs(scores[list(found)] - best).max() < 1e-6)

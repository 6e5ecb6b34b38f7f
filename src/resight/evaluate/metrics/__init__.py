"""Metrics, one per module.

A metric's name is its module's name, plus "@number" if it takes one: "ap", "ap@20", "recall@10", "locscore@0.3". Most
numbers are counts of ranks; that of locscore is a threshold on the overlap. A protocol may precede the name:
"easy/ap_trapezoid" (protocols.py).

A Metric scores one query, and a run reports its mean. A RunMetric scores all queries of a run at once.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from resight import plugins
from resight.errors import RecipeError
from resight.evaluate.protocols import PROTOCOLS, split_name
from resight.types import IntArray

Overlaps = NDArray[np.float64]  # not float32: a threshold such as 0.7 has to mean 0.7


class Metric(Protocol):
    """One figure of one query, with the sentence that states its convention."""

    @property
    def convention(self) -> str: ...

    @property
    def localises(self) -> bool:
        """Whether the figure needs `overlaps`; if so, it sees only positives whose true box is known."""
        ...

    def score(self, ranks: IntArray, positives: int, overlaps: Overlaps | None, /) -> float:
        """The figure in 0..1.

        ranks [h] int64: ranks of the positives that were found, from 1 and increasing, without ignored images.
        positives: their number, found or not, at least 1. overlaps [h]: IoU of shown and true box.
        """
        ...


@dataclass(frozen=True)
class Pairs:
    """One query's ranking without ignored images."""

    scores: NDArray[np.float64]  # [n], not increasing
    hits: IntArray  # [h] positions of the positives, from 0
    positives: int  # found or not; may be 0


@runtime_checkable
class RunMetric(Protocol):
    """One figure of a whole run."""

    @property
    def convention(self) -> str: ...

    def score_run(self, queries: Iterable[Pairs], counts: IntArray, /) -> NDArray[np.float64]:
        """The figure [s] for each row of counts [s, q]: how often each query is drawn. NaN if it is undefined.

        Iterates over `queries` more than once, so that they need not fit in memory.
        """
        ...


def build(name: str) -> Metric | RunMetric:
    """The metric called `name`, number and protocol included."""
    protocol, metric_name = split_name(name)
    module, at = parse(metric_name)
    metric: Metric | RunMetric = plugins.load(__name__, module, {} if at is None else {"at": at})
    if protocol is None:
        return metric
    convention = f"{PROTOCOLS[protocol].convention} {metric.convention}"
    return RunUnderProtocol(metric, convention) if isinstance(metric, RunMetric) else UnderProtocol(metric, convention)


@dataclass(frozen=True)
class UnderProtocol:
    """A metric under a protocol, with the protocol's convention before its own."""

    metric: Metric
    convention: str

    @property
    def localises(self) -> bool:
        return self.metric.localises

    def score(self, ranks: IntArray, positives: int, overlaps: Overlaps | None = None) -> float:
        return self.metric.score(ranks, positives, overlaps)


@dataclass(frozen=True)
class RunUnderProtocol:
    metric: RunMetric
    convention: str

    def score_run(self, queries: Iterable[Pairs], counts: IntArray) -> NDArray[np.float64]:
        return self.metric.score_run(queries, counts)


def parse(name: str) -> tuple[str, float | None]:
    """ "ap@20" → ("ap", 20.0); "ap" → ("ap", None)."""
    module, at, number = name.partition("@")
    if not at:
        return module, None
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", number):
        raise RecipeError(
            f"cannot read the metric {name!r}",
            expected='a name, or a name, "@" and a number: ap, ap@20, locscore@0.3',
            actual=repr(name),
            fix='write a plain decimal number after "@", or leave "@" out',
        )
    return module, float(number)


def count_within(ranks: IntArray, k: int | None) -> int:
    """Number of increasing ranks within the first k; None: all."""
    return len(ranks) if k is None else int(np.searchsorted(ranks, k, side="right"))


def require_rank(metric: str, at: float | None) -> int:
    """The number after "@" as a count of ranks, for a metric that requires one."""
    if at is None or at < 1 or not float(at).is_integer():
        raise RecipeError(
            f"{metric} needs a number of ranks",
            expected=f"{metric}@k with k a whole number, 1 or more",
            actual=_written(metric, at),
            fix=f"write for example {metric}@10",
        )
    return int(at)


def refuse_number(metric: str, at: float | None) -> None:
    """For a metric that has one meaning only."""
    if at is not None:
        raise RecipeError(
            f"{metric} takes no number",
            expected=metric,
            actual=_written(metric, at),
            fix=f"write {metric}, or choose another metric",
        )


def _written(metric: str, at: float | None) -> str:
    return metric if at is None else f"{metric}@{at:g}"

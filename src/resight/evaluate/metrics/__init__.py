"""Figures for one query's ranking, one metric a module.

A metric's name is its module's name, plus "@number" where it takes one: "ap", "ap@20", "recall@10",
"locscore@0.3". Most numbers are counts of ranks; that of locscore is a threshold on the overlap.
"""

import re
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from resight import plugins
from resight.errors import RecipeError

Hits = NDArray[np.bool_]
Overlaps = NDArray[np.float64]  # not float32: a threshold such as 0.7 has to mean 0.7


class Metric(Protocol):
    """One figure, with the sentence that has to stand beside it."""

    @property
    def convention(self) -> str: ...

    @property
    def localises(self) -> bool:
        """True when the figure needs `overlaps`; it is then given only positives whose true box is known."""
        ...

    def score(self, hits: Hits, positives: int, overlaps: Overlaps | None, /) -> float:
        """The figure in 0..1.

        hits [n] bool: is rank i a positive, ignored images already taken out. positives: how many there are,
        found or not, at least 1. overlaps [n]: IoU of the shown and the true box at each hit.
        """
        ...


def build(name: str) -> Metric:
    """The metric called `name`, number included."""
    module, at = parse(name)
    metric: Metric = plugins.load(__name__, module, {} if at is None else {"at": at})
    return metric


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


def require_rank(metric: str, at: float | None) -> int:
    """The number after "@" as a count of ranks, for a metric that cannot do without."""
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

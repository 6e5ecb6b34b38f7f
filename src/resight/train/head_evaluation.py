"""How well images find the others of their thing, by frozen rows or through a head; and what a head gains.

Every image that is asked for searches all others by late interaction; those of its own thing are right. The judge, the
interval and the test of chance come as arguments: they are those of resight.evaluate, which training may not know.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight import kernels
from resight.encode.heads import Head
from resight.train.cached_features import FrozenRows
from resight.types import FloatArray, IntArray, Judgement

METRICS = ("ap", "recall@1")
DOUBT = 0.025  # one side of a 95 % interval
AT_ONCE = 65_536  # rows that go through a head together
Values = NDArray[np.float64]
Judge = Callable[[Sequence[str], Judgement, Iterable[str]], Mapping[str, float]]
Interval = Callable[[Values, Values, np.random.Generator], tuple[float, float]]
Chance = Callable[[Values, Values, np.random.Generator], float]


@dataclass(frozen=True)
class Gain:
    """Means over things of one metric, before and after, the 95 % interval of the difference, and its probability."""

    before: float
    after: float
    low: float
    high: float
    chance: float  # that things which gain nothing seem to gain as much
    things: int
    queries: int

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def is_sure(self) -> bool:
        """With few things the interval alone is too narrow: of three, one in eight lies above 0 by chance."""
        return self.low > 0 and self.chance <= DOUBT


def measure(rows: FrozenRows, head: Head | None, queries: IntArray, judge: Judge) -> dict[str, Values]:
    """Each of METRICS for each of the queries [q], which are numbers of images."""
    vectors = apply(head, rows.vectors)
    packed = kernels.pack(vectors, rows.offsets, kind="fp32")
    found: dict[str, list[float]] = {name: [] for name in METRICS}
    for query in queries.tolist():
        scores = packed.scores(vectors[rows.offsets[query] : rows.offsets[query + 1]])
        ranked = [rows.ids[image] for image in np.argsort(-scores, kind="stable")]
        same = {rows.ids[image]: 1 for image in np.flatnonzero(rows.labels == rows.labels[query]) if image != query}
        judged = judge(ranked, Judgement(same, ignored=frozenset([rows.ids[query]])), METRICS)
        for name in METRICS:
            found[name].append(judged[name])
    return {name: np.array(values) for name, values in found.items()}


def compare(
    before: Values,
    after: Values,
    things: IntArray,
    interval: Interval,
    chance: Chance,
    generator: np.random.Generator,
) -> Gain:
    """Queries of one thing are alike, so that things, not queries, are what is drawn anew: each counts by its mean."""
    names = np.unique(things)
    means = [np.array([values[things == name].mean() for name in names]) for values in (before, after)]
    low, high = interval(means[1], means[0], generator)
    alike = chance(means[1], means[0], generator) / 2  # it counts losses as large, too
    return Gain(float(means[0].mean()), float(means[1].mean()), low, high, alike, len(names), len(things))


def choose_queries(rows: FrozenRows, most: int, generator: np.random.Generator) -> IntArray:
    """Images that have another of their thing; of too many, as many of each thing as of the others, or nearly so."""
    groups = [generator.permutation(images) for images in rows.group()]
    longest = max(map(len, groups), default=0)
    turns = [images[turn] for turn in range(longest) for images in groups if turn < len(images)]
    return np.sort(np.array(turns[:most], np.int64))


def apply(head: Head | None, vectors: NDArray[np.floating]) -> FloatArray:
    """The rows as they are, or through the head."""
    if head is None:
        return np.asarray(vectors, np.float32)
    parts = [
        head.apply(np.asarray(vectors[low : low + AT_ONCE], np.float32)) for low in range(0, len(vectors), AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, head.skip.shape[1]), np.float32)

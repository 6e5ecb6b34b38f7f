"""Retrieval quality per instance, before and after a head (`measure`), and the gain with its interval (`compare`).

Each query searches all other images by late interaction (MaxSim); images of its own instance are the positives. The
judge, the interval and the significance test are arguments: they come from resight.evaluate, which training must not
import.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight import kernels
from resight.encode.heads import Head
from resight.train.cached_features import CachedFeatures
from resight.types import FloatArray, IntArray, Judgement

METRICS = ("ap", "recall@1")
SIGNIFICANCE = 0.025  # one side of a 95 % interval
HEAD_BATCH = 65_536  # rows
Values = NDArray[np.float64]
Judge = Callable[[Sequence[str], Judgement, Iterable[str]], Mapping[str, float]]
Interval = Callable[[Values, Values, np.random.Generator], tuple[float, float]]
Chance = Callable[[Values, Values, np.random.Generator], float]


@dataclass(frozen=True)
class Gain:
    """Means of one metric over instances, before and after, with the 95 % interval and p-value of the difference."""

    before: float
    after: float
    low: float
    high: float
    chance: float  # one-sided p-value: probability of such a gain if there is none
    things: int  # number of instances
    queries: int

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def is_sure(self) -> bool:
        """With few instances the interval alone is too narrow: with three, one in eight lies above 0 by chance."""
        return self.low > 0 and self.chance <= SIGNIFICANCE


def measure(rows: CachedFeatures, head: Head | None, queries: IntArray, judge: Judge) -> dict[str, Values]:
    """Each of METRICS for each query; `queries` [q] are numbers of images."""
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
    instances: IntArray,
    interval: Interval,
    chance: Chance,
    generator: np.random.Generator,
) -> Gain:
    """The gain over instances; queries of one instance are alike, so each instance counts once, by its mean."""
    names = np.unique(instances)
    means = [np.array([values[instances == name].mean() for name in names]) for values in (before, after)]
    low, high = interval(means[1], means[0], generator)
    one_sided = chance(means[1], means[0], generator) / 2
    return Gain(float(means[0].mean()), float(means[1].mean()), low, high, one_sided, len(names), len(instances))


def choose_queries(rows: CachedFeatures, most: int, generator: np.random.Generator) -> IntArray:
    """Up to `most` queries with a positive, balanced over instances."""
    groups = [generator.permutation(images) for images in rows.group()]
    longest = max(map(len, groups), default=0)
    turns = [images[turn] for turn in range(longest) for images in groups if turn < len(images)]
    return np.sort(np.array(turns[:most], np.int64))


def apply(head: Head | None, vectors: NDArray[np.floating]) -> FloatArray:
    """The rows, through the head if there is one."""
    if head is None:
        return np.asarray(vectors, np.float32)
    parts = [
        head.apply(np.asarray(vectors[low : low + HEAD_BATCH], np.float32))
        for low in range(0, len(vectors), HEAD_BATCH)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, head.skip.shape[1]), np.float32)

"""New scores for the candidates of a ranking: they come first, by these; the rest keeps its order below them.

    s = λ · global + (1 − λ) · σ(local / γ)

global is the score that an image came with, local the new one, σ the logistic function; λ is called `balance` and γ
`temperature`. γ = 0 means the local score as it is, so that λ = 0 and γ = 0 give the local score alone. AMES, and with
it Patchify, call γ what multiplies the score, σ(γ · local): rerankers take it as `gamma`, which is 1 / temperature.
gamma = 0 makes all local scores equal and leaves the order of the shortlist.

Rerankers that compare one vector per image or region also find their branch and its rows here. A table that measures
many settings of one reranker compares the same pairs again and again: inside `remember_scores`, `find_scores` computes
each of them once.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import numpy as np

from resight.errors import RecipeError
from resight.plugins import check_range
from resight.search.gallery import Gallery
from resight.types import Descriptors, FloatArray, Query, Ranking


@dataclass
class _Memory:
    """Local scores of one query: the way of scoring → image → score."""

    query: Descriptors | None = None
    scores: dict[str, dict[str, float]] = field(default_factory=dict)


_memory: ContextVar[_Memory | None] = ContextVar("local scores", default=None)


def rescore(
    ranking: Ranking, found: Mapping[str, float], signal: str, balance: float = 0.0, temperature: float = 0.0
) -> Ranking:
    """`found` holds the local score of every candidate; it also becomes the signal of that name."""
    rest = np.array([name not in found for name in ranking.ids], bool)
    if rest.all():
        return ranking
    scores = np.array([found.get(name, 0.0) for name in ranking.ids], np.float32)
    scores[~rest] = blend(ranking.scores[~rest], scores[~rest], balance, temperature)
    if rest.any():
        # Scores of two kinds cannot be compared: those of the rest move below the lowest of the others.
        scores[rest] = ranking.scores[rest] - ranking.scores[rest].max() + scores[~rest].min() - 1e-3
    order = np.argsort(-scores, kind="stable")
    signals = {
        name: {**ranking.signals.get(name, {}), **({signal: found[name]} if name in found else {})}
        for name in ranking.ids
    }
    return replace(ranking, ids=tuple(ranking.ids[row] for row in order), scores=scores[order], signals=signals)


def blend(overall: FloatArray, local: FloatArray, balance: float, temperature: float) -> FloatArray:
    """The formula above, for scores [n] of both kinds."""
    if temperature > 0:
        local = np.asarray(1 / (1 + np.exp(np.clip(-local / temperature, -80, 80))), np.float32)
    return np.asarray(balance * overall + (1 - balance) * local, np.float32)


@contextmanager
def remember_scores() -> Iterator[None]:
    """Inside, `find_scores` remembers the scores of the latest query; the images must not change meanwhile."""
    token = _memory.set(_Memory())
    try:
        yield
    finally:
        _memory.reset(token)


def find_scores(
    how: str,
    query: Descriptors,
    names: Sequence[str],
    compute: Callable[[Sequence[str]], Mapping[str, float]],
) -> dict[str, float]:
    """The local scores of some images; `how` names everything but the query that they depend on."""
    memory = _memory.get()
    if memory is None:
        return dict(compute(names))
    if memory.query is not query:
        memory.query, memory.scores = query, {}
    known = memory.scores.setdefault(how, {})
    missing = [name for name in names if name not in known]
    if missing:
        known |= compute(missing)
    return {name: known[name] for name in names if name in known}


def check_blend(balance: float, temperature: float, gamma: float | None = None) -> None:
    """For the `__post_init__` of a reranker that blends."""
    check_range("balance", balance, 0, 1)
    check_range("temperature", temperature, 0)
    check_range("gamma", gamma or 0, 0)
    if temperature and gamma is not None:
        raise RecipeError(
            "the temperature is given twice",
            expected="temperature, which divides the local score, or gamma, which multiplies it",
            actual=f"temperature = {temperature}, gamma = {gamma}",
            fix="leave out one of them",
        )


def choose_temperature(temperature: float, gamma: float | None) -> float:
    """What divides the local score: 1 / gamma if that is given."""
    if gamma is None:
        return temperature
    return 1 / gamma if gamma else math.inf


def require_vector_branch(query: Query, reranker: str) -> int:
    """The first branch whose query rows are neither tokens (they have boxes) nor local features nor visual words."""
    for branch, rows in enumerate(query.descriptors):
        if len(rows) and rows.boxes is None and rows.points is None and rows.words is None:
            return branch
    raise RecipeError(
        f"{reranker} needs one vector per image or per region",
        expected='a branch with a descriptor such as "pooled" or "vlad"',
        actual=f"{len(query.descriptors)} branches, of tokens, local features or visual words",
        fix="add such a branch, or remove the reranker",
    )


def read_vectors(gallery: Gallery, branch: int, ids: Sequence[str]) -> Iterator[FloatArray]:
    """The rows [r, D] of each image as float32, in the order of the ids."""
    for chunk in gallery.descriptors(branch, ids):
        limits = np.searchsorted(chunk.owners, np.arange(len(chunk.ids) + 1))
        for first, last in itertools.pairwise(limits):
            yield np.asarray(chunk.vectors[first:last], np.float32)

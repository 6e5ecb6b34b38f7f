"""New scores for the candidates of a ranking: they come first, by these; the rest keeps its order below them.

    s = λ · global + (1 − λ) · σ(local / γ)

global is the score that an image came with, local the new one, σ the logistic function; λ is called `balance` and γ
`temperature`. γ = 0 means the local score as it is, so that λ = 0 and γ = 0 give the local score alone.

Rerankers that compare one vector per image or region also find their branch and its rows here.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from resight.errors import RecipeError
from resight.plugins import check_range
from resight.search.gallery import Gallery
from resight.types import FloatArray, Query, Ranking


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


def check_blend(balance: float, temperature: float) -> None:
    """For the `__post_init__` of a reranker that blends."""
    check_range("balance", balance, 0, 1)
    check_range("temperature", temperature, 0)


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

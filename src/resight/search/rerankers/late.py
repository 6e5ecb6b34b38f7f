"""Late interaction on the best candidates: the second of two stages.

In: a shortlist by one vector an image, and a branch with many tokens an image. Adds the signal `late`, the mean over
the query's tokens of the best dot product, which becomes the score of the candidates; the others keep their order
below them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from resight import kernels
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.search.rerankers import Gallery
from resight.types import Descriptors, FloatArray, Query, Ranking


@dataclass(frozen=True)
class Config:
    candidates: int = 100

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 1, 1_000_000)


def build(config: Config) -> "Late":
    return Late(config.candidates)


class Late:
    def __init__(self, candidates: int) -> None:
        self.candidates = candidates
        self.signals: tuple[str, ...] = ("late",)

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = _find_token_branch(query)
        looked_at = ranking.ids[: self.candidates]
        late = dict(_score(query.descriptors[branch].vectors, gallery.descriptors(branch, looked_at)))
        if not late:
            return ranking
        # What was not looked at goes below, in its order: its scores are moved under the lowest of the others.
        lowest = min(late.values())
        rest = ranking.scores[len(looked_at) :]
        moved = rest - (rest.max() if len(rest) else 0) + lowest - 1e-3
        scores = np.concatenate([np.array([late[name] for name in looked_at], np.float32), moved]).astype(np.float32)
        order = np.argsort(-scores, kind="stable")
        signals = {
            name: {**ranking.signals.get(name, {}), **({"late": late[name]} if name in late else {})}
            for name in ranking.ids
        }
        return replace(ranking, ids=tuple(ranking.ids[row] for row in order), scores=scores[order], signals=signals)


def _score(query: FloatArray, chunks: Iterator[Descriptors]) -> Iterator[tuple[str, float]]:
    for chunk in chunks:
        offsets = np.searchsorted(chunk.owners, np.arange(len(chunk.ids) + 1)).astype(np.int64)
        if len(query) == 0 or len(chunk) == 0:
            scores = np.zeros(len(chunk.ids), np.float32)
        else:
            scores = kernels.pack(chunk.vectors, offsets, kind="fp32").scores(query)
        for name, score in zip(chunk.ids, scores.tolist(), strict=True):
            yield name, score if np.isfinite(score) else 0.0


def _find_token_branch(query: Query) -> int:
    """The first branch with boxes and without key points: tokens know which part of the image they stand for."""
    for branch, rows in enumerate(query.descriptors):
        if rows.boxes is not None and rows.points is None:
            return branch
    raise RecipeError(
        "late interaction needs tokens",
        expected='a branch with the descriptor "aggregated" or "tokens"',
        actual=f"{len(query.descriptors)} branches, none with tokens",
        fix="add such a branch with weight = 0, or remove the reranker",
    )

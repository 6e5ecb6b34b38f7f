"""The first candidates: every branch searches its own index, then their scores are fused.

Every branch scores all candidates, also those that only another branch has found, so that a high score is never
compared with a missing one. The signals of an image get each branch's score, under the branch's name, and its robust
z-score, as `standout` (`NAME_standout` if there are several branches). If images have regions, the region with the best
score is the first guess of where the instance is; of several branches, that of the branch with the largest z-score.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resight import topk
from resight.index import Searcher
from resight.search.fusions import Fusion
from resight.search.fusions.robust_zscore import robust_zscore
from resight.types import Box, Descriptors, FloatArray, Query, Ranking


@dataclass(frozen=True)
class Shortlister:
    """The index of one branch; `name` is that of its score among the signals."""

    name: str
    branch: int
    weight: float
    searcher: Searcher


def shortlist(
    query: Query, shortlisters: Sequence[Shortlister], fusion: Fusion, depth: int, allowed: frozenset[str] | None
) -> Ranking:
    """The `depth` best by the fused score, with the signals of each."""
    found = [part.searcher.search(query.descriptors[part.branch], depth, allowed) for part in shortlisters]
    ids = list(dict.fromkeys(name for ranking in found for name in ranking.ids))
    found = [
        complete(some, part.searcher, query.descriptors[part.branch], ids)
        for part, some in zip(shortlisters, found, strict=True)
    ]
    scores = np.stack([_order(ranking, ids) for ranking in found])
    weights = np.array([part.weight for part in shortlisters], np.float32)
    ranking = topk.best(query.id, ids, fusion.fuse(scores, weights), depth)
    standouts = np.stack([robust_zscore(branch) for branch in scores])
    signals: dict[str, dict[str, float]] = {name: {} for name in ids}
    for part, values, zscores in zip(shortlisters, scores.tolist(), standouts.tolist(), strict=True):
        for name, value, zscore in zip(ids, values, zscores, strict=True):
            signals[name] |= {part.name: value, name_standout(part.name, len(shortlisters)): zscore}
    proofs = [(part.name, one.proof) for part, one in zip(shortlisters, found, strict=True) if one.proof]
    proof = " ".join(text if len(shortlisters) == 1 else f"{name}: {text}" for name, text in proofs)
    regions = _choose_regions(found, ids, weights[:, None] * standouts)
    regions = {name: regions[name] for name in ranking.ids if name in regions}
    return replace(
        ranking,
        signals={name: signals[name] for name in ranking.ids},
        proof=proof,
        boxes=regions,
        regions=regions,
        located_by=dict.fromkeys(regions, "region"),
    )


def name_standout(part: str, parts: int) -> str:
    return "standout" if parts == 1 else f"{part}_standout"


def complete(found: Ranking, searcher: Searcher, query: Descriptors, ids: Iterable[str]) -> Ranking:
    """A ranking, followed by those of `ids` that are missing in it."""
    missing = frozenset(ids) - frozenset(found.ids)
    if not missing:
        return found
    rest = searcher.search(query, len(missing), missing)
    return replace(
        found,
        ids=(*found.ids, *rest.ids),
        scores=np.concatenate([found.scores, rest.scores]),
        boxes={**found.boxes, **rest.boxes},
    )


def _order(ranking: Ranking, ids: list[str]) -> FloatArray:
    scores = dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))
    return np.array([scores[name] for name in ids], np.float32)


def _choose_regions(found: Sequence[Ranking], ids: list[str], weights: FloatArray) -> dict[str, Box]:
    """The region of each candidate, from the branch that has one and weighs most: weights [branches, candidates]."""
    regions: dict[str, Box] = {}
    for column, name in enumerate(ids):
        branches = [branch for branch, ranking in enumerate(found) if name in ranking.boxes]
        if branches:
            regions[name] = found[max(branches, key=lambda branch: weights[branch, column])].boxes[name]
    return regions

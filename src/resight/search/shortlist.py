"""The first candidates: every branch searches its own index, then their scores are fused.

Every branch scores all candidates, also those that only another branch has found, so that a high score is never
compared with a missing one. The signals of an image get each branch's score, under the branch's name, and its robust
z-score, as `standout` (`NAME_standout` if there are several branches). If images have regions, the region with the best
score is the first guess of where the instance is; of several branches, that of the branch with the largest z-score.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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
    ids = list(found[0].ids)
    if len(found) > 1:
        ids = list(dict.fromkeys(name for ranking in found for name in ranking.ids))
        found = [
            complete(some, part.searcher, query.descriptors[part.branch], ids)
            for part, some in zip(shortlisters, found, strict=True)
        ]
        ids = _keep_common(ids, found)
    scores = np.stack([_order(ranking, ids) for ranking in found])
    weights = np.array([part.weight for part in shortlisters], np.float32)
    ranking = topk.best(query.id, ids, fusion.fuse(scores, weights), depth)
    standouts = np.stack([robust_zscore(branch) for branch in scores])
    names = [part.name for part in shortlisters]
    proofs = [(part.name, one.proof) for part, one in zip(shortlisters, found, strict=True) if one.proof]
    proof = " ".join(text if len(shortlisters) == 1 else f"{name}: {text}" for name, text in proofs)
    regions = _choose_regions(found, ids, weights[:, None] * standouts)
    regions = {name: regions[name] for name in ranking.ids if name in regions} if regions else {}
    return replace(
        ranking,
        signals=ShortlistSignals(names, ids, scores, standouts, ranking.ids),
        proof=proof,
        boxes=regions,
        regions=regions,
        located_by=dict.fromkeys(regions, "region"),
    )


class ShortlistSignals(Mapping[str, Mapping[str, float]]):
    """The score and the standout of each branch, by image; made when they are asked for.

    An evaluation ranks all images of a collection and reads the signals of a few.
    """

    def __init__(
        self,
        names: Sequence[str],
        ids: Sequence[str],
        scores: FloatArray,
        standouts: FloatArray,
        kept: Sequence[str],
    ) -> None:
        """`scores` and `standouts` [branches, ids]; of the ids, those `kept` are there."""
        self._ids = ids
        self._kept = kept
        self._keys = [key for name in names for key in (name, name_standout(name, len(names)))]
        self._values = np.stack([scores, standouts], axis=1).reshape(len(self._keys), len(ids))

    def read(self, key: str, ids: Sequence[str]) -> NDArray[np.float64]:
        """One signal of some images; 0 if no image has it."""
        if key not in self._keys:
            return np.zeros(len(ids), np.float64)
        places = [self._places[name] for name in ids]
        return self._values[self._keys.index(key), places].astype(np.float64)

    @cached_property
    def _places(self) -> dict[str, int]:
        places = {name: place for place, name in enumerate(self._ids)}
        return places if len(self._kept) == len(places) else {name: places[name] for name in self._kept}

    def __getitem__(self, name: str) -> dict[str, float]:
        return dict(zip(self._keys, self._values[:, self._places[name]].tolist(), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


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


def _keep_common(ids: list[str], found: Sequence[Ranking]) -> list[str]:
    """The images that every branch has scored: on a full disk, an older index that serves on lacks new ones."""
    if all(len(ranking.ids) == len(ids) for ranking in found):
        return ids
    common = frozenset(ids).intersection(*(ranking.ids for ranking in found))
    return [name for name in ids if name in common]


def _order(ranking: Ranking, ids: list[str]) -> FloatArray:
    if len(ids) == len(ranking.ids) and ids == list(ranking.ids):
        return np.asarray(ranking.scores, np.float32)
    scores = dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))
    return np.array([scores[name] for name in ids], np.float32)


def _choose_regions(found: Sequence[Ranking], ids: list[str], weights: FloatArray) -> dict[str, Box]:
    """The region of each candidate, from the branch that has one and weighs most: weights [branches, candidates]."""
    regions: dict[str, Box] = {}
    if not any(ranking.boxes for ranking in found):
        return regions
    for column, name in enumerate(ids):
        branches = [branch for branch, ranking in enumerate(found) if name in ranking.boxes]
        if branches:
            regions[name] = found[max(branches, key=lambda branch: weights[branch, column])].boxes[name]
    return regions

"""Several indexes of one kind over parts of a collection, searched as one: the answer is that of an index over the
whole.

A segment answers for its `live` images; it also holds dead ones, which were removed or changed since it was built. The
best k live images of a segment are among its best k + (number of dead ones). Dead images are rarely among the best, so
a search asks for a few more than k first, and for k + (number of dead ones) only if too few live ones come back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resight import topk
from resight.index import Searcher
from resight.types import Box, Descriptors, Ranking

SPARE = 16  # images beyond k in the first attempt, at most


@dataclass(frozen=True)
class Segment:
    searcher: Searcher
    live: frozenset[str]
    dead: int = 0  # number of dead images

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None) -> Ranking:
        if allowed is not None:
            return self.searcher.search(query, k, allowed & self.live if self.dead else allowed)
        found = self.searcher.search(query, k + min(self.dead, SPARE))
        kept = self._drop_dead(found, k)
        if len(kept.ids) < min(k, len(self.live)):
            kept = self._drop_dead(self.searcher.search(query, k + self.dead), k)
        return kept

    def _drop_dead(self, found: Ranking, k: int) -> Ranking:
        if not self.dead:
            return found
        slots = [slot for slot, name in enumerate(found.ids) if name in self.live][:k]
        ids = tuple(found.ids[slot] for slot in slots)
        boxes = {name: found.boxes[name] for name in ids if name in found.boxes}
        return replace(found, ids=ids, scores=found.scores[slots], boxes=boxes)


def join(segments: Sequence[Segment]) -> Searcher:
    """One searcher for all segments (at least one); no two of them share a live image."""
    first, *rest = segments
    return JoinedSearcher(tuple(segments)) if rest or first.dead else first.searcher


@dataclass(frozen=True)
class JoinedSearcher:
    segments: tuple[Segment, ...]

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return merge([segment.search(query, k, allowed) for segment in self.segments], k)


def merge(found: Sequence[Ranking], k: int) -> Ranking:
    """The best k of rankings (at least one) over parts that share no image."""
    ids = [name for ranking in found for name in ranking.ids]
    scores = np.concatenate([ranking.scores for ranking in found])
    best = topk.best(found[0].query_id, ids, scores, k)
    boxes: dict[str, Box] = {name: box for ranking in found for name, box in ranking.boxes.items()}
    return replace(
        best,
        boxes={name: boxes[name] for name in best.ids if name in boxes},
        proof=_join_proofs(ranking.proof for ranking in found),
    )


def _join_proofs(proofs: Iterable[str]) -> str:
    """Each segment proves its own answer, and the best of all is among them, so that is proven too."""
    distinct = list(dict.fromkeys(proof for proof in proofs if proof))
    return (
        distinct[0]
        if len(distinct) == 1
        else " ".join(f"Part {part}: {proof}" for part, proof in enumerate(distinct, start=1))
    )

"""Several indexes over parts of a collection, searched as one.

Indexes of one kind over parts of a collection → one Searcher, whose answer is that of an index over the whole.

A segment answers for its `live` images; others that it holds were removed or changed since, and do not count. The best
k live ones of a segment are among its best k + (number of dead ones). It is asked for a few more than k at first, since
the dead ones are rarely the best, and for all that could be needed where too few are left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resight import topk
from resight.index import Searcher
from resight.types import Box, Descriptors, Ranking

SPARE = 16


@dataclass(frozen=True)
class Segment:
    searcher: Searcher
    live: frozenset[str]
    dead: int = 0  # images that it holds beside the live ones

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None) -> Ranking:
        if allowed is not None:
            return self.searcher.search(query, k, allowed & self.live if self.dead else allowed)
        found = self.searcher.search(query, k + min(self.dead, SPARE))
        kept = self._leave_live(found, k)
        if len(kept.ids) < min(k, len(self.live)):
            kept = self._leave_live(self.searcher.search(query, k + self.dead), k)
        return kept

    def _leave_live(self, found: Ranking, k: int) -> Ranking:
        if not self.dead:
            return found
        slots = [slot for slot, name in enumerate(found.ids) if name in self.live][:k]
        ids = tuple(found.ids[slot] for slot in slots)
        boxes = {name: found.boxes[name] for name in ids if name in found.boxes}
        return replace(found, ids=ids, scores=found.scores[slots], boxes=boxes)


def join(segments: Sequence[Segment]) -> Searcher:
    """One searcher for all; the live images of no two segments are the same. There has to be one."""
    first, *rest = segments
    return JoinedSearcher(tuple(segments)) if rest or first.dead else first.searcher


@dataclass(frozen=True)
class JoinedSearcher:
    segments: tuple[Segment, ...]

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return merge([segment.search(query, k, allowed) for segment in self.segments], k)


def merge(found: Sequence[Ranking], k: int) -> Ranking:
    """The best k of rankings over parts that have no image in common. There has to be one."""
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
    """Each segment's own answer is proven; that the best of all is among them needs no further proof."""
    told = list(dict.fromkeys(proof for proof in proofs if proof))
    return told[0] if len(told) == 1 else " ".join(f"Part {part}: {proof}" for part, proof in enumerate(told, start=1))

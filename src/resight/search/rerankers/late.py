"""Late interaction on the best candidates: the second of two stages.

In: a shortlist by one vector an image, and a branch with many tokens an image. Adds the signal `late`, the mean over
the query's tokens of the best dot product, which becomes the score of the candidates; the others keep their order
below them. Tokens come from an index of their own, which is mapped: only those of the candidates are read.
"""

from dataclasses import dataclass
from typing import Any, Literal

from resight.plugins import check_range
from resight.search.promote import promote
from resight.search.rerankers import Gallery
from resight.search.token_support import require_token_branch
from resight.types import Choice, Query, Ranking


@dataclass(frozen=True)
class Config:
    candidates: int = 100
    kind: Literal["fp32", "fp16", "int8", "pq"] = "int8"  # how their tokens are kept
    m: int = 0  # pq: parts of a token; 0: a quarter of the dimensions
    bits: Literal[4, 8] = 4  # pq: of each part

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 1, 1_000_000)


def build(config: Config) -> "Late":
    settings: dict[str, Any] = {"kind": config.kind, "keep": "none"}
    # The index refuses what does not fit the kind; what was left alone is not its business.
    settings |= {
        name: getattr(config, name) for name in ("m", "bits") if getattr(config, name) != getattr(Config, name)
    }
    return Late(config.candidates, Choice("late", settings))


class Late:
    def __init__(self, candidates: int, index: Choice) -> None:
        self.candidates = candidates
        self.signals: tuple[str, ...] = ("late",)
        self._index = index

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = require_token_branch(query)
        looked_at = ranking.ids[: self.candidates]
        if not looked_at:
            return ranking
        searcher = gallery.searcher(branch, self._index)
        found = searcher.search(query.descriptors[branch], len(looked_at), frozenset(looked_at))
        late = dict(zip(found.ids, found.scores.tolist(), strict=True))
        return promote(ranking, late, "late")

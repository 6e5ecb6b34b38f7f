"""Box refinement by patches: the patches of the region that won, encoded now, show where in it the instance is.

A region's vector shows that the instance is in it, and not where. The reranker grows the region by `grow` of its sides,
reads it from the image's file and encodes its patches; each patch of the query votes for its nearest one, and the box
is the area with most votes (search/locate_boxes.py). It is for objects without texture, where geometry finds nothing:
it skips images that were verified before. Without regions, it looks at the whole image.

With `reorder`, the patches also decide the order: the signal `patch_refine` is their MaxSim, which `balance` and
`temperature` blend with the previous score (search/rescoring.py). It then looks at all candidates.
"""

from dataclasses import dataclass, replace

from resight.boxes import grow
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.search.gallery import Gallery
from resight.search.locate_boxes import find_supported_part, match_tokens
from resight.search.rescoring import check_blend, rescore
from resight.types import Box, Descriptors, Query, Ranking


@dataclass(frozen=True)
class Config:
    candidates: int = 10  # first images of the ranking to refine; each takes one pass of the network
    grow: float = 0.25  # margin added on each side of the region, as a share of that side
    reorder: bool = False  # let the patches change the order too, not only the boxes
    balance: float = 0.0  # reorder: weight of the previous score in the blend, 0 to 1; 0: the new score alone
    temperature: float = 0.0  # reorder: turn the new score into 1 / (1 + exp(-score / temperature)) first; 0: leave it

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 0, 1_000_000)
        check_range("grow", self.grow, 0, 10)
        check_blend(self.balance, self.temperature)


def build(config: Config) -> "PatchRefine":
    return PatchRefine(config)


class PatchRefine:
    def __init__(self, config: Config) -> None:
        self.candidates = config.candidates
        self.signals: tuple[str, ...] = ("patch_refine",) if config.reorder else ()
        self._config = config

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        config = self._config
        looked_at = ranking.ids[: config.candidates]
        scores = dict.fromkeys(looked_at, 0.0)
        boxes: dict[str, Box] = {}
        for name in looked_at:
            if name in ranking.matches and not config.reorder:
                continue
            region = ranking.regions.get(name)
            patches = gallery.patches(name, None if region is None else grow(region, config.grow))
            found = match_tokens(_require_patches(query), patches) if patches is not None else None
            if found is None:  # its file is gone, or it has no patches
                continue
            scores[name] = float(found.similarities.mean())
            if (box := find_supported_part(found)) is not None:
                boxes[name] = box
        if config.reorder:
            ranking = rescore(ranking, scores, "patch_refine", config.balance, config.temperature)
        located_by = {**ranking.located_by, **dict.fromkeys(boxes, "tokens")}
        return replace(ranking, boxes={**ranking.boxes, **boxes}, located_by=located_by)


def _require_patches(query: Query) -> Descriptors:
    if query.patches is None:
        raise RecipeError(
            "patch_refine needs patches",
            expected='a branch of tokens, or one with the descriptor "pooled" and regions',
            actual=f"{len(query.descriptors)} branches, none of which has patches",
            fix="add such a branch, or remove the reranker",
        )
    return query.patches

"""A closer look at the region that won: its patches, encoded now, show where in it the thing is.

A region's vector says that the thing is there, and not where it begins and ends. The region, grown by `grow` of its
sides, is read from the image's file once more and cut into patches; each patch of the query votes for the one that is
most like it, and the box is the area with most votes (search/token_support.py). For things without texture, where
geometry finds nothing: an image that was verified before is passed over. Without regions, the whole image is looked at.

With `reorder`, the patches also decide the order: the signal `closer` is their MaxSim, blended with the score that
they came with as `balance` and `temperature` say (search/rescore.py). All candidates are then looked at.
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
    candidates: int = 10  # each takes a run of the network
    grow: float = 0.25  # on each side
    reorder: bool = False
    balance: float = 0.0
    temperature: float = 0.0

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
            "a closer look needs patches",
            expected='a branch of tokens, or one with the descriptor "pooled" and regions',
            actual=f"{len(query.descriptors)} branches, none of which has patches to look at",
            fix="add such a branch, or remove the reranker",
        )
    return query.patches

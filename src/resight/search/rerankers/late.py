"""Late interaction on the best candidates: the second of two stages.

In: a shortlist by one vector per image, and a branch with many tokens per image. Adds the signal `late`, the mean over
the query's tokens of the best dot product, which `balance` and `temperature` may blend with the previous score
(`rescore`); images beyond the candidates keep their order below them.

    within = "image"     tokens come from an index of their own, which is mapped: only those of the candidates are read
    within = "region"    only stored tokens whose own patch has its centre in the region that won (`Ranking.regions`)
                         count; all of them without a region, or if none lies in it

Two scores of the supplement of Patchify (S6) are settings of it:

    ILIAS baseline       all patches of query and candidate (descriptor `tokens`) and kind = "fp16". The text names a
                         dense correlation of features and the true boxes of instances, and no formula. We read it so:
                         the query is cropped to its box (data = { name = "ilias", query_box = true }); a candidate has
                         none at search time, so all of it counts; the score is the mean of each query patch's best
    Patchify's own       `branch` names a branch with regions, whose query is one vector: the score is that of the best
                         region, to be blended with that of the whole image
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from resight.boxes import contains
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.search.gallery import Gallery
from resight.search.locate_boxes import require_boxes, require_token_branch, split
from resight.search.rescoring import check_blend, choose_temperature, find_scores, rescore
from resight.types import Box, Choice, Descriptors, Query, Ranking

MOST = 1_000_000  # candidates


@dataclass(frozen=True)
class Config:
    candidates: int = 100  # first images of the ranking to score again
    share: float = 0.0  # instead, this share of the images, 0 to 1; the shortlist then holds all of them
    kind: Literal["fp32", "fp16", "int8", "pq"] = "int8"  # how the index codes tokens; pq: product quantisation
    m: int = 0  # pq: parts per token; 0: a quarter of the dimensions
    bits: Literal[4, 8] = 4  # pq: bits per part
    within: Literal["image", "region"] = "image"  # compare all tokens of an image, or those in its best region
    balance: float = 0.0  # weight of the previous score in the blend, 0 to 1; 0: the new score alone
    temperature: float = 0.0  # turn the new score into 1 / (1 + exp(-score / temperature)) first; 0: leave it as it is
    gamma: float | None = None  # instead of temperature: 1 / (1 + exp(-gamma · score)), as AMES has it
    branch: int | None = None  # number of the branch to compare, from 0; None: the first with tokens

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 0, MOST)
        check_range("share", self.share, 0, 1)
        check_range("branch", self.branch or 0, 0, 1000)
        check_blend(self.balance, self.temperature, self.gamma)
        kept = [name for name in ("kind", "m", "bits") if getattr(self, name) != getattr(Config, name)]
        if self.within == "region" and kept:
            raise RecipeError(
                f"{', '.join(kept)} would have no effect",
                expected='within = "image", where tokens come from an index',
                actual='within = "region", where they come as they are stored',
                fix=f"leave out {', '.join(kept)}",
            )


def build(config: Config) -> "Late":
    settings: dict[str, Any] = {"kind": config.kind, "keep": "none"}
    # The index refuses settings that do not fit the kind, so that it gets only those that were set.
    settings |= {
        name: getattr(config, name) for name in ("m", "bits") if getattr(config, name) != getattr(Config, name)
    }
    return Late(config, Choice("maxsim", settings))


class Late:
    def __init__(self, config: Config, index: Choice) -> None:
        self.candidates = MOST if config.share else config.candidates
        self.signals: tuple[str, ...] = ("late",)
        self.own_index = index if config.within == "image" else None
        self._config = config

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = self._choose_branch(query)
        share = self._config.share
        looked_at = ranking.ids[: round(share * len(ranking.ids)) if share else self.candidates]
        if not looked_at:
            return ranking
        if self.own_index is None:
            images = split(gallery.descriptors(branch, looked_at))
            late = {image.ids[0]: score for image, score in _score_regions(query.descriptors[branch], images, ranking)}
        else:
            late = self._search(query.descriptors[branch], branch, looked_at, gallery)
        temperature = choose_temperature(self._config.temperature, self._config.gamma)
        return rescore(ranking, late, "late", self._config.balance, temperature)

    def _search(self, query: Descriptors, branch: int, names: Sequence[str], gallery: Gallery) -> dict[str, float]:
        """The score of each image by its codes in the index."""

        def compare(missing: Sequence[str]) -> dict[str, float]:
            found = gallery.searcher(branch, self.own_index).search(query, len(missing), frozenset(missing))
            return dict(zip(found.ids, found.scores.tolist(), strict=True))

        return find_scores(f"{self.own_index} branch {branch}", query, names, compare)

    def _choose_branch(self, query: Query) -> int:
        if self._config.branch is None:
            return require_token_branch(query)
        if self._config.branch >= len(query.descriptors):
            raise RecipeError(
                f"late compares branch {self._config.branch}, which the recipe does not have",
                expected=f"a number from 0 to {len(query.descriptors) - 1}",
                actual=str(self._config.branch),
                fix="correct the number, or leave branch out",
            )
        return self._config.branch


def _score_regions(
    query: Descriptors, images: Iterator[Descriptors], ranking: Ranking
) -> Iterator[tuple[Descriptors, float]]:
    for image in images:
        box = ranking.regions.get(image.ids[0])
        inside = image if box is None else keep_inside(image, box)
        yield image, interact(query, inside if len(inside) else image)


def interact(query: Descriptors, image: Descriptors) -> float:
    """(1/Kq) Σ_i max_j ⟨q_i, x_j⟩ of two single images; 0 if one has no tokens."""
    if not len(query) or not len(image):
        return 0.0
    return float((query.vectors.astype(np.float32) @ image.vectors.astype(np.float32).T).max(axis=1).mean())


def keep_inside(image: Descriptors, box: Box) -> Descriptors:
    """The tokens of an image whose own patch has its centre in the box."""
    boxes = require_boxes(image)
    patches = boxes if image.seeds is None else image.seeds
    middles = (patches[:, :2] + patches[:, 2:]) / 2
    inside = contains(box, middles)
    return replace(
        image,
        vectors=image.vectors[inside],
        owners=image.owners[inside],
        boxes=boxes[inside],
        seeds=None if image.seeds is None else image.seeds[inside],
    )

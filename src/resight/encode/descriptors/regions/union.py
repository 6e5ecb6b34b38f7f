"""The union of several region sources, e.g. a grid for the whole image and saliency for what stands out.

In: a picture. Out: the proposals of all sources, one source after the other; of near-duplicates the one of the earlier
source stays. The scores of two sources cannot be compared, so the n-th best of every source scores 1 / n: with `most`,
the sources take turns.

    regions = { name = "union", sources = ["saliency", { name = "grid", level = 1 }], most = 20 }
"""

from dataclasses import dataclass

import numpy as np

from resight.encode.descriptors import regions
from resight.encode.regions import Proposals, join_proposals, keep_best
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Choice, FloatArray, Picture


@dataclass(frozen=True)
class Config:
    sources: tuple[Choice, ...] = ()  # region sources to join, e.g. ["saliency", { name = "grid", level = 1 }]
    most: int | None = None  # most boxes per image; the sources take turns; None: all

    def __post_init__(self) -> None:
        check_range("most", 1 if self.most is None else self.most, 1)
        if not self.sources:
            raise RecipeError(
                "there are no region sources to join",
                expected="sources = [ … ], one or more",
                actual="none",
                fix='e.g. sources = ["grid", "saliency"]',
            )


def build(config: Config) -> "Union":
    return Union(config)


class Union:
    def __init__(self, config: Config) -> None:
        self._sources = [regions.build(choice.name, **choice.settings) for choice in config.sources]
        self._most = config.most
        # Collections on disk know this source as "joined": the fingerprint of a space never changes.
        self.fingerprint = f"joined({' + '.join(part.fingerprint for part in self._sources)}, most={config.most})"
        self.finest = max(part.finest for part in self._sources)

    def propose(self, picture: Picture) -> Proposals:
        parts = [source.propose(picture) for source in self._sources]
        return keep_best(
            join_proposals([Proposals(part.boxes, score_ranks(part.scores)) for part in parts]), self._most
        )


def score_ranks(scores: FloatArray) -> FloatArray:
    """1 / rank of each score, the highest first; on a tie the earlier one comes first."""
    ranks = np.argsort(np.argsort(-scores, kind="stable"), kind="stable")
    return np.asarray(1 / (1 + ranks), np.float32)

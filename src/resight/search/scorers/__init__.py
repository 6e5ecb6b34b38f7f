"""Scorers: the local descriptors of a query and of one candidate in, one score out. The reranker `local` uses them."""

from typing import Any, Protocol

from resight import plugins
from resight.types import Descriptors


class Scorer(Protocol):
    fingerprint: str  # settings and weights: whatever changes the scores changes it

    def score(self, query: Descriptors, image: Descriptors) -> float:
        """How much speaks for two single images showing the same thing; also defined where one has no rows."""
        ...


def build(name: str, **settings: Any) -> Scorer:
    scorer: Scorer = plugins.load(__name__, name, settings)
    return scorer

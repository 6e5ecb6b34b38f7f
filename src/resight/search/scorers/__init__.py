"""Scorers: the tokens of a query and of one candidate in, one score out. The reranker `pair_transformer` uses them."""

from typing import Any, Protocol

from resight import plugins
from resight.types import Descriptors


class Scorer(Protocol):
    fingerprint: str  # of settings and weights: it changes with the scores

    def score(self, query: Descriptors, image: Descriptors) -> float:
        """The evidence that two images show the same instance; also defined if one of them has no rows."""
        ...


def build(name: str, **settings: Any) -> Scorer:
    scorer: Scorer = plugins.load(__name__, name, settings)
    return scorer

"""What an evaluation gives: one JudgedQuery a query, and the RunResult that holds them with what was run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resight.types import Recipe

SHOWING = "locate"  # the stage that finds boxes, when the order is fixed already


@dataclass(frozen=True)
class JudgedQuery:
    query_id: str
    stratum: str  # the value of the attribute that figures are broken down by; "" when it has none
    values: Mapping[str, float]  # metric → value; empty for a query without positives
    best_id: str
    best_probability: float | None
    seconds: float  # of the search
    encode_seconds: float = 0.0  # from the file to the encoded query
    stages: Mapping[str, float] = field(default_factory=dict)  # stage of the search → its seconds

    @property
    def rank_seconds(self) -> float:
        """Until the order of the images is known."""
        return self.seconds - self.stages.get(SHOWING, 0.0)


@dataclass(frozen=True)
class RunResult:
    recipe: Recipe
    dataset: str
    database: int
    metrics: tuple[str, ...]
    conventions: Mapping[str, str]  # metric → its meaning in one sentence
    queries: tuple[JudgedQuery, ...]
    unreadable: tuple[str, ...]  # database images that could not be read
    index_seconds: float
    cached: int = 0  # pictures whose features were in the cache: times to encode are not those of the network

    @property
    def judged(self) -> tuple[JudgedQuery, ...]:
        """The queries that figures are about."""
        return tuple(query for query in self.queries if query.values)

    def values(self, metric: str) -> list[float]:
        return [query.values[metric] for query in self.judged]

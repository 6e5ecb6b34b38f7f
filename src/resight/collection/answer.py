"""What a search gives back: a Ranking with what is stored of its images → Answer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from resight.collection.explaining import TokenExplainer
from resight.errors import InputError
from resight.store import ImageRecord
from resight.types import Evidence, Hit, PositionEstimate, Query, Ranking

Stage = Literal["shortlist", "verified"]


@dataclass(frozen=True)
class Answer:
    """All that a search found: hits for people, and the ranking with its matches for programs."""

    query: Query
    ranking: Ranking
    hits: tuple[Hit, ...]
    position: PositionEstimate | None = None  # where the query was taken; None: no positions, or no probabilities
    explainer: TokenExplainer | None = field(default=None, repr=False, compare=False)
    stage: Stage = "verified"  # "shortlist": before reranking, without probabilities
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # id of a hit → its width and height

    def explain(self, hit: Hit) -> Evidence:
        """Why this hit: the verified match, and by tokens which part matched which, with heat maps of both images.

        The maps take one run of the encoder.
        """
        match = self.ranking.matches.get(hit.id)
        evidence = Evidence(
            self.query.id,
            hit.id,
            hit.box,
            match=match,
            probability=hit.probability,
            region=self.ranking.regions.get(hit.id),
            located_by=hit.located_by,
        )
        return self.explainer.explain(evidence) if self.explainer else evidence


def make_answer(
    query: Query,
    ranking: Ranking,
    records: Mapping[str, ImageRecord],
    position: PositionEstimate | None,
    explainer: TokenExplainer | None = None,
    stage: Stage = "verified",
) -> Answer:
    """`records` hold what is stored of each image of the ranking."""
    sizes = {name: records[name].size for name in ranking.ids}
    return Answer(query, ranking, tuple(_list_hits(ranking, records)), position, explainer, stage, sizes)


def check_count(k: int) -> None:
    if k < 1:
        raise InputError("cannot give that many answers", expected="k of 1 or more", actual=f"k = {k}")


def _list_hits(ranking: Ranking, records: Mapping[str, ImageRecord]) -> Iterator[Hit]:
    for name, score in zip(ranking.ids, ranking.scores.tolist(), strict=True):
        record = records[name]
        yield Hit(
            id=record.id,
            path=record.path,
            score=score,
            probability=ranking.probabilities.get(record.id),
            box=ranking.boxes.get(record.id),
            attributes=record.attributes,
            stages=ranking.signals.get(record.id, {}),
            located_by=ranking.located_by.get(record.id, ""),
        )

"""Why an image was found by its tokens or its regions: which part matched which, and maps of support over both images.

The pairs are those of the stored tokens, which the answer was scored by; regions have none. The maps are taken from all
patches of both images, the answer's encoded again for the hit that is shown: a collection keeps a few dozen tokens an
image, and a map of so few is coarse. Where images are cut, it is the region that won which is looked at, larger than
the whole would be. Where a file is gone or has changed since, stored tokens have to do.

What a search gives back: a Ranking with what is stored of its images → Answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from resight.collection.attributes import read_positions
from resight.search.locate_boxes import heat_image, heat_query, match_tokens, split
from resight.search.position import estimate_position, list_best
from resight.store import ImageRecord, Reader
from resight.types import Box, Descriptors, Evidence, Hit, PositionEstimate, Query, Ranking


@dataclass(frozen=True)
class TokenExplainer:
    """Explains the answers to one query."""

    query: Query
    branch: int  # of the patches
    store: Reader
    look: Callable[[str, Box | None], Descriptors | None]  # the patches of a part of an image

    def explain(self, evidence: Evidence) -> Evidence:
        """The evidence with pairs and maps; as it was where one of the images has no tokens."""
        (record,) = self.store.metadata([evidence.image_id])
        own, stored = self._read_tokens(record)
        tokens = match_tokens(own, stored) if own is not None and stored is not None else None
        query, image = self.query.patches or own, self.look(record.id, evidence.region) or stored
        closer = match_tokens(query, image) if query is not None and image is not None else None
        if closer is None or (own is not None and tokens is None):
            return evidence
        heat, query_heat = heat_image(closer, record.size), heat_query(closer, self.query.size)
        return replace(evidence, tokens=tokens, heat=heat, query_heat=query_heat)

    def _read_tokens(self, record: ImageRecord) -> tuple[Descriptors | None, Descriptors | None]:
        """The tokens of the query and the stored ones of an image; none where a branch has one vector a region."""
        own = self.query.descriptors[self.branch]
        if own.boxes is None:
            return None, None
        (stored,) = split(self.store.descriptors(self.branch, [record.id]))
        return own, stored


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
    read: Callable[[Sequence[str]], Iterable[ImageRecord]],
    explainer: TokenExplainer | None = None,
    stage: Stage = "verified",
) -> Answer:
    """`read` gives what is stored of images, by their ids."""
    likely = list_best(ranking)  # may be more images than k
    records = {record.id: record for record in read(list({*ranking.ids, *likely}))}
    position = estimate_position(ranking, read_positions(records[name] for name in likely))
    sizes = {name: records[name].size for name in ranking.ids}
    return Answer(query, ranking, tuple(_list_hits(ranking, records)), position, explainer, stage, sizes)


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

"""What a search gives back: a Ranking and what is stored of its images in, an Answer out.

`Answer.explain` shows why an image was found. The pairs of tokens are those of the stored tokens, which scored the
answer; a branch of regions has none. The heat maps come from all patches of both images: the explainer encodes those of
the answer again, because a collection stores only a few dozen tokens per image, too few for a fine map. If images have
regions, it encodes the region that won, at a larger scale than the whole image. If the file is gone or has changed, the
stored tokens serve.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from resight.geodesy import PositionEstimate
from resight.probability_words import format_outcome
from resight.search.locate_boxes import heat_image, heat_query, match_tokens, split
from resight.search.position import estimate_position, gather_positions, list_best
from resight.store import ImageRecord, Reader
from resight.types import Box, Descriptors, Evidence, Hit, Query, Ranking

if TYPE_CHECKING:
    from PIL import Image

    from resight.collection.answer_pictures import AnswerPictures

Stage = Literal["shortlist", "verified"]


@dataclass(frozen=True)
class Answer:
    """All that a search found: hits for people, and the ranking with its matches for programs.

    `len()`, iteration and `answer[0]` are those of the hits; `id in answer` tells whether one has this id. A notebook
    shows the query and the hits.

    Attributes:
        query: The encoded query.
        ranking: The order of images, with what each stage found.
        hits: The results, best first.
        position: Where the query was taken; None without positions or probabilities.
        explainer: Used by `explain`; None if no branch compares patches.
        stage: "verified", or "shortlist": before reranking, without probabilities.
        sizes: Id of a hit → its width and height.
        searched: How many images were searched: those that meet the filters.

    Examples:
        >>> import resight
        >>> answer = resight.open("photos.resight").ask("query.jpg", k=3)
        >>> answer[0].id, len(answer), "eiffel-2.png" in answer
        ('eiffel-2.png', 3, True)
        >>> list(answer.ranking.ids) == [hit.id for hit in answer]
        True
        >>> answer.verdict
        '1 of 3 answers is very likely the same'
    """

    query: Query
    ranking: Ranking
    hits: tuple[Hit, ...]
    position: PositionEstimate | None = None
    explainer: "TokenExplainer | None" = field(default=None, repr=False, compare=False)
    stage: Stage = "verified"
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    searched: int = 0

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, rank: int) -> Hit:
        return self.hits[rank]

    def __contains__(self, hit: object) -> bool:
        return any(hit in (one.id, one) for one in self.hits)

    @property
    def verdict(self) -> str:
        """What the answer amounts to, in words, such as "probably not among these 437 images"."""
        return format_outcome([hit.probability for hit in self.hits], self.searched)

    def show(self, k: int = 7) -> "Image.Image":
        """Draw the query and the best hits, with their boxes, names and probabilities, as one picture.

        Args:
            k: The most hits to draw.

        Returns:
            A picture. A notebook shows it at the end of a cell; `save` writes a file.

        Raises:
            InputError: The picture of the query is not known: it was a vector.
            ImageError: The file of the query or of a hit is gone.

        Examples:
            >>> import resight
            >>> answer = resight.open("photos.resight").ask("query.jpg")
            >>> answer.show(3).save("answer.jpg")
        """
        return self._drawer.pictures.draw_answer(self.hits[:k])

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Returns:
            One row per hit: rank, id, probability, score, x0, y0, x1, y1 of its box, located_by and path, then a column
            per attribute.

        Examples:
            >>> import resight
            >>> frame = resight.open("photos.resight").ask("query.jpg", k=3).to_frame()
            >>> list(frame["id"])[0], list(frame.columns)[:3]
            ('eiffel-2.png', ['rank', 'id', 'probability'])
        """
        from resight.collection.hits import frame_hits

        return frame_hits(self.hits)

    def _repr_html_(self) -> str:
        notes = [self.ranking.proof] if self.ranking.proof else []
        return self._drawer.pictures.answer_to_html(self.verdict, self.hits, notes)

    def explain(self, hit: Hit) -> Evidence:
        """Show why an image was found; the heat maps take one pass of the encoder.

        Args:
            hit: One of `hits`.

        Returns:
            The verified match, the pairs of tokens, and heat maps of both images.

        Examples:
            >>> import resight
            >>> answer = resight.open("photos.resight").ask("query.jpg", k=1)
            >>> evidence = answer.explain(answer.hits[0])
            >>> evidence.match.inliers > 100, evidence.heat is not None
            (True, True)
        """
        return self._drawer.explain(hit)

    @property
    def _drawer(self) -> "HitDrawer":
        return HitDrawer(self.query, self.ranking, self.explainer, {hit.id: hit.path for hit in self.hits})


def make_answer(
    query: Query,
    ranking: Ranking,
    read: Callable[[Sequence[str]], Iterable[ImageRecord]],
    explainer: "TokenExplainer | None" = None,
    stage: Stage = "verified",
    searched: int = 0,
) -> Answer:
    """`read` gives the records of images by their ids, and `searched` images were searched."""
    likely = list_best(ranking)  # may be more images than k
    records = {record.id: record for record in read(list({*ranking.ids, *likely}))}
    position = estimate_position(ranking, gather_positions((name, records[name].attributes) for name in likely))
    sizes = {name: records[name].size for name in ranking.ids}
    paths = {name: records[name].path for name in ranking.ids}
    hits = tuple(_list_hits(ranking, records, HitDrawer(query, ranking, explainer, paths)))
    return Answer(query, ranking, hits, position, explainer, stage, sizes, searched)


def _list_hits(ranking: Ranking, records: Mapping[str, ImageRecord], drawer: "HitDrawer") -> Iterator[Hit]:
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
            other_boxes=ranking.other_boxes.get(record.id, ()),
            drawer=drawer,
        )


@dataclass(frozen=True)
class HitDrawer:
    """Explains the hits of one answer, and draws that: by answer_pictures.py, which few searches need."""

    query: Query
    ranking: Ranking
    explainer: "TokenExplainer | None"
    paths: Mapping[str, Path]  # id of a hit → its file

    def explain(self, hit: Hit) -> Evidence:
        found = self.ranking
        evidence = Evidence(
            self.query.id,
            hit.id,
            hit.box,
            match=found.matches.get(hit.id),
            probability=hit.probability,
            region=found.regions.get(hit.id),
            located_by=hit.located_by,
            drawer=self,
        )
        # The maps lie over the query as it is, which an answer found at another rotation does not match.
        turned = bool(hit.stages.get("rotation"))
        return self.explainer.explain(evidence) if self.explainer and not turned else evidence

    def draw(self, found: Hit | Evidence) -> "Image.Image":
        return self.pictures.draw(found)

    def to_html(self, found: Hit | Evidence) -> str:
        return self.pictures.to_html(found)

    @property
    def pictures(self) -> "AnswerPictures":
        from resight.collection.answer_pictures import AnswerPictures

        return AnswerPictures(self.query, self.paths, self.explain)


@dataclass(frozen=True)
class TokenExplainer:
    """Explains the answers to one query."""

    query: Query
    branch: int  # of the patches
    store: Reader
    read_patches: Callable[[str, Box | None], Descriptors | None]  # of an image, or of a part of it

    def explain(self, evidence: Evidence) -> Evidence:
        """The evidence with pairs and maps; unchanged if one of the images has no tokens."""
        (record,) = self.store.metadata([evidence.image_id])
        own, stored = self._read_tokens(record)
        tokens = match_tokens(own, stored) if own is not None and stored is not None else None
        query, image = self.query.patches or own, self.read_patches(record.id, evidence.region) or stored
        patches = match_tokens(query, image) if query is not None and image is not None else None
        if patches is None or (own is not None and tokens is None):
            return evidence
        heat, query_heat = heat_image(patches, record.size), heat_query(patches, self.query.size)
        return replace(evidence, tokens=tokens, heat=heat, query_heat=query_heat)

    def _read_tokens(self, record: ImageRecord) -> tuple[Descriptors | None, Descriptors | None]:
        """The tokens of the query and the stored ones of an image; None if the branch has one vector per region."""
        own = self.query.descriptors[self.branch]
        if own.boxes is None:
            return None, None
        (stored,) = split(self.store.descriptors(self.branch, [record.id]))
        return own, stored

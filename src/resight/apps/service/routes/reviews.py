"""A review with the collections that its pairs are in: pairs as a page shows them, and the evidence for one.

Reviews of pairs: the next pair for a reviewer, votes, undo, agreement, pictures and evidence.

A vote is on disk before its answer is sent. In a blind review, what the machine thinks of a pair is told only with the
answer to the vote on it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from resight.apps.service import schemas
from resight.apps.service.auth import check_may_write
from resight.apps.service.error_responses import Refusal, refuse_unknown, takes
from resight.apps.service.schemas import UndoFields, VoteFields
from resight.apps.service.serializers import Json, Plain, tell_attributes, tell_evidence
from resight.apps.service.state import Service
from resight.apps.service.thumbnails import SIDES, PictureCache, round_up, tag
from resight.audit.dedup.pairs import Pair
from resight.audit.review.recalibration import match_stored
from resight.audit.review.review import Progress, Review
from resight.collection import Collection, open_collection
from resight.store import ImageRecord
from resight.types import Evidence


@dataclass(frozen=True)
class OpenReview:
    review: Review
    a: Collection
    b: Collection
    pictures: Mapping[str, PictureCache]  # of both sides

    def find_pair(self, number: int) -> Pair:
        if not 1 <= number <= len(self.review.pairs):
            raise refuse_unknown("pair", str(number)[:80], f"a number from 1 to {len(self.review.pairs)}")
        return self.review.pairs[number - 1]

    def describe_pair(self, number: int | None) -> Plain | None:
        if number is None:
            return None
        pair = self.find_pair(number)
        hidden = self.review.blind
        return {
            "number": number,
            "a": _describe(pair.a, self.a),
            "b": _describe(pair.b, self.b),
            "probability": None if hidden else pair.probability,
            "kind": None if hidden else pair.kind,
        }

    def find_record(self, number: int, side: Literal["a", "b"]) -> ImageRecord:
        """A 404 where the image has been deleted since."""
        pair = self.find_pair(number)
        collection, name = (self.a, pair.a) if side == "a" else (self.b, pair.b)
        record = collection.view().find(name)
        if record is None:
            raise Refusal(404, "the image is no longer in the collection", actual=name[:200], fix="skip this pair")
        return record

    def explain(self, number: int) -> Plain:
        pair = self.find_pair(number)
        one, two = self.find_record(number, "a"), self.find_record(number, "b")
        match = match_stored(self.a, one.id, self.b, two.id)
        probability = None if self.review.blind else pair.probability
        located_by = match.model if match else ""
        evidence = Evidence(one.id, two.id, match=match, probability=probability, located_by=located_by)
        return tell_evidence(evidence, one.size, two.size)


def open_reviews(service: Service) -> Mapping[str, OpenReview]:
    """By the names of their folders; a second of the same name gets a number."""
    opened: dict[str, OpenReview] = {}
    served = {
        collection.path.resolve(): (collection, service.pictures[name])
        for name, collection in service.collections.items()
    }

    def find(path: Path) -> tuple[Collection, PictureCache]:
        place = path.resolve()
        if place not in served:
            served[place] = open_collection(place, must_exist=True), PictureCache(place)
        return served[place]

    for folder in service.settings.reviews:
        review = Review.open(folder)
        name, count = folder.resolve().name, 2
        while name in opened:
            name, count = f"{folder.resolve().name}-{count}", count + 1
        (a, pictures_of_a), (b, pictures_of_b) = find(review.a), find(review.b)
        opened[name] = OpenReview(review, a, b, {"a": pictures_of_a, "b": pictures_of_b})
    return opened


def _describe(name: str, collection: Collection) -> Plain:
    """`size` is null where the image has been deleted since."""
    record = collection.view().find(name)
    return {
        "id": name,
        "size": record.size if record else None,
        "attributes": tell_attributes(record.attributes) if record else {},
    }


Reviewer = Annotated[str, Query(max_length=200, description="The name that the votes are kept under.")]
Number = Annotated[int, Query(description="The number of a pair, from 1.")]
WRITES = [Depends(check_may_write), Depends(takes("application/json"))]
CSV = "text/csv"


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/reviews", tags=["reviews"])
    reviews = open_reviews(service)

    @routes.get("", response_model=list[schemas.ReviewInfo])
    def list_reviews() -> Json:
        return Json([{"name": name, **_describe_reviews(one)} for name, one in reviews.items()])

    @routes.get("/{review}", response_model=schemas.ReviewDetails)
    def read_review(review: str, reviewer: Reviewer = "") -> Json:
        """With a reviewer, also how far that one is."""
        one = _find(reviews, review)
        progress = tell_progress(one.review.progress(reviewer)) if reviewer else None
        about = {"blind": one.review.blind, "order": one.review.order, "progress": progress}
        return Json({"name": review, **_describe_reviews(one), **about})

    @routes.get("/{review}/next", response_model=schemas.NextPair)
    def read_next(review: str, reviewer: Reviewer, skipped: bool = False) -> Json:
        """`pair` is null when all are done; with `skipped`, those that were skipped come again."""
        one = _find(reviews, review)
        return Json(_show(one, one.review.next(reviewer, skipped=skipped), reviewer))

    @routes.post("/{review}/votes", status_code=201, dependencies=WRITES, response_model=schemas.Voted)
    def cast_vote(review: str, fields: VoteFields) -> Json:
        """The same vote may be sent again, such as after an answer that got lost."""
        one = _find(reviews, review)
        pair = one.find_pair(fields.pair)
        one.review.vote(fields.reviewer, fields.pair, fields.verdict)
        told = {
            "vote": {"pair": fields.pair, "verdict": fields.verdict},
            "machine": {"probability": pair.probability, "kind": pair.kind},
            "progress": tell_progress(one.review.progress(fields.reviewer)),
        }
        return Json(told, 201)

    @routes.post("/{review}/undo", dependencies=WRITES, response_model=schemas.NextPair)
    def undo_vote(review: str, fields: UndoFields) -> Json:
        """`pair` is the one whose vote was taken back; null where there was none.

        Where the request names the pair, it may be sent again: a vote that is gone stays gone, and no other goes.
        """
        one = _find(reviews, review)
        if fields.pair is not None:
            one.find_pair(fields.pair)
        return Json(_show(one, one.review.undo(fields.reviewer, fields.pair), fields.reviewer))

    @routes.get("/{review}/agreement", response_model=schemas.Agreement)
    def read_agreement(review: str) -> Json:
        """Cohen's kappa of each two reviewers, and Fleiss' over the pairs that all have voted on."""
        return Json(asdict(_find(reviews, review).review.agreement()))

    @routes.get("/{review}/votes.csv", response_class=Response, responses={200: {"content": {CSV: {}}}})
    def export_votes(review: str) -> Response:
        """Everybody's, oldest first."""
        text = _find(reviews, review).review.export_csv()
        headers = {"Content-Disposition": 'attachment; filename="votes.csv"', "Cache-Control": "no-store"}
        return Response(text.encode("utf-8", "backslashreplace"), media_type=CSV, headers=headers)

    @routes.get("/{review}/why", response_model=schemas.Why)
    async def explain_pair(review: str, pair: Number, request: Request) -> Json:
        """What speaks for a pair: its key points, matched; `query` is the first of the two."""
        one = _find(reviews, review)
        one.find_pair(pair)
        async with service.pool.place(request) as place:
            return Json(await place.run(lambda: one.explain(pair)))

    @routes.get("/{review}/picture", response_class=Response, responses={200: {"content": {"image/webp": {}}}})
    async def read_picture(
        review: str,
        pair: Number,
        side: Literal["a", "b"],
        request: Request,
        size: Annotated[int, Query(ge=1, le=100_000, description=f"Longer side, rounded up to one of {SIDES}.")] = 1280,
    ) -> Response:
        """One of the two, re-encoded and without metadata."""
        one, longer = _find(reviews, review), round_up(size)
        record = await run_sync(lambda: one.find_record(pair, side))
        headers = {"ETag": tag(record, longer, False), "Cache-Control": "private, no-cache"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        data = await one.pictures[side].read(record, longer, service.decoders)
        return Response(data, media_type="image/webp", headers=headers)

    return routes


def tell_progress(progress: Progress) -> Plain:
    return {
        "total": progress.total,
        "voted": progress.voted,
        "skipped": progress.skipped,
        "left": progress.left,
        "counts": dict(progress.counts),
    }


def _show(one: OpenReview, number: int | None, reviewer: str) -> Plain:
    """A pair, and how far its reviewer is."""
    progress = tell_progress(one.review.progress(reviewer))
    return {"pair": one.describe_pair(number), "last": one.review.last(reviewer), "progress": progress}


def _describe_reviews(one: OpenReview) -> Plain:
    return {"title": one.review.title, "pairs": len(one.review.pairs)}


def _find(reviews: Mapping[str, OpenReview], name: str) -> OpenReview:
    if name not in reviews:
        raise refuse_unknown("review", name[:80])
    return reviews[name]

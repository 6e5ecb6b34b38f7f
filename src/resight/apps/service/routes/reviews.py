"""Reviews of image pairs: the next pair for a reviewer, votes, undo, agreement, images and evidence.

A vote is on disk before the service answers. In a blind review, the service reveals its own estimate of a pair only in
the answer to the vote on it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from resight.apps.service import schemas
from resight.apps.service.auth import require_full_scope, require_write_access
from resight.apps.service.error_responses import ApiError, not_found, require_content_type
from resight.apps.service.request_bodies import UndoFields, VoteFields
from resight.apps.service.serializers import AsciiJSONResponse, JsonObject, serialize_attributes, serialize_evidence
from resight.apps.service.state import Service
from resight.apps.service.thumbnails import SIDES, ThumbnailCache, make_etag, round_up_side
from resight.audit.dedup.pairs import Pair
from resight.audit.review.pair_match import match_stored
from resight.audit.review.review import Progress, Review
from resight.collection import Collection, open_collection
from resight.store import ImageRecord
from resight.types import Evidence

Reviewer = Annotated[str, Query(max_length=200, description="The name that the votes are stored under.")]
Number = Annotated[int, Query(description="The number of a pair, from 1.")]
WRITES = [Depends(require_write_access), Depends(require_content_type("application/json"))]
CSV = "text/csv"


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/reviews", tags=["reviews"], dependencies=[Depends(require_full_scope)])
    reviews = open_reviews(service)

    @routes.get("", response_model=list[schemas.ReviewInfo])
    def list_reviews() -> AsciiJSONResponse:
        return AsciiJSONResponse([{"name": name, **_serialize_review(one)} for name, one in reviews.items()])

    @routes.get("/{review}", response_model=schemas.ReviewDetails)
    def read_review(review: str, reviewer: Reviewer = "") -> AsciiJSONResponse:
        """With a reviewer, also the progress of that reviewer."""
        one = _find(reviews, review)
        progress = serialize_progress(one.review.progress(reviewer)) if reviewer else None
        about = {"blind": one.review.blind, "order": one.review.order, "progress": progress}
        return AsciiJSONResponse({"name": review, **_serialize_review(one), **about})

    @routes.get("/{review}/next", response_model=schemas.NextPair)
    def read_next(review: str, reviewer: Reviewer, skipped: bool = False) -> AsciiJSONResponse:
        """`pair` is null when all are done; with `skipped`, skipped pairs come again."""
        one = _find(reviews, review)
        return AsciiJSONResponse(_serialize_next(one, one.review.next(reviewer, skipped=skipped), reviewer))

    @routes.post("/{review}/votes", status_code=201, dependencies=WRITES, response_model=schemas.Voted)
    def cast_vote(review: str, fields: VoteFields) -> AsciiJSONResponse:
        """Sending the same vote again is safe, for example after a lost answer."""
        one = _find(reviews, review)
        pair = one.find_pair(fields.pair)
        with service.audit.record("vote", review):
            one.review.vote(fields.reviewer, fields.pair, fields.verdict)
        content = {
            "vote": {"pair": fields.pair, "verdict": fields.verdict},
            "machine": {"probability": pair.probability, "kind": pair.kind},
            "progress": serialize_progress(one.review.progress(fields.reviewer)),
        }
        return AsciiJSONResponse(content, 201)

    @routes.post("/{review}/undo", dependencies=WRITES, response_model=schemas.NextPair)
    def undo_vote(review: str, fields: UndoFields) -> AsciiJSONResponse:
        """`pair` is the one whose vote was removed; null where there was none.

        A request that names the pair is safe to send again: it never removes another vote.
        """
        one = _find(reviews, review)
        if fields.pair is not None:
            one.find_pair(fields.pair)
        with service.audit.record("undo", review):
            pair = one.review.undo(fields.reviewer, fields.pair)
        return AsciiJSONResponse(_serialize_next(one, pair, fields.reviewer))

    @routes.get("/{review}/agreement", response_model=schemas.Agreement)
    def read_agreement(review: str) -> AsciiJSONResponse:
        """Cohen's kappa of each two reviewers, and Fleiss' kappa over the pairs with votes of all."""
        return AsciiJSONResponse(asdict(_find(reviews, review).review.agreement()))

    @routes.get("/{review}/votes.csv", response_class=Response, responses={200: {"content": {CSV: {}}}})
    def export_votes(review: str) -> Response:
        """The votes of all reviewers, the oldest first."""
        text = _find(reviews, review).review.export_csv()
        headers = {"Content-Disposition": 'attachment; filename="votes.csv"', "Cache-Control": "no-store"}
        return Response(text.encode("utf-8", "backslashreplace"), media_type=CSV, headers=headers)

    @routes.get("/{review}/why", response_model=schemas.Why)
    async def explain_pair(review: str, pair: Number, request: Request) -> AsciiJSONResponse:
        """The evidence for a pair: its matched key points. `query` is the first of the two."""
        one = _find(reviews, review)
        one.find_pair(pair)
        async with service.executor.slot(request) as slot:
            return AsciiJSONResponse(await slot.run(lambda: one.explain(pair)))

    @routes.get("/{review}/picture", response_class=Response, responses={200: {"content": {"image/webp": {}}}})
    async def read_pair_image(
        review: str,
        pair: Number,
        side: Literal["a", "b"],
        request: Request,
        size: Annotated[int, Query(ge=1, le=100_000, description=f"Longer side, rounded up to one of {SIDES}.")] = 1280,
    ) -> Response:
        """One of the two images, re-encoded without metadata."""
        one, longer = _find(reviews, review), round_up_side(size)
        record = await run_sync(lambda: one.find_record(pair, side))
        headers = {"ETag": make_etag(record, longer, False), "Cache-Control": "private, no-cache"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        data = await one.thumbnails[side].read(record, longer, service.decode_pool)
        return Response(data, media_type="image/webp", headers=headers)

    return routes


@dataclass(frozen=True)
class OpenReview:
    """A review, and the collections of its pairs."""

    review: Review
    a: Collection
    b: Collection
    thumbnails: Mapping[str, ThumbnailCache]  # by side

    def find_pair(self, number: int) -> Pair:
        if not 1 <= number <= len(self.review.pairs):
            raise not_found("pair", str(number)[:80], f"a number from 1 to {len(self.review.pairs)}")
        return self.review.pairs[number - 1]

    def serialize_pair(self, number: int | None) -> JsonObject | None:
        if number is None:
            return None
        pair = self.find_pair(number)
        hidden = self.review.blind
        return {
            "number": number,
            "a": _serialize_side(pair.a, self.a),
            "b": _serialize_side(pair.b, self.b),
            "probability": None if hidden else pair.probability,
            "kind": None if hidden else pair.kind,
        }

    def find_record(self, number: int, side: Literal["a", "b"]) -> ImageRecord:
        """A 404 where the image has been deleted."""
        pair = self.find_pair(number)
        collection, name = (self.a, pair.a) if side == "a" else (self.b, pair.b)
        record = collection.view().find(name)
        if record is None:
            raise ApiError(404, "the image is no longer in the collection", actual=name[:200], fix="skip this pair")
        return record

    def explain(self, number: int) -> JsonObject:
        pair = self.find_pair(number)
        one, two = self.find_record(number, "a"), self.find_record(number, "b")
        match = match_stored(self.a, one.id, self.b, two.id)
        probability = None if self.review.blind else pair.probability
        located_by = match.model if match else ""
        evidence = Evidence(one.id, two.id, match=match, probability=probability, located_by=located_by)
        return serialize_evidence(evidence, one.size, two.size)


def open_reviews(service: Service) -> Mapping[str, OpenReview]:
    """By the names of their folders; further ones of the same name get a number."""
    opened: dict[str, OpenReview] = {}
    served = {
        collection.path.resolve(): (collection, service.thumbnails[name])
        for name, collection in service.registry.known.items()
    }

    def find(path: Path) -> tuple[Collection, ThumbnailCache]:
        folder = path.resolve()
        if folder not in served:
            opened_now = open_collection(folder, must_exist=True, read=service.decode_pool.read)
            served[folder] = opened_now, ThumbnailCache(folder)
        return served[folder]

    for folder in service.settings.reviews:
        review = Review.open(folder)
        name, count = folder.resolve().name, 2
        while name in opened:
            name, count = f"{folder.resolve().name}-{count}", count + 1
        (a, thumbnails_a), (b, thumbnails_b) = find(review.a), find(review.b)
        opened[name] = OpenReview(review, a, b, {"a": thumbnails_a, "b": thumbnails_b})
    return opened


def _serialize_side(name: str, collection: Collection) -> JsonObject:
    """`size` is null where the image has been deleted."""
    record = collection.view().find(name)
    return {
        "id": name,
        "size": record.size if record else None,
        "attributes": serialize_attributes(record.attributes) if record else {},
    }


def serialize_progress(progress: Progress) -> JsonObject:
    return {
        "total": progress.total,
        "voted": progress.voted,
        "skipped": progress.skipped,
        "left": progress.left,
        "counts": dict(progress.counts),
    }


def _serialize_next(one: OpenReview, number: int | None, reviewer: str) -> JsonObject:
    """A pair, and the progress of its reviewer."""
    progress = serialize_progress(one.review.progress(reviewer))
    return {"pair": one.serialize_pair(number), "last": one.review.last(reviewer), "progress": progress}


def _serialize_review(one: OpenReview) -> JsonObject:
    return {"title": one.review.title, "pairs": len(one.review.pairs)}


def _find(reviews: Mapping[str, OpenReview], name: str) -> OpenReview:
    if name not in reviews:
        raise not_found("review", name[:80])
    return reviews[name]

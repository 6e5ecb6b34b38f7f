"""A review with the collections that its pairs are in: pairs as a page shows them, and the evidence for one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resight.apps.service.pictures import PictureCache
from resight.apps.service.refusals import Refusal, refuse_unknown
from resight.apps.service.state import Service
from resight.apps.service.telling import Plain, tell_attributes, tell_evidence
from resight.audit.evidence import match_stored
from resight.audit.pairs import Pair
from resight.audit.review import Review
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

"""A Question → what the library answers, by a thread of the pool: decode, encode, search, explain."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from resight.apps.service.answers import Found
from resight.apps.service.questions import Question
from resight.apps.service.refusals import Refusal, refuse_unknown
from resight.apps.service.state import Service
from resight.apps.service.telling import Plain, explain_hit, tell_answer, tell_query
from resight.apps.service.workers import Place
from resight.collection import Answer, Collection
from resight.collection.view import View
from resight.errors import CollectionError, ImageError
from resight.types import Picture, Query

THUMBNAIL = 640
EXPLAINED = 10  # answers


@dataclass(frozen=True)
class Asked:
    """A question whose image is decoded."""

    question: Question
    collection: Collection
    picture: Picture | None
    thumbnail: bytes | None
    read_seconds: float


async def decode(service: Service, place: Place, question: Question, thumbnail: bool = False) -> Asked:
    collection = service.collections[question.collection]
    begin = time.monotonic()
    if question.data is None:
        return Asked(question, collection, None, None, 0.0)
    side = None if question.box else collection.query_side
    small = THUMBNAIL if thumbnail else 0
    upload = await place.wait(service.decoders.decode(question.data, question.name, max_side=side, small_side=small))
    return Asked(question, collection, upload.picture, upload.small, time.monotonic() - begin)


def search(asked: Asked, service: Service, explain: bool) -> Plain:
    """In a thread of the pool, as all that follows."""
    return tell(asked, service, *ask(asked, service), explain)


def search_in_stages(asked: Asked, service: Service, explain: bool) -> Iterator[Plain]:
    """The lines of a stream: the query, the shortlist and the whole answer."""
    view = asked.collection.prepared()
    query, question = make_query(asked, view), asked.question
    yield {"event": "query", **tell_query(query, asked.thumbnail)}
    for answer in view.ask_in_stages(query, question.k, where=question.where, near=question.near):
        last = answer.stage == "verified"
        if last:
            service.answers.put(question.key, (view, answer))
        yield {"event": "answer" if last else "shortlist", **tell(asked, service, view, answer, explain and last)}


def ask(asked: Asked, service: Service) -> Found:
    view = asked.collection.prepared()
    query, question = make_query(asked, view), asked.question
    answer = view.ask(query, question.k, where=question.where, near=question.near)
    service.answers.put(question.key, (view, answer))
    return view, answer


def make_query(asked: Asked, view: View) -> Query:
    question = asked.question
    if asked.picture is not None:
        return asked.collection.encode_query(asked.picture, question.box)
    assert question.id is not None
    record = view.find(question.id)
    if record is None:
        raise refuse_unknown("image", question.id[:80])
    try:
        return asked.collection.encode_query(record.ref, question.box) if question.box else view.stored_query(record.id)
    except (ImageError, CollectionError) as error:
        raise Refusal(
            404,
            "the file of this image is gone or has changed",
            expected="the file that was added to the collection",
            actual=question.id[:80],
            fix="add the image again",
        ) from error


def tell(asked: Asked, service: Service, view: View, answer: Answer, explain: bool = False) -> Plain:
    """The whole answer of a search."""
    told = tell_answer(answer, service.settings.show_paths)
    explained = answer.hits[:EXPLAINED] if explain else ()
    why = {hit.id: explain_hit(answer, hit) for hit in explained}
    return {
        "collection": asked.question.collection,
        "version": view.version,
        "images": len(view),
        "query": tell_query(answer.query, asked.thumbnail),
        **told,
        "seconds": {"read": asked.read_seconds, **told["seconds"]},
        "why": why if explain else None,
    }


async def explain(service: Service, place: Place, question: Question, wanted: str) -> Plain:
    """Why one image was found; from the last answers of this process where they hold it, else searched again."""
    found = service.answers.get(question.key)
    asked = None if found else await decode(service, place, question)

    def work() -> Plain:
        _, answer = found or ask(asked, service)  # type: ignore[arg-type]
        hit = next((hit for hit in answer.hits if hit.id == wanted), None)
        if hit is None:
            raise refuse_unknown("answer", wanted[:80], "the id of one of the answers to the same search")
        return explain_hit(answer, hit)

    return await place.run(work)

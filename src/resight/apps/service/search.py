"""The form of a search → the library's SearchRequest → the JSON of its answer.

`read_form` checks the fields before the search takes a slot; `decode` has the uploaded query decoded in the sandbox.
The functions below encode, search and explain in a thread of the executor.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import UploadFile
from pydantic import Field

from resight.apps.service.error_responses import ApiError, not_found
from resight.apps.service.executor import Slot
from resight.apps.service.jobs.uploads import clean_name
from resight.apps.service.request_bodies import Body
from resight.apps.service.serializers import JsonObject, serialize_answer, serialize_explanation, serialize_query
from resight.apps.service.state import Result, Service
from resight.collection import Collection
from resight.collection.answer import Answer
from resight.collection.view import View
from resight.errors import CollectionError, ImageError
from resight.search.filters import Filter, parse
from resight.search.request import SearchRequest, StoredImage, parse_box, parse_near
from resight.types import Box, Picture, Query

MAX_HITS = 1000
MAX_ID = 2000  # characters
THUMBNAIL = 640  # pixels
EXPLAINED = 10  # hits
Id = Annotated[str, Field(max_length=MAX_ID)]
Text = Annotated[str, Field(max_length=500)]
Numbers = Annotated[str, Field(max_length=200)]


class SearchFields(Body):
    image: Annotated[UploadFile | None, Field(description="An image file; or send `id`.")] = None
    id: Annotated[Id | None, Field(description="An image of the collection: find other images of its object.")] = None
    box: Annotated[
        Numbers | None,
        Field(
            description="x0,y0,x1,y1 in pixels of the upright original: search for this part only.",
            examples=["10,20,200,300"],
        ),
    ] = None
    where: Annotated[
        list[Text],
        Field(max_length=20, description="Only images that meet these conditions.", examples=[["year>=1900"]]),
    ] = []
    near: Annotated[
        Numbers | None,
        Field(description="latitude,longitude,metres: only images taken there.", examples=["48.8584,2.2945,500"]),
    ] = None
    k: Annotated[int, Field(ge=1, le=MAX_HITS, description="Number of hits.")] = 10
    explain: Annotated[bool, Field(description="Explain the first ten hits.")] = False
    thumbnail: Annotated[bool, Field(description="Return a thumbnail of the query as a data URI.")] = False
    collection: Annotated[Text | None, Field(description="A collection by name; by default the first.")] = None


class WhyFields(SearchFields):
    hit: Annotated[Id, Field(description="The id of the hit to explain.")]


@dataclass(frozen=True)
class SearchForm:
    """The checked fields. The query is either an upload (`data`) or a stored image (`id`)."""

    collection: str
    name: str
    data: bytes | None
    id: str | None
    box: Box | None
    filters: tuple[Filter, ...]
    k: int

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for searches with the same answer."""
        digest = None if self.data is None else hashlib.sha256(self.data).digest()
        return self.collection, digest, self.id, self.box, self.filters, self.k

    def make_request(self, picture: Picture | None) -> SearchRequest:
        """`picture` is the decoded upload."""
        return SearchRequest(picture or StoredImage(self.id or ""), self.k, self.box, self.filters)


@dataclass(frozen=True)
class DecodedSearch:
    form: SearchForm
    request: SearchRequest
    collection: Collection
    thumbnail: bytes | None = None
    read_seconds: float = 0.0


async def read_form(fields: SearchFields, collection: str) -> SearchForm:
    if (fields.image is None) == (fields.id is None):
        raise ApiError(
            422,
            "send one query",
            expected="image (a file) or id (of a stored image)",
            actual="both" if fields.image else "neither",
            fix="send the field image",
        )
    box, filters = parse_box(fields.box, "box"), parse(fields.where, parse_near(fields.near, "near"))
    data = await fields.image.read() if fields.image else None
    name = clean_name(fields.image.filename or "", "upload") if fields.image else fields.id or ""
    return SearchForm(collection, name, data, fields.id, box, filters, fields.k)


async def decode(service: Service, slot: Slot, form: SearchForm, thumbnail: bool = False) -> DecodedSearch:
    _, collection = service.find_collection(form.collection)
    begin = time.monotonic()
    if form.data is None:
        return DecodedSearch(form, form.make_request(None), collection)
    side = None if form.box else collection.query_side
    small = THUMBNAIL if thumbnail else 0
    decoded = await slot.wait(service.decode_pool.decode(form.data, form.name, max_side=side, thumbnail_side=small))
    request = form.make_request(decoded.picture)
    return DecodedSearch(form, request, collection, decoded.thumbnail, time.monotonic() - begin)


def search(decoded: DecodedSearch, service: Service, explain: bool) -> JsonObject:
    """The whole answer."""
    return serialize_search(decoded, service, *find(decoded, service), explain)


def search_in_stages(decoded: DecodedSearch, service: Service, explain: bool) -> Iterator[JsonObject]:
    """The lines of a stream: the query, the shortlist and the whole answer."""
    view = service.find_view(decoded.form.collection, decoded.collection)
    query = encode_query(decoded, view)
    yield {"event": "query", **serialize_query(query, decoded.thumbnail)}
    for answer in view.ask_in_stages(decoded.request.with_query(query)):
        last = answer.stage == "verified"
        if last:
            service.results.put(decoded.form.key, (view, answer))
        event = "answer" if last else "shortlist"
        yield {"event": event, **serialize_search(decoded, service, view, answer, explain and last)}


def find(decoded: DecodedSearch, service: Service) -> Result:
    view = service.find_view(decoded.form.collection, decoded.collection)
    answer = view.ask(decoded.request.with_query(encode_query(decoded, view)))
    service.results.put(decoded.form.key, (view, answer))
    return view, answer


def encode_query(decoded: DecodedSearch, view: View) -> Query:
    """A 404 where the stored image or its file is gone."""
    image = decoded.request.image
    if not isinstance(image, StoredImage):
        return view.encode_query(decoded.request)
    if view.find(image.id) is None:
        raise not_found("image", image.id[:80])
    try:
        return view.encode_query(decoded.request)
    except (ImageError, CollectionError) as error:
        raise ApiError(
            404,
            "the file of this image is gone or has changed",
            expected="the file that was added to the collection",
            actual=image.id[:80],
            fix="add the image again",
        ) from error


def serialize_search(
    decoded: DecodedSearch, service: Service, view: View, answer: Answer, explain: bool = False
) -> JsonObject:
    content = serialize_answer(answer, service.settings.show_paths)
    explained = answer.hits[:EXPLAINED] if explain else ()
    why = {hit.id: serialize_explanation(answer, hit) for hit in explained}
    return {
        "collection": decoded.form.collection,
        "version": view.version,
        "images": len(view),
        "searched": answer.searched,
        "query": serialize_query(answer.query, decoded.thumbnail),
        **content,
        "seconds": {"read": decoded.read_seconds, **content["seconds"]},
        "why": why if explain else None,
    }


async def explain(service: Service, slot: Slot, form: SearchForm, wanted: str) -> JsonObject:
    """Why the search found one image: from the result cache, or by searching again."""
    cached = service.results.get(form.key)
    decoded = None if cached else await decode(service, slot, form)

    def work() -> JsonObject:
        _, answer = cached or find(decoded, service)  # type: ignore[arg-type]
        hit = next((hit for hit in answer.hits if hit.id == wanted), None)
        if hit is None:
            raise not_found("hit", wanted[:80], "send the id of a hit of the same search")
        return serialize_explanation(answer, hit)

    return await slot.run(work)

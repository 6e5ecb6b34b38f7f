"""Each operation of the HTTP API in steps: it yields Calls and pauses, receives JSON, and returns the library's values.

    steps = find_record("a.jpg", None)
    call = next(steps)           # GET /api/image?id=a.jpg
    steps.send({"id": "a.jpg"})  # ends with the ImageRecord

`Client` and `AsyncClient` run the same steps, each in its own way of waiting.
"""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from resight.client import json_values as values
from resight.client.image_upload import read_file, read_query
from resight.client.json_values import Explain, ReadStored, SearchForm, ServiceAnswer
from resight.client.service_values import CollectionInfo, Health, Job, QuarantinedUpload
from resight.client.transport import Call, make_error_of
from resight.collection.attributes import AttributeSummary
from resight.collection.crater_positions import CraterPositions
from resight.errors import CollectionError, ImageError, InputError, ServiceError
from resight.geodesy import Positions
from resight.search.filters import Near
from resight.search.request import SearchRequest
from resight.store import ImageRecord
from resight.types import Attribute, Box, Evidence, Hit

NO_IMAGE = "there is no such image"  # the service's words
PAGE = 500  # records per request
IDS = 10_000  # per request to delete
SIDE = 640  # pixels of the longer side of a picture
PARALLEL = 4  # searches of a batch at once
POLL = 1.0  # seconds between two looks at a job, where the service has no stream left


@dataclass(frozen=True)
class Pause:
    """Wait before the next step."""

    seconds: float


Result = TypeVar("Result")
Steps = Generator[Call | Pause, Any, Result]


def advance(steps: Steps[Any], value: Any = None, error: Exception | None = None) -> tuple[bool, Any]:
    """Whether the steps are over, and their result; else the next Call or Pause."""
    try:
        return False, steps.send(value) if error is None else steps.throw(error)
    except StopIteration as end:
        return True, end.value


def read_health() -> Steps[Health]:
    return values.read_health((yield Call("GET", "/api/health", accepts=(503,))))


def list_collections() -> Steps[tuple[CollectionInfo, ...]]:
    return tuple(map(values.read_collection, (yield Call("GET", "/api/collections"))))


def list_attributes(collection: str | None) -> Steps[tuple[AttributeSummary, ...]]:
    found = yield Call("GET", "/api/collections/attributes", {"collection": collection})
    return tuple(map(values.read_summary, found["attributes"]))


def list_positions(collection: str | None) -> Steps[Positions]:
    return values.read_positions((yield Call("GET", "/api/collections/positions", {"collection": collection})))


def list_craters(collection: str | None) -> Steps[CraterPositions]:
    return values.read_craters((yield Call("GET", "/api/collections/craters", {"collection": collection})))


def make_form(
    image: Any,
    k: int,
    box: Box | None,
    where: Sequence[str],
    near: Near | None,
    collection: str | None,
) -> SearchForm:
    """The fields of a search, checked as the library checks them."""
    SearchRequest.parse("", k, box=box, where=where, near=near)
    given = read_query(image, box)
    fields = [("k", str(k)), *(("where", condition) for condition in where)]
    fields += [("box", _join(given.box))] if given.box else []
    fields += [("near", _join(near))] if near else []
    fields += [("id", given.id)] if given.id is not None else []
    fields += [("collection", collection)] if collection else []
    return SearchForm(given, tuple(fields))


def make_search(path: str, form: SearchForm, *more: tuple[str, str]) -> Call:
    files = [("image", form.image.file)] if form.image.file else []
    return Call("POST", path, fields=[*form.fields, *more], files=files, is_form=True)


def ask(
    form: SearchForm, explain: Explain | None = None, read_stored: ReadStored | None = None
) -> Steps[ServiceAnswer]:
    with _explain_guess(form):
        found = yield make_search("/api/search", form)
    return values.read_answer(found, form, explain, read_stored)


@contextmanager
def _explain_guess(form: SearchForm) -> Iterator[None]:
    """A text that is neither a file here nor an id there is the library's error."""
    try:
        yield
    except CollectionError as error:
        if not form.image.is_guess or error.problem != NO_IMAGE:
            raise
        raise ImageError(
            f"cannot read {form.image.id}: there is no such file, and no image of the collection has this id",
            expected="the path of a file, an address, or an id of the collection",
            actual=repr(form.image.id),
            fix="check the path, or list the ids",
        ) from error


def read_stage(
    line: str, form: SearchForm, explain: Explain | None = None, read_stored: ReadStored | None = None
) -> ServiceAnswer | None:
    """The answer in a line of a search in stages; None for other lines."""
    found = json.loads(line) if line.strip() else {}
    if found.get("event") == "error":
        raise make_error_of(found["error"], ServiceError)
    is_answer = found.get("event") in ("shortlist", "answer")
    return values.read_answer(found, form, explain, read_stored) if is_answer else None


def explain(form: SearchForm, hit: Hit, query_id: str) -> Steps[Evidence]:
    return values.read_evidence((yield make_search("/api/why", form, ("hit", hit.id))), query_id)


def find_form(answer: ServiceAnswer) -> SearchForm:
    """The search that an answer belongs to."""
    if not isinstance(answer, ServiceAnswer) or answer.form is None:
        raise InputError(
            "this answer is not from a service",
            expected="an answer of `ask` of a client",
            actual=type(answer).__name__,
            fix="explain it with answer.explain(hit)",
        )
    return answer.form


def list_page(
    where: Sequence[str], near: Near | None, collection: str | None, after: str | None, limit: int = PAGE
) -> Steps[tuple[list[ImageRecord], str | None, int]]:
    """One page of records, where the next begins, and how many there are in all."""
    params = {"where": list(where) or None, "near": _join(near) if near else None}
    found = yield Call("GET", "/api/images", {**params, "collection": collection, "after": after, "limit": limit})
    return list(map(values.read_record, found["images"])), found["next"], found["total"]


def find_record(id: str, collection: str | None) -> Steps[ImageRecord]:
    return values.read_record((yield Call("GET", "/api/image", {"id": id, "collection": collection})))


def look_up(id: str, collection: str | None) -> Steps[ImageRecord | None]:
    try:
        return (yield from find_record(id, collection))
    except CollectionError as error:
        if error.problem != NO_IMAGE:
            raise
        return None


def make_picture_call(id: str, side: int, collection: str | None) -> Call:
    return Call("GET", "/api/image/file", {"id": id, "side": side, "collection": collection})


def update(id: str, image: Any, attributes: Mapping[str, Attribute] | None, collection: str | None) -> Steps[Job]:
    files = [("image", read_file(image))] if image is not None else []
    fields = [("attributes", json.dumps(dict(attributes)))] if attributes is not None else []
    call = Call("PUT", "/api/image", {"id": id, "collection": collection}, fields=fields, files=files, is_form=True)
    return values.read_job((yield call)["job"])


def delete(ids: str | Iterable[str], collection: str | None) -> Steps[int]:
    wanted, removed = list(dict.fromkeys([ids] if isinstance(ids, str) else ids)), 0
    for begin in range(0, len(wanted), IDS):
        body = {"ids": wanted[begin : begin + IDS], **({"collection": collection} if collection else {})}
        removed += (yield Call("POST", "/api/images/delete", body=body, repeatable=False))["removed"]
    return removed


def list_jobs(collection: str | None) -> Steps[tuple[Job, ...]]:
    return tuple(map(values.read_job, (yield Call("GET", "/api/jobs", {"collection": collection}))))


def find_job(job: Job | str) -> Steps[Job]:
    return values.read_job((yield Call("GET", f"/api/jobs/{_name(job)}")))


def cancel(job: Job | str) -> Steps[Job]:
    return values.read_job((yield Call("DELETE", f"/api/jobs/{_name(job)}")))


def make_events_call(job: Job | str) -> Call:
    return Call("GET", f"/api/jobs/{_name(job)}/events")


def list_quarantine(collection: str | None) -> Steps[tuple[QuarantinedUpload, ...]]:
    return tuple(map(values.read_quarantined, (yield Call("GET", "/api/quarantine", {"collection": collection}))))


def decide_quarantined(decision: str, uploads: Iterable[QuarantinedUpload | str], collection: str | None) -> Steps[int]:
    """`decision`: retry or discard."""
    keys = [one if isinstance(one, str) else one.key for one in uploads]
    body = {"keys": keys, **({"collection": collection} if collection else {})}
    changed: int = (yield Call("POST", f"/api/quarantine/{decision}", body=body, repeatable=False))["changed"]
    return changed


def _name(job: Job | str) -> str:
    return quote(job if isinstance(job, str) else job.id, safe="")


def _join(numbers: Sequence[float]) -> str:
    """In full precision: the service searches for the same box as the library would."""
    return ",".join(repr(float(number)) for number in numbers)

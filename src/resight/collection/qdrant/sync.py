"""A collection → an export in Qdrant, made or brought up to date.

In: a state of a collection. Out: one point per image, with named vectors and a payload that holds all of its record: an
answer needs nothing but the export. Points have the same numbers every time, so that writing twice changes nothing, and
each carries a fingerprint of its image: an export that runs again sends what is new or has changed, and removes what is
gone. The marker is "writing" before the first change and "complete" after the last.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.collection import Collection
from resight.collection.qdrant.export_plan import (
    GLOBAL,
    MARKER_NUMBER,
    TOKENS,
    Plan,
    check_spaces,
    lay_out,
    make_plan,
    note_images,
    number_image,
    read_marker,
    write_marker,
)
from resight.collection.qdrant.payload_filters import find_kind, list_fields, make_fields
from resight.collection.view import View
from resight.errors import CollectionError, SpaceMismatch
from resight.files.fingerprint import fingerprint
from resight.index.qdrant_backend.backend import Backend, Payload, Point, VectorLayout, batch_points
from resight.search.locate_boxes import split
from resight.store import ImageRecord
from resight.types import Descriptors, FloatArray

PRINT = "print"
REMOVED_AT_ONCE = 1000
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ExportReport:
    where: str
    images: int
    sent: int  # new, or changed since the last export
    removed: int
    vectors: Mapping[str, int]  # named vector → dimensions
    meaning: str  # what `global` is
    shortlist: int


def export(
    collection: Collection, backend: Backend, shortlist: int | None = None, progress: Progress | None = None
) -> ExportReport:
    """Bring the export up to date with the newest state of the collection."""
    view, plan = collection.view(), make_plan(collection, shortlist)
    layout = lay_out(plan, collection)
    _claim(backend, plan, layout)
    prints, kinds = _read_prints(view)
    plan = note_images(plan, kinds, len(prints))
    there = {
        number: payload.get(PRINT) for number, payload in backend.list_payloads([PRINT]) if number != MARKER_NUMBER
    }
    write_marker(plan, backend, "writing")
    gone = list(there.keys() - {number_image(name) for name in prints})
    for start in range(0, len(gone), REMOVED_AT_ONCE):
        backend.remove(gone[start : start + REMOVED_AT_ONCE])
    changed = [name for name, print_ in prints.items() if there.get(number_image(name)) != print_]
    backend.index_payload(list_fields(kinds))
    done = 0
    for batch in batch_points(make_points(view, plan, changed)):
        backend.upsert(batch)
        done += len(batch)
        if progress:
            progress(done, len(changed))
    backend.finish()  # before the marker says "complete", and once more for the marker itself
    write_marker(plan, backend, "complete")
    backend.finish()
    sizes = {name: part.size for name, part in layout.items()}
    return ExportReport(backend.where, len(prints), len(changed), len(gone), sizes, plan.meaning, plan.shortlist)


def _claim(backend: Backend, plan: Plan, layout: Mapping[str, VectorLayout]) -> None:
    """Make the Qdrant collection, or check that the existing one is an export of this plan."""
    found = backend.layout()
    if found is None:
        backend.create(layout)
        return
    marked = read_marker(backend)
    if marked is None and backend.count():
        raise CollectionError(
            f"{backend.where} is not an export of resight",
            expected="a name that is free, or that of an export",
            actual=f"{backend.count():,} points of another program",
            fix="choose another --name",
        )
    if marked is not None:
        check_spaces(marked[0], plan, backend)
    wanted = {name: (part.size, part.many) for name, part in layout.items()}
    actual = {name: (part.size, part.many) for name, part in found.items()}
    if wanted != actual:
        raise SpaceMismatch(
            f"{backend.where} holds vectors of another kind",
            expected=_format(layout),
            actual=_format(found),
            fix="choose another --name, or remove that collection",
        )


def _read_prints(view: View) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The fingerprint of every image, and the kinds of every attribute's values."""
    prints: dict[str, str] = {}
    kinds: dict[str, set[str]] = {}
    for record in view.records():
        prints[record.id] = take_print(record)
        for name, value in record.attributes.items():
            kinds.setdefault(name, set()).add(find_kind(value))
    return prints, {name: sorted(found) for name, found in kinds.items()}


def _format(layout: Mapping[str, VectorLayout]) -> str:
    return ", ".join(
        f"{name or 'unnamed'}: {part.size} dimensions{', many' if part.many else ''}" for name, part in layout.items()
    )


def make_points(view: View, plan: Plan, ids: Sequence[str]) -> Iterator[Point]:
    """In the order of the ids, read a few images at a time."""
    rows = zip(_read(view, plan.global_branch, ids), _read(view, plan.tokens_branch, ids), strict=True)
    for record, (own, tokens) in zip(view.records(ids), rows, strict=True):
        vectors: dict[str, FloatArray] = {}
        if (whole := plan.make_global((own, tokens))) is not None:
            vectors[GLOBAL] = whole
        if tokens is not None and len(tokens):
            vectors[TOKENS] = np.asarray(tokens.vectors, np.float32)
        yield Point(number_image(record.id), vectors, make_payload(record))


def make_payload(record: ImageRecord) -> dict[str, object]:
    label = record.attributes.get("label")
    return {
        "id": record.id,
        "path": str(record.path),
        "size": list(record.size),
        "sha256": record.sha256,
        **({"label": label} if label is not None else {}),
        **make_fields(record.attributes),
        PRINT: take_print(record),
    }


def read_record(payload: Payload) -> ImageRecord:
    """The record of an image, from its payload."""
    width, height = payload["size"]
    return ImageRecord(
        payload["id"], Path(payload["path"]), payload["sha256"], 0, 0, (width, height), dict(payload["attributes"])
    )


def take_print(record: ImageRecord) -> str:
    """A fingerprint of all that an export holds of an image; its descriptors follow from file and box."""
    content = [record.sha256, str(record.path), record.size, sorted(record.attributes.items())]
    return fingerprint(json.dumps(content), 16)


def _read(view: View, branch: int | None, ids: Sequence[str]) -> Iterator[Descriptors | None]:
    """The rows of each image; None without a branch."""
    if branch is None:
        return (None for _ in ids)
    return split(view.descriptors(branch, ids))

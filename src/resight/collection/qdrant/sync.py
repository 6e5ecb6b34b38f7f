"""Stored images ↔ points of an export.

In: records and rows of a state of a collection. Out: a Point for each image, with named vectors and a payload, from
which all that is known of the image can be read again: an answer needs nothing but the export.

A collection → an export, made or brought up to date.

Points have the same numbers every time, so that what is written twice is there once, and each carries a print of what
it was made from: an export that is run again sends what is new or has changed, and removes what is gone. The mark says
"writing" before the first change and "complete" after the last.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.collection import Collection
from resight.collection.qdrant.export_plan import (
    GLOBAL,
    MARK_NUMBER,
    TOKENS,
    Plan,
    check_spaces,
    lay_out,
    make_plan,
    note_images,
    number_image,
    read_mark,
    write_mark,
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
    """What is known of an image, from its payload."""
    width, height = payload["size"]
    return ImageRecord(
        payload["id"], Path(payload["path"]), payload["sha256"], 0, 0, (width, height), dict(payload["attributes"])
    )


def take_print(record: ImageRecord) -> str:
    """Of all that an export says of an image, its descriptors included: they follow from file and box."""
    told = [record.sha256, str(record.path), record.size, sorted(record.attributes.items())]
    return fingerprint(json.dumps(told), 16)


def _read(view: View, branch: int | None, ids: Sequence[str]) -> Iterator[Descriptors | None]:
    """The rows of each image; None where there is no such branch."""
    if branch is None:
        return (None for _ in ids)
    return split(view.descriptors(branch, ids))


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
    collection: Collection, place: Backend, shortlist: int | None = None, progress: Progress | None = None
) -> ExportReport:
    """Everything that the newest state of the collection holds, and nothing else."""
    view, plan = collection.view(), make_plan(collection, shortlist)
    layout = lay_out(plan, collection)
    _claim(place, plan, layout)
    prints, kinds = _read_prints(view)
    plan = note_images(plan, kinds, len(prints))
    there = {number: payload.get(PRINT) for number, payload in place.list_payloads([PRINT]) if number != MARK_NUMBER}
    write_mark(plan, place, "writing")
    gone = list(there.keys() - {number_image(name) for name in prints})
    for start in range(0, len(gone), REMOVED_AT_ONCE):
        place.remove(gone[start : start + REMOVED_AT_ONCE])
    changed = [name for name, print_ in prints.items() if there.get(number_image(name)) != print_]
    place.index_payload(list_fields(kinds))
    done = 0
    for batch in batch_points(make_points(view, plan, changed)):
        place.upsert(batch)
        done += len(batch)
        if progress:
            progress(done, len(changed))
    place.finish()  # before it is called complete, and the mark itself
    write_mark(plan, place, "complete")
    place.finish()
    sizes = {name: part.size for name, part in layout.items()}
    return ExportReport(place.where, len(prints), len(changed), len(gone), sizes, plan.meaning, plan.shortlist)


def _claim(place: Backend, plan: Plan, layout: Mapping[str, VectorLayout]) -> None:
    """A Qdrant collection that is ours to write to: made, if it is not there."""
    found = place.layout()
    if found is None:
        place.create(layout)
        return
    marked = read_mark(place)
    if marked is None and place.count():
        raise CollectionError(
            f"{place.where} is not an export of resight",
            expected="a name that is free, or that of an export",
            actual=f"{place.count():,} points of somebody else's",
            fix="choose another --name",
        )
    if marked is not None:
        check_spaces(marked[0], plan, place)
    wanted = {name: (part.size, part.many) for name, part in layout.items()}
    actual = {name: (part.size, part.many) for name, part in found.items()}
    if wanted != actual:
        raise SpaceMismatch(
            f"{place.where} holds vectors of another kind",
            expected=_tell(layout),
            actual=_tell(found),
            fix="choose another --name, or remove that collection",
        )


def _read_prints(view: View) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Of every image its print, and of every attribute the kinds of its values."""
    prints: dict[str, str] = {}
    kinds: dict[str, set[str]] = {}
    for record in view.records():
        prints[record.id] = take_print(record)
        for name, value in record.attributes.items():
            kinds.setdefault(name, set()).add(find_kind(value))
    return prints, {name: sorted(found) for name, found in kinds.items()}


def _tell(layout: Mapping[str, VectorLayout]) -> str:
    return ", ".join(
        f"{name or 'unnamed'}: {part.size} dimensions{', many' if part.many else ''}" for name, part in layout.items()
    )

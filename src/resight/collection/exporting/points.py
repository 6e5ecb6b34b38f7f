"""Stored images ↔ points of an export.

In: records and rows of a state of a collection. Out: a Point for each image, with named vectors and a payload, from
which all that is known of the image can be read again: an answer needs nothing but the export.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from resight.collection.exporting.filters import make_fields
from resight.collection.exporting.plan import GLOBAL, TOKENS, Plan, number_image
from resight.collection.view import View
from resight.index.points.place import Payload, Point
from resight.search.token_support import split
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
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def _read(view: View, branch: int | None, ids: Sequence[str]) -> Iterator[Descriptors | None]:
    """The rows of each image; None where there is no such branch."""
    if branch is None:
        return (None for _ in ids)
    return split(view.descriptors(branch, ids))

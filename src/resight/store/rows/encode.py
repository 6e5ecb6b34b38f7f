"""Records → rows of an arrow table, each record checked against the table's layout first."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow

from resight import places
from resight.errors import CollectionError, SpaceMismatch
from resight.store import FIELDS, ImageRecord, Layout, Record
from resight.store.rows.schema import FIELD_TYPES, IMAGE_COLUMNS, column
from resight.types import Descriptors

pa: Any = pyarrow  # mypy does not see the names that it exports
SAME_RECIPE = "use the recipe that the collection was made with"


def encode(records: Sequence[Record], layout: Sequence[Layout], schema: Any) -> Any:
    """The records as a table of that schema."""
    _check_ids(records)
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for record in records:
        _check_record(record, layout)
        for name, value in (_encode_image(record.image) | _encode_descriptors(record.descriptors)).items():
            if name in columns:  # a table of an earlier version lacks the parts that came later
                columns[name].append(value)
    try:
        return pa.table(columns, schema=schema)
    except UnicodeEncodeError as error:
        raise CollectionError(
            "an id or a path is not valid text",
            expected="a name that UTF-8 can hold",
            actual=repr(error.object),
            fix="rename the file",
        ) from error


def _encode_image(image: ImageRecord) -> dict[str, Any]:
    others = dict(image.attributes)
    # A label that is a number stays with the others, so that it comes back as a number.
    label = others.pop("label") if isinstance(others.get("label"), str) else None
    lat, lon = (others.pop(key) if type(others.get(key)) in (int, float) else None for key in ("lat", "lon"))
    values = (image.id, str(image.path), image.sha256, image.bytes, image.modified_ns, *image.size, label, lat, lon)
    return dict(zip(IMAGE_COLUMNS, (*values, json.dumps(others)), strict=True))


def _encode_descriptors(branches: Sequence[Descriptors]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for branch, descriptors in enumerate(branches):
        values[column(branch, "count")] = len(descriptors)
        values[column(branch, "vectors")] = descriptors.vectors.tobytes()
        for name in FIELDS:
            array = getattr(descriptors, name)
            values[column(branch, name)] = None if array is None else np.asarray(array, FIELD_TYPES[name][0]).tobytes()
    return values


def _check_ids(records: Sequence[Record]) -> None:
    ids = [record.image.id for record in records]
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise CollectionError(
            "one write holds an image twice", expected="each id once", actual=repr(twice), fix="write it once"
        )


def _check_record(record: Record, layout: Sequence[Layout]) -> None:
    owner = f"image {record.image.id!r}"
    if not (record.image.path.is_absolute() or places.is_remote(record.image.path)):
        raise CollectionError(
            f"{owner} has a relative path", expected="an absolute one", actual=str(record.image.path), fix="resolve it"
        )
    if len(record.descriptors) != len(layout):
        raise CollectionError(
            f"{owner} does not have the branches of the collection",
            expected=f"{len(layout)} branches",
            actual=str(len(record.descriptors)),
            fix=SAME_RECIPE,
        )
    for branch, (descriptors, expected) in enumerate(zip(record.descriptors, layout, strict=True)):
        _check_descriptors(descriptors, expected, record.image.id, f"{owner}, branch {branch}")


def _check_descriptors(descriptors: Descriptors, layout: Layout, id: str, owner: str) -> None:
    rows, vectors = len(descriptors), descriptors.vectors
    if descriptors.ids != (id,):
        raise CollectionError(
            f"{owner}: rows of other images", expected=repr((id,)), actual=repr(descriptors.ids), fix="split by image"
        )
    if layout.space and descriptors.space != layout.space:
        raise SpaceMismatch(
            f"{owner}: another encoding", expected=layout.space, actual=descriptors.space or "(none)", fix=SAME_RECIPE
        )
    if vectors.dtype != layout.dtype or vectors.shape != (rows, layout.dim):
        raise CollectionError(
            f"{owner}: vectors that do not fit the collection",
            expected=f"{layout.dtype} [n, {layout.dim}]",
            actual=f"{vectors.dtype} {list(vectors.shape)}",
            fix=SAME_RECIPE,
        )
    for name, (_, shape) in FIELD_TYPES.items():
        array = getattr(descriptors, name)
        if array is not None and array.shape != (rows, *shape):
            raise CollectionError(
                f"{owner}: {name} of another shape", expected=str([rows, *shape]), actual=str(list(array.shape))
            )

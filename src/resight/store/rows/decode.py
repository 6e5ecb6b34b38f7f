"""Rows of an arrow table → ImageRecords and Descriptors.

`order` says which row of the table each image asked for is in: rows may come in any order, and serve more than once.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import CollectionError
from resight.store import Field, ImageRecord, Layout
from resight.store.rows.schema import FIELD_TYPES, IMAGE_COLUMNS, column
from resight.types import Descriptors


def decode_images(rows: Any, order: NDArray[np.intp]) -> Iterator[ImageRecord]:
    for row in rows.select(IMAGE_COLUMNS).take(order).to_pylist():
        known = {name: row[name] for name in ("label", "lat", "lon") if row[name] is not None}
        yield ImageRecord(
            id=row["id"],
            path=Path(row["path"]),
            sha256=row["sha256"],
            bytes=row["bytes"],
            modified_ns=row["modified_ns"],
            size=(row["width"], row["height"]),
            attributes=known | json.loads(row["attributes"]),
        )


def decode_descriptors(
    rows: Any, order: NDArray[np.intp], ids: tuple[str, ...], branch: int, layout: Layout, fields: Sequence[Field]
) -> Descriptors:
    counts = rows[column(branch, "count")].to_numpy()[order]
    vectors, _ = _join(rows[column(branch, "vectors")], order)
    optional: dict[str, Any] = {}
    for name in fields:
        dtype, shape = FIELD_TYPES[name]
        values, present = _join(rows[column(branch, name)], order)
        if present.any() and not present[counts > 0].all():
            raise CollectionError(
                f"some images of branch {branch} have {name} and others do not",
                expected="all or none",
                actual=f"{int(present.sum())} of {len(present)}",
                fix="index the images anew with one recipe",
            )
        optional[name] = values.view(dtype).reshape(-1, *shape) if present.any() else None
    return Descriptors(
        ids=ids,
        vectors=vectors.view(layout.dtype).reshape(-1, layout.dim),
        owners=np.repeat(np.arange(len(ids), dtype=np.int32), counts),
        space=layout.space,
        **optional,
    )


def _join(entries: Any, order: NDArray[np.intp]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The bytes of a binary column, entry after entry in `order`, and which of those entries are not null."""
    array = entries.combine_chunks()
    _, ends, data = array.buffers()
    stops = np.frombuffer(ends, np.int64)[array.offset :]
    values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    # One copy puts the entries in order, aligns them for their dtype and frees them from arrow's read-only memory.
    joined = np.concatenate([values[stops[row] : stops[row + 1]] for row in order])
    return joined, array.is_valid().to_numpy(zero_copy_only=False)[order]

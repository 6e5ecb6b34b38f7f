"""Layout ⇄ arrow schema: the columns of a table with one row an image.

Branch b has the columns b{b}_count, b{b}_vectors, b{b}_boxes, …: the bytes of C-contiguous arrays, null where the
descriptor has no such part; a table made before there was such a part has no such column. The
layout travels in the schema's metadata, so it is created together with the table.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow

from resight.store import FIELDS, Field, Layout

pa: Any = pyarrow  # mypy does not see the names that it exports
LAYOUT_KEY = b"resight.layout"
# Left to itself Lance packs SIFT rows by a fifth, and then reads them at half the speed and writes them at a quarter.
PLAIN = {b"lance-encoding:compression": b"none"}
IMAGE_COLUMNS = ("id", "path", "sha256", "bytes", "modified_ns", "width", "height", "label", "lat", "lon", "attributes")
FIELD_TYPES: dict[Field, tuple[type[Any], tuple[int, ...]]] = {  # dtype, and the shape after [n]
    "boxes": (np.float32, (4,)),
    "weights": (np.float32, ()),
    "points": (np.float32, (4,)),
    "words": (np.int32, ()),
    "seeds": (np.float32, (4,)),
}


def make_schema(layout: Sequence[Layout]) -> Any:
    text, number = pa.utf8(), pa.int64()
    image = (text, text, text, number, number, pa.int32(), pa.int32(), text, pa.float64(), pa.float64(), text)
    fields = [
        pa.field(name, kind, nullable=name in ("label", "lat", "lon"))
        for name, kind in zip(IMAGE_COLUMNS, image, strict=True)
    ]
    for branch in range(len(layout)):
        fields.append(pa.field(column(branch, "count"), pa.int32(), nullable=False))
        fields.append(pa.field(column(branch, "vectors"), pa.large_binary(), nullable=False, metadata=PLAIN))
        fields += [pa.field(column(branch, name), pa.large_binary(), metadata=PLAIN) for name in FIELDS]
    return pa.schema(fields, metadata={LAYOUT_KEY: json.dumps([asdict(part) for part in layout]).encode()})


def read_layout(schema: Any) -> tuple[Layout, ...]:
    return tuple(Layout(**part) for part in json.loads(schema.metadata[LAYOUT_KEY]))


def column(branch: int, part: str) -> str:
    return f"b{branch}_{part}"

"""Records to rows of an arrow table, one row per image, and rows back to ImageRecords and Descriptors.

Branch b has the columns b{b}_count, b{b}_vectors, b{b}_boxes, …: the bytes of C-contiguous arrays, null where the
descriptor lacks the part. A table that is older than a part lacks its columns. The schema's metadata holds the layout,
so one commit creates both.

Each row has checksums (CRC-32), which every read compares: one of what is stored about the image, and per branch one of
each part. Tables of format 1 have none.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from resight.errors import CollectionError, InputError, SpaceMismatch
from resight.files import remote
from resight.store import FIELDS, Field, ImageRecord, Layout, Record
from resight.types import Descriptors

pa: Any = pyarrow  # mypy does not see the names that it exports
LAYOUT_KEY = b"resight.layout"
# By default Lance packs SIFT rows by a fifth, then reads them at half the speed and writes them at a quarter.
PLAIN = {b"lance-encoding:compression": b"none"}
IMAGE_COLUMNS = ("id", "path", "sha256", "bytes", "modified_ns", "width", "height", "label", "lat", "lon", "attributes")
CHECK = "check"  # of the columns above; that of a branch is called checks
PARTS = ("vectors", *FIELDS)
CHECKS_TYPE = np.dtype("<u4")
FIELD_TYPES: dict[Field, tuple[type[Any], tuple[int, ...]]] = {  # dtype, and the shape after [n]
    "boxes": (np.float32, (4,)),
    "weights": (np.float32, ()),
    "points": (np.float32, (4,)),
    "words": (np.int32, ()),
    "seeds": (np.float32, (4,)),
}
SAME_RECIPE = "use the recipe that the collection was made with"


def make_schema(layout: Sequence[Layout]) -> Any:
    """The arrow schema of a table with these branches."""
    text, integer, real = pa.utf8(), pa.int64(), pa.float64()
    types = (text, text, text, integer, integer, pa.int32(), pa.int32(), text, real, real, text)
    fields = [
        pa.field(name, kind, nullable=name in ("label", "lat", "lon"))
        for name, kind in zip(IMAGE_COLUMNS, types, strict=True)
    ]
    fields.append(pa.field(CHECK, pa.uint32(), nullable=False))
    for branch in range(len(layout)):
        fields.append(pa.field(column(branch, "count"), pa.int32(), nullable=False))
        fields.append(pa.field(column(branch, "vectors"), pa.large_binary(), nullable=False, metadata=PLAIN))
        fields += [pa.field(column(branch, name), pa.large_binary(), metadata=PLAIN) for name in FIELDS]
        fields.append(pa.field(column(branch, "checks"), pa.binary(len(PARTS) * CHECKS_TYPE.itemsize), nullable=False))
    return pa.schema(fields, metadata={LAYOUT_KEY: json.dumps([asdict(part) for part in layout]).encode()})


def read_layout(schema: Any) -> tuple[Layout, ...]:
    """The layout that `make_schema` wrote."""
    return tuple(Layout(**part) for part in json.loads(schema.metadata[LAYOUT_KEY]))


def column(branch: int, part: str) -> str:
    return f"b{branch}_{part}"


def encode(records: Sequence[Record], layout: Sequence[Layout], schema: Any) -> Any:
    """The records as an arrow table of that schema; a record that does not fit the layout is an error."""
    _check_ids(records)
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for record in records:
        _check_record(record, layout)
        for name, value in (_encode_image(record.image) | _encode_descriptors(record.descriptors)).items():
            if name in columns:  # an older table lacks the columns of newer parts
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


def decode_images(rows: Any, order: NDArray[np.intp]) -> Iterator[ImageRecord]:
    """One ImageRecord per entry of `order`, the row number of each image in the arrow table `rows`."""
    for row in rows.take(order).to_pylist():
        if CHECK in row and row[CHECK] != _sum_image(row):
            raise report_damaged_rows([str(row["id"])[:200]])
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
    """The descriptors of `ids`; `order` holds the row number of each id in the arrow table `rows`."""
    counts = rows[column(branch, "count")].to_numpy()[order]
    checks = _read_checks(rows, branch, order)
    vectors, _ = _join(rows[column(branch, "vectors")], order, ids, _choose(checks, "vectors"), counts)
    optional: dict[str, Any] = {}
    for name in fields:
        dtype, shape = FIELD_TYPES[name]
        values, present = _join(rows[column(branch, name)], order, ids, _choose(checks, name))
        if present.any() and not present[counts > 0].all():
            raise CollectionError(
                f"some images of branch {branch} have {name} and others do not",
                expected="all or none",
                actual=f"{int(present.sum())} of {len(present)}",
                fix="index all images again with one recipe",
            )
        optional[name] = values.view(dtype).reshape(-1, *shape) if present.any() else None
    return Descriptors(
        ids=ids,
        vectors=vectors.view(layout.dtype).reshape(-1, layout.dim),
        owners=np.repeat(np.arange(len(ids), dtype=np.int32), counts),
        space=layout.space,
        **optional,
    )


def _join(
    entries: Any,
    order: NDArray[np.intp],
    ids: Sequence[str],
    checks: NDArray[np.uint32] | None,
    starts: NDArray[Any] | None = None,
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The bytes of a binary column, entry after entry in `order`, and which of those entries are not null.

    `checks` are the entries' checksums, begun with `starts`.
    """
    array = entries.combine_chunks()
    _, ends, data = array.buffers()
    stops = np.frombuffer(ends, np.int64)[array.offset :]
    values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    parts = [values[stops[row] : stops[row + 1]] for row in order]
    if checks is not None:
        begin = np.zeros(len(parts), np.int64) if starts is None else starts
        wrong = [n for n, part in enumerate(parts) if zlib.crc32(part.data, int(begin[n])) != checks[n]]
        if wrong:
            raise report_damaged_rows([ids[n] for n in wrong])
    # One copy orders the entries, aligns them for their dtype and makes them writable: arrow's memory is read-only.
    return np.concatenate(parts), array.is_valid().to_numpy(zero_copy_only=False)[order]


def _read_checks(rows: Any, branch: int, order: NDArray[np.intp]) -> NDArray[np.uint32] | None:
    """[n, parts] the checksums of one branch; None where the table has none."""
    name = column(branch, "checks")
    if name not in rows.schema.names:
        return None
    data = b"".join(rows[name].to_pylist())
    return np.frombuffer(data, CHECKS_TYPE).reshape(-1, len(PARTS))[order]


def _choose(checks: NDArray[np.uint32] | None, part: str) -> NDArray[np.uint32] | None:
    return None if checks is None else checks[:, PARTS.index(part)]


def find_damaged_rows(rows: Any, layout: Sequence[Layout]) -> set[int]:
    """The numbers of the rows of an arrow table, with all its columns, whose checksums differ."""
    damaged = set()
    for number in range(len(rows)):
        row, order = rows.slice(number, 1), np.zeros(1, np.intp)
        try:
            ids = tuple(image.id for image in decode_images(row, order))
            for branch, own in enumerate(layout):
                fields = [name for name in FIELDS if column(branch, name) in rows.schema.names]
                decode_descriptors(row, order, ids, branch, own, fields)
        except (CollectionError, ValueError, TypeError, KeyError):
            damaged.add(number)
    return damaged


def report_damaged_rows(ids: Sequence[str]) -> CollectionError:
    return CollectionError(
        f"the collection is damaged: {len(ids)} {'image has' if len(ids) == 1 else 'images have'} changed on the disk",
        expected="what was written, by its checksum",
        actual=", ".join(map(repr, ids[:3])) + (", …" if len(ids) > 3 else ""),
        fix="`resight verify --deep` lists the damage, `resight repair` saves what is whole; or restore a backup",
    )


def _encode_image(image: ImageRecord) -> dict[str, Any]:
    others = dict(image.attributes)
    # A label that is a number stays among the others, because they keep their type.
    label = others.pop("label") if isinstance(others.get("label"), str) else None
    lat, lon = (others.pop(key) if type(others.get(key)) in (int, float) else None for key in ("lat", "lon"))
    values = (image.id, str(image.path), image.sha256, image.bytes, image.modified_ns, *image.size, label, lat, lon)
    row = dict(zip(IMAGE_COLUMNS, (*values, json.dumps(others)), strict=True))
    return {**row, CHECK: _sum_image(row)}


def _sum_image(row: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps([row[name] for name in IMAGE_COLUMNS]).encode())


def _encode_descriptors(branches: Sequence[Descriptors]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for branch, descriptors in enumerate(branches):
        parts: dict[str, bytes | None] = {"vectors": descriptors.vectors.tobytes()}
        for name in FIELDS:
            array = getattr(descriptors, name)
            parts[name] = None if array is None else np.asarray(array, FIELD_TYPES[name][0]).tobytes()
        values[column(branch, "count")] = len(descriptors)
        values |= {column(branch, name): data for name, data in parts.items()}
        values[column(branch, "checks")] = sum_parts(len(descriptors), parts)
    return values


def has_checks(schema: Any) -> bool:
    return CHECK in schema.names


def add_checks(layout: Sequence[Layout]) -> Callable[[Any], Any]:
    """A function that computes the checksums of a record batch of format 1."""

    def compute(batch: Any) -> Any:
        columns: dict[str, list[Any]] = {CHECK: [_sum_image(row) for row in batch.select(IMAGE_COLUMNS).to_pylist()]}
        for branch in range(len(layout)):
            names = [name for name in ("count", *PARTS) if column(branch, name) in batch.schema.names]
            rows = batch.select([column(branch, name) for name in names]).to_pylist()
            columns[column(branch, "checks")] = [
                sum_parts(row[column(branch, "count")], {name: row.get(column(branch, name)) for name in PARTS})
                for row in rows
            ]
        whole = make_schema(layout)
        return pa.RecordBatch.from_pydict(columns, schema=pa.schema([whole.field(name) for name in columns]))

    return compute


def sum_parts(count: int, parts: Mapping[str, bytes | None]) -> bytes:
    """The checksums of a branch's parts, that of the vectors begun with the number of rows."""
    sums = [zlib.crc32(parts[name] or b"", count if name == "vectors" else 0) for name in PARTS]
    return np.array(sums, CHECKS_TYPE).tobytes()


def _check_ids(records: Sequence[Record]) -> None:
    ids = [record.image.id for record in records]
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise CollectionError(
            "one write holds an image twice", expected="each id once", actual=repr(twice), fix="write it once"
        )


def _check_record(record: Record, layout: Sequence[Layout]) -> None:
    owner = f"image {record.image.id!r}"
    if not (record.image.path.is_absolute() or remote.is_remote(record.image.path)):
        raise CollectionError(
            f"{owner} has a relative path", expected="an absolute one", actual=str(record.image.path), fix="resolve it"
        )
    for name, value in record.image.attributes.items():
        if not isinstance(value, (str, int, float)):
            raise InputError(
                f"{owner} has an attribute that cannot be filtered by",
                expected="a text, a number, or true or false",
                actual=f"{name} = {value!r:.80}, a {type(value).__name__}",
                fix="convert it, or leave it out",
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

"""Vectors that a program has computed: stored as those of images, and searched for.

In: ids with one vector each [n, D], or several each (tokens). Out: records in the store, or queries. They are scaled to
unit length, as resight's own are. Only a collection of one branch takes them: a search needs the rows of every branch.
All images of a collection have boxes or none has: `find_parts` tells which.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from resight.collection.add import AddReport, ReadImage, make_record
from resight.encode.extract import gather
from resight.encode.query import TOKEN_DESCRIPTORS
from resight.errors import BoxError, CollectionError, ImageError, InputError
from resight.store import FIELDS, ImageRecord, Layout, Reader, Record, Store
from resight.types import Attribute, Box, Branch, Descriptors, FloatArray, ImageRef, Query, Skipped
from resight.vectors import l2_normalise

BATCH = 512
SAMPLED = 16  # stored images that show what rows have; one may have no rows
NO_FILE = "no-file"  # name of the path of an image without a file, in its collection's folder
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


class RowChecker:
    """Checks rows against the one branch of a collection."""

    def __init__(self, branches: Sequence[Branch], layout: Sequence[Layout], spaces: Sequence[str]) -> None:
        if len(branches) != 1:
            raise CollectionError(
                "this collection takes no vectors",
                expected="a collection of one branch",
                actual=f"{len(branches)} branches: {', '.join(branch.descriptor.name for branch in branches)}",
                fix='e.g. resight.open(path, encoder=resight.own_vectors("my encoder", dimensions=512))',
            )
        self.takes_tokens = branches[0].descriptor.name in TOKEN_DESCRIPTORS or branches[0].regions is not None
        self._layout, self._space = layout[0], spaces[0]

    def describe(self, id: str, given: Any, boxes: Any = None, parts: Collection[str] = ()) -> Descriptors:
        """The rows [k, D] of one image; a token with a box has its seed there, if `parts` names seeds."""
        rows = self.read(given, id)
        if rows.ndim == 1:
            rows = rows[None]
        fits = rows.ndim == 2 and rows.shape[1] == self._layout.dim and len(rows) > 0
        if not fits or (len(rows) > 1 and not self.takes_tokens):
            raise self._refuse(id, f"{list(np.shape(given))}")
        lengths = np.linalg.norm(rows, axis=1)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise InputError(
                f"the vectors of {id!r} have no direction",
                expected="finite numbers, not all 0",
                actual="NaN, infinity or only zeros",
                fix="leave the image out, or compute them again",
            )
        unit = np.asarray(l2_normalise(rows), self._layout.dtype)
        where = read_boxes(boxes, len(unit), id)
        seeds = where if "seeds" in parts else None
        return Descriptors((id,), unit, np.zeros(len(unit), np.int32), where, space=self._space, seeds=seeds)

    def check_parts(self, parts: Collection[str]) -> None:
        """Refuse a collection whose rows have more than a program can give."""
        if others := [part for part in parts if part not in ("boxes", "seeds")]:
            raise CollectionError(
                "this collection takes no vectors",
                expected="rows of vectors, with or without boxes",
                actual=f"rows with {', '.join(others)}",
                fix="add the images themselves",
            )

    def read(self, given: Any, id: str) -> FloatArray:
        try:
            # Of torch; numpy has no bfloat16.
            return np.asarray(given.detach().cpu().float() if hasattr(given, "detach") else given, np.float32)
        except (TypeError, ValueError) as error:
            raise self._refuse(id, f"{type(given).__name__}: {error}") from error

    def _refuse(self, id: str, actual: str) -> InputError:
        dim = self._layout.dim
        return InputError(
            f"the vectors of {id!r} do not fit the collection",
            expected=f"[k, {dim}], k tokens" if self.takes_tokens else f"[{dim}], one vector per image",
            actual=actual,
            fix="give those of the encoder that the collection was made for",
        )


def add_vectors(
    store: Store,
    checker: RowChecker,
    folder: Path,
    read: ReadImage,
    ids: Sequence[str],
    vectors: Any,
    paths: Sequence[str | Path] | None,
    attributes: Sequence[Mapping[str, Attribute]] | None,
    boxes: Sequence[Any] | None,
    probe: Callable[[], Descriptors | None],
) -> AddReport:
    """Write them; nothing is written if one does not fit. The caller holds the writer lock.

    `probe` gives rows as the collection's encoder makes them; None if it has no encoder.
    """
    ids = _check_ids(ids)
    store.refresh()
    snapshot = store.snapshot()
    parts = find_parts(snapshot, frozenset(ids), probe)
    if parts is None:  # these are the first: they decide
        parts = frozenset() if boxes is None else frozenset(["boxes"])
    checker.check_parts(parts)
    columns = {"vectors": vectors, "paths": paths, "attributes": attributes, "boxes": boxes}
    for name, column in columns.items():
        if column is not None and (not hasattr(column, "__len__") or len(column) != len(ids)):
            actual = f"{len(column):,}" if hasattr(column, "__len__") else type(column).__name__
            raise InputError(
                f"{name} and ids do not belong together",
                expected=f"{len(ids):,}, one per id",
                actual=actual,
                fix="give as many as ids",
            )
    rows = []
    for number, (id, one) in enumerate(zip(ids, vectors, strict=True)):
        own = None if boxes is None else boxes[number]
        if (own is not None) != ("boxes" in parts):
            raise _refuse_boxes(id, own is not None)
        rows.append(checker.describe(id, one, own, parts))
    known = snapshot.stamps
    added, skipped = [], []
    for some in gather(range(len(ids)), BATCH):
        records = []
        for number in some:
            known_of = _read_attributes(attributes[number]) if attributes is not None else {}
            record = _make_record(ids[number], folder, read, None if paths is None else paths[number], known_of)
            if isinstance(record, Skipped):
                skipped.append(record)
            else:
                records.append(Record(record, (rows[number],)))
        store.write(records)
        added += [record.image.id for record in records]
    if store.is_scattered:
        store.compact()
    updated = sum(id in known for id in added)
    return AddReport(len(added) - updated, updated, 0, tuple(skipped))


def find_parts(snapshot: Reader, replaced: Set[str], probe: Callable[[], Descriptors | None]) -> frozenset[str] | None:
    """What rows have beside their vectors: those of stored images, or else those of the encoder; None: not known."""
    others = islice((id for id in snapshot.stamps if id not in replaced), SAMPLED)
    stored = (next(snapshot.descriptors(0, [id])) for id in others)
    filled = next(filter(len, stored), None) or probe()
    return None if filled is None else frozenset(part for part in FIELDS if getattr(filled, part) is not None)


def _refuse_boxes(id: str, given: bool) -> InputError:
    return InputError(
        f"the vectors of {id!r} have {'boxes' if given else 'no boxes'}",
        expected=f"{'no boxes' if given else 'boxes [k, 4]'}, as for the other images of the collection",
        actual="boxes" if given else "none",
        fix="leave boxes out" if given else "give boxes, one per vector",
    )


def make_queries(checker: RowChecker, given: Any) -> Query | Iterator[Query]:
    """A query for one vector [D] or the tokens [k, D] of one image; several for one dimension more, or a list."""
    depth = 2 if checker.takes_tokens else 1
    is_list = isinstance(given, (list, tuple)) and any(hasattr(one, "shape") or isinstance(one, list) for one in given)
    if is_list or len(getattr(given, "shape", ())) > depth:
        return (_make_query(checker, f"vectors {number}", one) for number, one in enumerate(given, start=1))
    return _make_query(checker, "vectors", given)


def _make_query(checker: RowChecker, name: str, given: Any) -> Query:
    return Query(name, (1, 1), WHOLE, (checker.describe(name, given),))


def _read_attributes(given: Mapping[str, Any] | None) -> dict[str, Attribute]:
    """Without those that have no value; numbers of numpy, as data frames hold them, become Python's."""
    values = {name: value.item() if isinstance(value, np.generic) else value for name, value in (given or {}).items()}
    return {name: value for name, value in values.items() if value is not None}


def _check_ids(ids: Sequence[str]) -> list[str]:
    found = [str(id) for id in ids] if not isinstance(ids, str) else [ids]
    twice = next((id for id, other in zip(sorted(found), sorted(found)[1:], strict=False) if id == other), None)
    if twice is not None or "" in found:
        raise InputError(
            "ids are not unique" if twice is not None else "an id is empty",
            expected="a name of its own for every image",
            actual=repr(twice if twice is not None else ""),
            fix="give each image another id",
        )
    return found


def read_boxes(given: Any, count: int, id: str) -> FloatArray | None:
    if given is None:
        return None
    try:
        boxes = np.asarray(given, np.float32)
    except (TypeError, ValueError):
        boxes = np.zeros(0, np.float32)
    if boxes.shape != (count, 4) or not np.isfinite(boxes).all():
        raise BoxError(
            f"the boxes of {id!r} do not fit",
            expected=f"[{count}, 4]",
            actual=f"{list(np.shape(given))}: {repr(given)[:80]}" if boxes.size == 0 else str(list(boxes.shape)),
            fix="give four finite numbers per vector",
        )
    return boxes


def _make_record(
    id: str, folder: Path, read: ReadImage, path: str | Path | None, attributes: dict[str, Attribute]
) -> ImageRecord | Skipped:
    if path is None:
        return ImageRecord(id, folder.absolute() / NO_FILE, "", 0, 0, (1, 1), attributes)
    try:
        picture = read(ImageRef(id, Path(path).absolute(), attributes=attributes), 1)
    except ImageError as error:
        return Skipped(str(path), error.problem)
    return replace(make_record(picture), id=id)

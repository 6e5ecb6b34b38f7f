"""One version of the table: a Reader that never changes, and that any number of threads may use at once.

Rows are fetched by position. The map of id → position is read once a version (from the id column alone), which makes
thirty images of a thousand local features each a matter of milliseconds, and keeps ids out of query texts. Scans go
through the same door in bounded portions, because LanceDB's own scanner reads ahead by a gigabyte.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import CollectionError
from resight.store import FIELDS, Field, ImageRecord, Layout
from resight.store.rows.arrow import IMAGE_COLUMNS, column, decode_descriptors, decode_images, read_layout
from resight.types import Descriptors

TABLE = "images"
IMAGES_AT_ONCE = 4096


def take_snapshot(database: Any, version: int) -> "Snapshot":
    try:
        table = database.open_table(TABLE)
        table.checkout(version)
        schema = table.schema
        found = table.search().select(["id"]).with_row_id(True).to_arrow().sort_by("_rowid")
    except (ValueError, RuntimeError, OSError) as error:
        raise tell_unreadable(error) from error
    stamps = dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))
    return Snapshot(table, version, stamps, read_layout(schema), frozenset(schema.names))


@dataclass(frozen=True)
class Snapshot:
    table: Any  # checked out at `version`
    version: int
    stamps: Mapping[str, int]  # id → position; a row that is written again gets another
    layout: tuple[Layout, ...]
    columns: frozenset[str]

    def __len__(self) -> int:
        return len(self.stamps)

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        parts = split(self._locate(ids), IMAGES_AT_ONCE)
        return chain.from_iterable(decode_images(*self._fetch(part, IMAGE_COLUMNS)) for part in parts)

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        if branch not in range(len(self.layout)):
            raise CollectionError(f"no branch {branch}", expected=f"0 to {len(self.layout) - 1}", actual=str(branch))
        fields = [name for name in fields if column(branch, name) in self.columns]
        columns = [column(branch, name) for name in ("count", "vectors", *fields)]
        return (
            decode_descriptors(*self._fetch(part, columns), tuple(part), branch, self.layout[branch], fields)
            for part in split(self._locate(ids), batch)
        )

    def _locate(self, ids: Sequence[str] | None) -> Sequence[str]:
        """The ids to read, all of them there."""
        if ids is None:
            return list(self.stamps)
        missing = [id for id in ids if id not in self.stamps]
        if missing:
            raise CollectionError(
                f"{len(missing)} of the {len(ids)} images asked for are not in the collection",
                expected=f"ids of its {len(self.stamps)} images",
                actual=", ".join(map(repr, missing[:3])) + (", …" if len(missing) > 3 else ""),
                fix="check the ids; refresh or open the collection again if another process may have removed them",
            )
        return ids

    def _fetch(self, ids: Sequence[str], columns: Sequence[str]) -> tuple[Any, NDArray[np.intp]]:
        """An arrow table with the rows of `ids`, and the row of each id in it."""
        wanted = np.array([self.stamps[id] for id in ids], np.uint64)
        try:
            found = self.table.take_row_ids(np.unique(wanted).tolist()).select(list(columns)).with_row_id().to_arrow()
        except (RuntimeError, OSError) as error:
            raise tell_unreadable(error) from error
        positions = found["_rowid"].to_numpy()
        order = np.argsort(positions)
        return found, order[np.searchsorted(positions, wanted, sorter=order)]


def split(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def tell_unreadable(error: Exception) -> CollectionError:
    return CollectionError(
        "the collection cannot be read",
        expected="the files of one of its states",
        actual=str(error).partition("\n")[0],
        fix="open it again: another process may have compacted or removed it; if that fails too, its files are damaged",
    )

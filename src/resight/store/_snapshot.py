"""One version of a Lance table: a Reader that never changes, and that many threads may use at once.

A snapshot reads the id column once and remembers the position of every image; it then fetches images by position. So
thirty images of a thousand local features each take milliseconds, and no id enters a query text. Full scans fetch
bounded batches by position too, because Lance's own scanner reads ahead by a gigabyte.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import lance
import numpy as np
from numpy.typing import NDArray

from resight.errors import CollectionError
from resight.files.remote import to_url
from resight.store import FIELDS, Field, ImageRecord, Layout
from resight.store._arrow import IMAGE_COLUMNS, column, decode_descriptors, decode_images, read_layout
from resight.types import Descriptors

TABLE = "images.lance"
IMAGES_AT_ONCE = 4096
ORIGIN = re.compile(r", \S+\.rs:\d+.*", re.DOTALL)  # the lines of Lance's own source that end its messages


def take_snapshot(folder: Path, version: int, session: Any = None) -> "Snapshot":
    """The state `version` of the collection in `folder`; datasets that share a Lance `session` share its caches."""
    try:
        table = lance.dataset(locate_table(folder), version=version, session=session)
        # In the order of the table, so that the n-th row is the one that `take` calls n.
        found = table.scanner(columns=["id"], with_row_id=True, scan_in_order=True).to_table()
    except (ValueError, RuntimeError, OSError) as error:
        raise report_unreadable(error) from error
    positions = np.argsort(found["_rowid"].to_numpy())
    row_ids = found["_rowid"].to_numpy()[positions]
    stamps = dict(zip(found["id"].take(positions).to_pylist(), row_ids.tolist(), strict=True))
    return Snapshot(table, version, stamps, read_layout(table.schema), row_ids, positions)


@dataclass(frozen=True)
class Snapshot:
    table: Any  # a Lance dataset at `version`
    version: int
    stamps: Mapping[str, int]  # id → row id, ascending; an image that is written again gets another
    layout: tuple[Layout, ...]
    row_ids: NDArray[np.uint64]  # ascending
    positions: NDArray[np.intp]  # of these rows in the table

    def __len__(self) -> int:
        return len(self.stamps)

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        parts = split(self._check(ids), IMAGES_AT_ONCE)
        return chain.from_iterable(decode_images(*self._fetch(part, IMAGE_COLUMNS)) for part in parts)

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        if branch not in range(len(self.layout)):
            raise CollectionError(f"no branch {branch}", expected=f"0 to {len(self.layout) - 1}", actual=str(branch))
        stored = set(self.table.schema.names)
        fields = [name for name in fields if column(branch, name) in stored]
        columns = [column(branch, name) for name in ("count", "vectors", *fields)]
        return (
            decode_descriptors(*self._fetch(part, columns), tuple(part), branch, self.layout[branch], fields)
            for part in split(self._check(ids), batch)
        )

    def _check(self, ids: Sequence[str] | None) -> Sequence[str]:
        """The ids to read: all, or those given if the collection holds them."""
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
        """An arrow table with the rows of `ids`, each once, and the row number of each id in it."""
        wanted = np.searchsorted(self.row_ids, np.array([self.stamps[id] for id in ids], np.uint64))
        positions, order = np.unique(self.positions[wanted], return_inverse=True)
        try:
            return self.table.take(positions.tolist(), columns=list(columns)), order
        except (ValueError, RuntimeError, OSError) as error:
            raise report_unreadable(error) from error


def locate_table(folder: Path) -> str:
    """The path or the address of the table."""
    return to_url(folder / TABLE)


def split(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Portions of at most `size` ids."""
    return (ids[start : start + size] for start in range(0, len(ids), size))


def report_unreadable(error: Exception) -> CollectionError:
    return CollectionError(
        "the collection cannot be read",
        expected="the files of one of its states",
        actual=summarise(error),
        fix="open it again: another process may have compacted or removed it; if that fails too, its files are damaged",
    )


def summarise(error: Exception) -> str:
    """What went wrong, in one line, without the places in Lance's source."""
    return ORIGIN.sub("", str(error)).partition("\n")[0]

"""One version of a Lance table: a Reader that never changes, and that many threads may use at once.

A snapshot reads the id column once and remembers the position of every image; it then fetches images by position. So
thirty images of a thousand local features each take milliseconds, and no id enters a query text. Full scans fetch
bounded batches by position too, because Lance's own scanner reads ahead by a gigabyte.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import lance
import numpy as np
from numpy.typing import NDArray

from resight.errors import CollectionError, did_you_mean
from resight.files.fingerprint import fingerprint
from resight.files.remote import is_remote, to_url
from resight.store import FIELDS, Field, ImageRecord, Layout
from resight.store._arrow import CHECK, IMAGE_COLUMNS, column, decode_descriptors, decode_images, read_layout
from resight.store._errors import reading
from resight.store._files import FileChecks, list_state_files
from resight.store._history import TABLE, History, name_manifest, read_manifest
from resight.types import Descriptors

IMAGES_AT_ONCE = 4096


def take_snapshot(folder: Path, table: Any, history: History, checks: FileChecks) -> "Snapshot":
    """The state of the collection in `folder` that the Lance dataset `table` shows."""
    version = int(table.version)
    with reading():
        if is_remote(folder):
            commit_id, find = str(table.read_transaction(version).uuid), _find_remote(table)
        else:
            checks.check(list_state_files(table), history.files)
            commit_id, find = fingerprint(read_manifest(folder / TABLE, version), 16), _find_local(folder, history)
        # A dataset of its own, because those of the store move on. They share Lance's caches.
        table = lance.dataset(locate_table(folder), version=version, session=table.session())
        # In the order of the table, so that the n-th row is the one that `take` calls n.
        found = table.scanner(columns=["id"], with_row_id=True, scan_in_order=True).to_table()
        positions = np.argsort(found["_rowid"].to_numpy())
        row_ids = found["_rowid"].to_numpy()[positions]
        stamps = dict(zip(found["id"].take(positions).to_pylist(), row_ids.tolist(), strict=True))
        return Snapshot(table, version, commit_id, stamps, read_layout(table.schema), row_ids, positions, find)


def _find_local(folder: Path, history: History) -> Callable[[int], str | None]:
    def find(version: int) -> str | None:
        known = history.find_id(version)
        if known is None and (folder / TABLE / name_manifest(version)).is_file():
            known = fingerprint(read_manifest(folder / TABLE, version), 16)
        return known

    return find


def _find_remote(table: Any) -> Callable[[int], str | None]:
    def find(version: int) -> str | None:
        with contextlib.suppress(ValueError, RuntimeError, OSError):  # no longer there
            return str(table.read_transaction(version).uuid)
        return None

    return find


@dataclass(frozen=True)
class Snapshot:
    table: Any  # a Lance dataset at `version`
    version: int
    commit_id: str
    stamps: Mapping[str, int]  # id → row id, ascending; an image that is written again gets another
    layout: tuple[Layout, ...]
    row_ids: NDArray[np.uint64]  # ascending
    positions: NDArray[np.intp]  # of these rows in the table
    _find: Callable[[int], str | None]

    def __len__(self) -> int:
        return len(self.stamps)

    def find_commit(self, version: int) -> str | None:
        return self.commit_id if version == self.version else self._find(version) if version < self.version else None

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        parts = split(self._check(ids), IMAGES_AT_ONCE)
        columns = self._stored((*IMAGE_COLUMNS, CHECK))
        return chain.from_iterable(decode_images(*self._fetch(part, columns)) for part in parts)

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        if branch not in range(len(self.layout)):
            raise CollectionError(f"no branch {branch}", expected=f"0 to {len(self.layout) - 1}", actual=str(branch))
        fields = [name for name in fields if self._stored([column(branch, name)])]
        columns = self._stored([column(branch, name) for name in ("count", "vectors", *fields, "checks")])
        return (
            decode_descriptors(*self._fetch(part, columns), tuple(part), branch, self.layout[branch], fields)
            for part in split(self._check(ids), batch)
        )

    def _stored(self, columns: Sequence[str]) -> list[str]:
        """Those that the table has: an older one lacks some."""
        stored = set(self.table.schema.names)
        return [name for name in columns if name in stored]

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
                fix=did_you_mean(
                    missing[0],
                    self.stamps,
                    "check the ids; refresh or open the collection again if another process may have removed them",
                ),
            )
        return ids

    def _fetch(self, ids: Sequence[str], columns: Sequence[str]) -> tuple[Any, NDArray[np.intp]]:
        """An arrow table with the rows of `ids`, each once, and the row number of each id in it."""
        wanted = np.searchsorted(self.row_ids, np.array([self.stamps[id] for id in ids], np.uint64))
        positions, order = np.unique(self.positions[wanted], return_inverse=True)
        with reading():
            return self.table.take(positions.tolist(), columns=list(columns)), order


def locate_table(folder: Path) -> str:
    """The path or the address of the table."""
    return to_url(folder / TABLE)


def split(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Portions of at most `size` ids."""
    return (ids[start : start + size] for start in range(0, len(ids), size))

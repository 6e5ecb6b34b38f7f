"""Durable commits to a Lance table: files first, then the manifest, then the record.

Lance syncs nothing. So every change is made in two steps: Lance writes the files of the new state without committing
them, and they are synced; Lance commits, and manifest and record are synced. A power cut at any moment leaves the state
before or the state after, and once `commit` has returned, the state after. Object stores do this by themselves.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import lance
from lance.optimize import Compaction

from resight.files.durable import sync_files
from resight.files.remote import is_remote
from resight.store._files import list_fragment_files, list_state_files, sync_state
from resight.store._history import TABLE, History, name_manifest
from resight.store._snapshot import locate_table

ROWS = 256  # that are read at once to compute columns


class Committer:
    def __init__(self, folder: Path, history: History) -> None:
        self._folder = folder
        self._history = history
        self._is_local = not is_remote(folder)

    def create(self, empty: Any, mode: str = "create") -> Any:
        """Make a table, or with mode "overwrite" replace an empty one; `empty` is an arrow table with its schema."""
        table = lance.write_dataset(empty, locate_table(self._folder), mode=mode)
        return self._settle(table, ())

    def append(self, fragments: Sequence[Any], version: int, ids: Sequence[str]) -> Any:
        """Add fragments that Lance has written; returns the dataset of the new version."""
        self._sync(fragments)
        return self._commit(lance.LanceOperation.Append(list(fragments)), version, ids, fragments)

    def merge(self, table: Any, rows: Any, ids: Sequence[str]) -> Any:
        """Replace the rows with the same ids, and add the others."""
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        transaction, _ = merge.execute_uncommitted(rows)
        changed = [*transaction.operation.new_fragments, *transaction.operation.updated_fragments]
        self._sync(changed)
        return self._commit(transaction, table.version, ids, changed)

    def delete(self, table: Any, rows: Sequence[int]) -> Any:
        """Remove rows by their row ids, in one commit."""
        by_fragment: dict[int, list[int]] = {}
        for row in rows:
            by_fragment.setdefault(row >> 32, []).append(row)
        updated, gone = [], []
        for number, chosen in by_fragment.items():
            left = table.get_fragment(number).delete(f"_rowid IN ({', '.join(map(str, chosen))})")
            if left is None:
                gone.append(number)
            else:
                updated.append(left)
        self._sync(updated)
        operation = lance.LanceOperation.Delete(updated, gone, f"{len(rows)} rows")
        return self._commit(operation, table.version, (), updated)

    def replace(self, table: Any, gone: Sequence[int], fragments: Sequence[Any]) -> Any:
        """Put new fragments in the place of others."""
        self._sync(fragments)
        operation = lance.LanceOperation.Update(removed_fragment_ids=list(gone), new_fragments=list(fragments))
        return self._commit(operation, table.version, (), fragments)

    def add_columns(self, table: Any, compute: Callable[[Any], Any]) -> Any:
        """Add columns to every row; `compute` makes them from a batch with all present ones."""
        merged = [fragment.merge_columns(compute, batch_size=ROWS) for fragment in table.get_fragments()]
        fragments = [fragment for fragment, _ in merged]
        self._sync(fragments)
        return self._commit(lance.LanceOperation.Merge(fragments, merged[0][1]), table.version, (), fragments)

    def record(self, table: Any) -> None:
        """Record a state that has no record yet."""
        self._settle(table, ())

    def compact(self, table: Any) -> Any:
        """Merge small files."""
        rewrites = [task.execute(table) for task in Compaction.plan(table, options={}).tasks]
        if not rewrites:
            return table
        self._sync(fragment for rewrite in rewrites for fragment in rewrite.new_fragments)
        Compaction.commit(table, rewrites)
        return self._settle(table, ())

    def _commit(self, operation: Any, version: int, ids: Iterable[str], changed: Iterable[Any]) -> Any:
        table = lance.LanceDataset.commit(locate_table(self._folder), operation, read_version=version)
        return self._settle(table, ids, list_fragment_files(changed))

    def _sync(self, fragments: Iterable[Any]) -> None:
        if self._is_local:
            sync_files(self._folder / TABLE / path for path in list_fragment_files(fragments))

    def _settle(self, table: Any, ids: Iterable[str], paths: Iterable[str] | None = None) -> Any:
        """Sync a commit and record it: only then it counts. `paths` are its new files; None: any of the state's."""
        if self._is_local:
            sync_state(self._folder, table.version)
            new = list_state_files(table) if paths is None else [name_manifest(table.version), *paths]
            self._history.record(table.version, table.count_rows(), ids, new)
        return table

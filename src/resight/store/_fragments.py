"""Rows in files that no version of the table names yet, and the commit that names them.

Many processes on many machines may write such files at the same time, because none of them changes the table. Each
describes its files in lines of JSON. One process commits the descriptions; the rows themselves neither pass through it
nor are copied. A file whose description is never committed does no harm.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance

from resight.errors import StorageError
from resight.files import remote
from resight.store._snapshot import TABLE, locate_table


def write_fragments(rows: Any, folder: Path) -> tuple[str, ...]:
    """Write an arrow table beside the committed rows; returns one JSON description per file."""
    written = lance.fragment.write_fragments(rows, locate_table(folder), schema=rows.schema, mode="append")
    return tuple(json.dumps(fragment.to_json()) for fragment in written)


def commit_fragments(fragments: Sequence[str], folder: Path, version: int) -> None:
    """Add all of them to the table, which is at `version`, or none; an incomplete file is a StorageError."""
    for fragment in fragments:
        _check_sizes(json.loads(fragment), folder / TABLE / "data")
    described = [lance.FragmentMetadata.from_json(fragment) for fragment in fragments]
    lance.LanceDataset.commit(locate_table(folder), lance.LanceOperation.Append(described), read_version=version)


def _check_sizes(fragment: dict[str, Any], folder: Path) -> None:
    """Lance opens a file only when it reads it: a missing one would make the whole table unreadable."""
    for file in fragment["files"]:
        path, expected = folder / file["path"], file["file_size_bytes"]
        actual = _measure(path)
        if actual != expected:
            raise StorageError(
                f"{remote.to_url(path)} is not what a node has written",
                expected=f"{expected:,} bytes",
                actual="no such file" if actual is None else f"{actual:,} bytes",
                fix="check that all nodes see the same folder and that its disk is healthy; then try again",
            )


def _measure(path: Path) -> int | None:
    """Bytes of a local or remote file; None where there is none."""
    if remote.is_remote(path):
        status = remote.stat(path)
        return None if status is None else status.size
    return path.stat().st_size if path.exists() else None

"""Rows in files of their own that no version of the table names yet, and the commit that names them.

Any number of processes, on any number of machines, may write such files at the same time, since none of them changes
the table. What they write is described in a line of JSON; one process commits the descriptions, so that the rows
themselves are neither copied nor pass through it. A file whose description is never committed is in nobody's way.
"""

import importlib
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from resight.errors import MissingExtra, StorageError
from resight.files.remote import is_remote, look_up, to_url
from resight.store.rows.snapshot import TABLE


def write_fragments(rows: Any, folder: Path) -> tuple[str, ...]:
    """Write an arrow table beside the committed rows; gives the descriptions of the files, as JSON."""
    written = _import_lance().fragment.write_fragments(rows, locate_table(folder), schema=rows.schema, mode="append")
    return tuple(json.dumps(fragment.to_json()) for fragment in written)


def commit_fragments(fragments: Sequence[str], folder: Path, version: int) -> None:
    """Add all of them to the table, which is at `version`, or none; a file that is not whole is a StorageError."""
    lance = _import_lance()
    for fragment in fragments:
        _check_whole(json.loads(fragment), folder / f"{TABLE}.lance" / "data")
    described = [lance.FragmentMetadata.from_json(fragment) for fragment in fragments]
    lance.LanceDataset.commit(locate_table(folder), lance.LanceOperation.Append(described), read_version=version)


def remove_uncommitted(folder: Path, age: timedelta) -> None:
    """Remove the files that no version names, and versions that were written more than `age` ago."""
    _import_lance().dataset(locate_table(folder)).cleanup_old_versions(older_than=age, delete_unverified=True)


def locate_table(folder: Path) -> str:
    return to_url(folder / f"{TABLE}.lance")


def _check_whole(fragment: dict[str, Any], folder: Path) -> None:
    """Lance opens a file when it is read, and then a missing one would make the whole table unreadable."""
    for file in fragment["files"]:
        path, expected = folder / file["path"], file["file_size_bytes"]
        actual = _measure(path)
        if actual != expected:
            raise StorageError(
                f"{to_url(path)} is not what a node has written",
                expected=f"{expected:,} bytes",
                actual="no such file" if actual is None else f"{actual:,} bytes",
                fix="check that all nodes see the same folder, and that its disk is well; then do it again",
            )


def _measure(path: Path) -> int | None:
    """Bytes of a file, here or elsewhere; None where there is none."""
    if is_remote(path):
        status = look_up(path)
        return None if status is None else status.size
    return path.stat().st_size if path.exists() else None


def _import_lance() -> Any:
    try:
        return importlib.import_module("lance")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "to write from many processes at once needs the Python package 'pylance', which is not installed",
            expected="'lance' to be importable",
            actual=str(error),
            fix="pip install 'resight[ray]'",
        ) from error

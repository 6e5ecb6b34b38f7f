"""Upgrade a collection to the present format, in place.

Format 1 had no checksums. Upgrading adds them: to every row and file of the store, to its history and to
`collection.json`, which is written last: if it is interrupted, it is still format 1, and can be upgraded again.
"""

from pathlib import Path

from resight.collection import metadata
from resight.errors import CollectionError
from resight.files.lock import writer_lock
from resight.files.remote import is_remote
from resight.store import _upkeep


def upgrade(folder: Path) -> tuple[int, int]:
    """Upgrade a collection in a local folder; returns its format before and after."""
    before = metadata.read(folder).format
    if is_remote(folder):
        raise CollectionError(
            "a remote collection cannot be upgraded in place",
            expected="a local folder",
            actual=str(folder),
            fix="copy it to this machine, upgrade it there, and copy it back; format 1 can still be read",
        )
    if before == metadata.FORMAT:
        return before, before
    with writer_lock(folder):
        _upkeep.upgrade(folder)
        table = metadata.read_table(folder, metadata.FILE)
        metadata.write_table(folder, {**table, "format": metadata.FORMAT})
    return before, metadata.FORMAT

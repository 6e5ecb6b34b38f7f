"""The newest whole version of a local table, and what is missing if it is not the newest that was written.

A power cut may leave the manifest of the last commit empty or torn. Such a commit was never acknowledged: its record
(resight.store._history) is missing, and the reader steps back over it. A recorded manifest that was damaged later is
written again from its record, if all its files are there. If they are not, the table has gone back, for example because
somebody restored an older copy of it: the reader goes on with what is there and says what is missing.
"""

import logging
from pathlib import Path
from typing import Any

import lance

from resight.errors import CollectionError
from resight.files.checksum import find_damage
from resight.files.durable import sync_folder, write_durable
from resight.store._errors import is_exhausted, is_panic
from resight.store._history import TABLE, Commit, History, list_versions, name_manifest

log = logging.getLogger("resight.store")
DAMAGED = "damaged"  # folder of the collection for files that were moved away
MAGIC = b"LANC"  # ends every manifest
_told: set[tuple[Path, int, str]] = set()  # what this process has warned of already


def find_newest(folder: Path, history: History) -> tuple[Any, int] | None:
    """The Lance dataset of the newest whole version, and that version; None if there is no table."""
    history.refresh()
    _restore_manifest(folder, history)
    torn: list[int] = []
    for version in list_versions(folder / TABLE):
        table = _open_version(folder, version, history)
        if table is not None:
            _tell(folder, version, torn, history)
            return table, version
        torn.append(version)
    if torn:
        raise CollectionError(
            f"no state of {folder} can be read",
            expected="a whole manifest",
            actual=f"{len(torn)}, all of them damaged",
            fix="restore a backup, or index the images again into a new collection",
        )
    return None


def step_back(folder: Path, version: int, images: int, history: History) -> None:
    """Make `version` the newest: move torn manifests away, and accept that later records are lost.

    The caller holds the writer lock, and writes next: the following commit gets the number version + 1.
    """
    table = folder / TABLE
    for torn in list_versions(table):
        if torn > version:
            (folder / DAMAGED).mkdir(exist_ok=True)
            path = table / name_manifest(torn)
            path.replace(folder / DAMAGED / path.name)
            sync_folder(path.parent)
    newest = history.newest
    if newest is not None and newest.version > version:
        history.rebase(version, images)


def _open_version(folder: Path, version: int, history: History) -> Any | None:
    """The Lance dataset; None if its manifest is torn. Other errors leave: they say nothing about the manifest."""
    path = folder / TABLE / name_manifest(version)
    expected = history.files.get(name_manifest(version))
    if expected is not None:
        return None if find_damage(path, expected) else lance.dataset(str(folder / TABLE), version=version)
    if not path.read_bytes().endswith(MAGIC):
        return None
    try:
        table = lance.dataset(str(folder / TABLE), version=version)
    except BaseException as error:
        if is_panic(error) or (isinstance(error, ValueError) and not is_exhausted(error)):
            return None
        raise
    return table if table.version == version else None


def _restore_manifest(folder: Path, history: History) -> None:
    """Write the newest recorded manifest again if it is damaged or missing and all its data is there."""
    newest = history.newest
    if newest is None or not newest.manifest:
        return
    path = folder / TABLE / name_manifest(newest.version)
    expected = history.files.get(name_manifest(newest.version))
    if expected is None or not find_damage(path, expected) or not _has_data(folder, newest):
        return
    try:
        write_durable(path, newest.manifest)
    except OSError:  # read-only: step back
        return
    log.warning("%s: the list of its files was damaged, and was written again from the history", folder)


def _has_data(folder: Path, commit: Commit) -> bool:
    table = folder / TABLE
    for path, expected in commit.files.items():
        if not path.startswith("_versions/"):
            found = table / path
            if not found.is_file() or found.stat().st_size != expected.bytes:
                return False
    return True


def _tell(folder: Path, version: int, torn: list[int], history: History) -> None:
    """Warn of what is missing, once per process."""
    newest = history.newest
    if newest is not None and newest.version > version:
        named = ", ".join(newest.ids[:3]) + (", …" if len(newest.ids) > 3 else "")
        text = (
            f"{folder} has gone back to an earlier state. Missing: what was written after state {version}, "
            f"up to state {newest.version} of {newest.written} with {newest.images:,} images"
            f"{f' ({named})' if named else ''}. Add these images again, or restore a newer backup."
        )
    elif torn:
        text = (
            f"{folder}: the last write was cut off (state {', '.join(map(str, reversed(torn)))}) and was never "
            f"confirmed. The collection is as it was before, in state {version}. Add these images again."
        )
    else:
        return
    if (folder, version, text) not in _told:
        _told.add((folder, version, text))
        log.warning("%s", text)

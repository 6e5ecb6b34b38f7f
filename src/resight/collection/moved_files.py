"""Photos that were moved or deleted: a store and folders in, records with new paths, or fewer records, out.

A record names its file by path. If photos move, nothing has to be encoded again: a file with the same bytes is the same
image, which keeps its id and gets the new path. `find_moved` finds such files by size and SHA-256, `replace_prefix` by
a folder's old and new name, `move` stores the new paths, and `prune` removes the images of a folder whose files are
gone. Only files on this machine are looked for; those in an object store keep their addresses.
"""

import dataclasses
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from resight.collection.change_detection import KnownImage, KnownImages, list_names
from resight.collection.image_list import ImageList, Source
from resight.data.folder_walk import walk
from resight.encode.extract import gather
from resight.errors import InputError
from resight.files.fingerprint import fingerprint_file
from resight.files.remote import is_remote
from resight.store import FIELDS, ImageRecord, Reader, Record, Store
from resight.types import Descriptors, ImageRef

BATCH = 64  # images that are written together
SEARCHED = 500_000  # images of a collection in which adding looks for moved files
ROWS = ("vectors", *FIELDS)


@dataclass(frozen=True)
class RelinkReport:
    """What `Collection.relink` did.

    Attributes:
        moved: Number of images that got a new path.
        missing: Ids of images whose file is nowhere.
        changed: Ids of images whose file at the new path has other content; they keep the old path.

    Examples:
        >>> import resight
        >>> report = resight.open("photos.resight").relink("photos/")
        >>> report.moved, report.missing, report.changed
        (0, (), ())
    """

    moved: int
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Moves:
    paths: Mapping[str, Path]  # id → where its file is now
    ids: Mapping[str, str] = field(default_factory=dict)  # path → the id that the collection has for it
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def find_moved(reader: Reader, refs: Iterable[ImageRef]) -> Moves:
    """Images whose file is gone and has the same bytes as one of `refs` that no image has."""
    unclaimed = {str(to_absolute(ref.path)): ref for ref in refs if not is_remote(ref.path)}
    claimed: set[str] = set()
    ids: dict[str, str] = {}
    gone: dict[int, dict[Path, list[ImageRecord]]] = defaultdict(dict)  # by size, then by path: a file may hold several
    for record in reader.metadata():
        if ref := unclaimed.pop(own := str(record.path), None):
            claimed.add(own)
            ids |= _keep_id(record, own, ref)
        elif own not in claimed and not is_remote(own) and not record.path.exists():
            gone[record.bytes].setdefault(record.path, []).append(record)
    found: dict[str, Path] = {}
    for name, ref in unclaimed.items():
        path = Path(name)
        candidates = gone.get(_measure(path), {})
        if not candidates:
            continue
        digest = fingerprint_file(path)
        same = [old for old, records in candidates.items() if records[0].sha256 == digest]
        if same:  # of equal files, one with the same name
            old = min(same, key=lambda one: (one.name != path.name, str(one)))
            moved = candidates.pop(old)
            found |= {record.id: path for record in moved}
            ids |= _keep_id(moved[0], name, ref)
    left = (record.id for by_path in gone.values() for records in by_path.values() for record in records)
    return Moves(found, ids, tuple(sorted(left)))


def _keep_id(record: ImageRecord, path: str, ref: ImageRef) -> dict[str, str]:
    """A file keeps the id that it has, unless a manifest has given the image a box or attributes of its own."""
    return {path: record.id} if KnownImage.of(record).has_attributes_of(ref) else {}


def relink(store: Store, source: Source | ImageList, old: str | Path | None) -> RelinkReport:
    """Store the new paths of images whose files are in `source` now, and were in `old` if that is given."""
    store.refresh()
    if old is not None and isinstance(source, (str, Path)):
        found = replace_prefix(store.snapshot(), Path(old), Path(source))
    else:
        images = source if isinstance(source, ImageList) else ImageList(source)
        found = find_moved(store.snapshot(), images.refs)
    move(store, found.paths)
    return RelinkReport(len(found.paths), found.missing, found.changed)


def follow(store: Store, lists: Sequence[ImageList]) -> int:
    """Before folders are added: images that moved into them get their new paths, and their files the ids they have.

    Returns how many moved. A large collection is not searched for moved files without being asked.
    """
    store.refresh()
    return sum(_follow(store, images) for images in lists)


def _follow(store: Store, images: ImageList) -> int:
    reader = store.snapshot()
    if images.ids_are_given or len(reader) > SEARCHED or not _has_new(reader, images):
        return 0
    found = find_moved(reader, images.refs)
    move(store, found.paths)
    images.keep_ids(found.ids)
    return len(found.paths)


def _has_new(reader: Reader, images: ImageList) -> bool:
    """Whether a file has a path that the collection does not know under the name that it would get."""
    known = KnownImages(reader)
    for some in gather(images.refs, BATCH):
        known.look_up(name for ref in some for name in list_names(ref))
        for ref in some:
            stored = filter(None, map(known.get, list_names(ref)))
            if not any(image.path == to_absolute(ref.path) for image in stored):
                return True
    return False


def replace_prefix(reader: Reader, old: Path, new: Path) -> Moves:
    """The images below the folder `old` (or the file `old`), whose files are below `new` now."""
    old, new = to_absolute(old), to_absolute(new)
    found: dict[str, Path] = {}
    missing: list[str] = []
    changed: list[str] = []
    for record in reader.metadata():
        if not record.path.is_relative_to(old):
            continue
        path = new / record.path.relative_to(old)
        if not path.is_file():
            missing.append(record.id)
        elif _is_same(record, path):
            found[record.id] = path
        else:
            changed.append(record.id)
    if not (found or missing or changed):
        raise InputError(
            f"the collection has no image below {old}",
            expected="the folder that its images were in",
            actual="another folder",
            fix="`resight info COLLECTION --json` shows paths; or give the new folder alone",
        )
    return Moves(found, {}, tuple(sorted(missing)), tuple(sorted(changed)))


def find_vanished(reader: Reader, folders: Sequence[Path]) -> tuple[list[str], int]:
    """Ids of images below `folders` whose file is gone, and how many images lie below them at all."""
    roots = [to_absolute(folder) for folder in folders]
    below = [record for record in reader.metadata() if any(record.path.is_relative_to(root) for root in roots)]
    return [record.id for record in below if not os.path.lexists(record.path)], len(below)


def move(store: Store, paths: Mapping[str, Path]) -> None:
    """Store new paths for images; everything else stays. The caller holds the writer lock."""
    ids = list(paths)
    reader = store.snapshot()
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        rows = [list(_split(reader.descriptors(branch, some))) for branch in range(len(reader.layout))]
        images = [
            dataclasses.replace(record, path=paths[record.id], modified_ns=paths[record.id].stat().st_mtime_ns)
            for record in reader.metadata(some)
        ]
        store.write([Record(image, tuple(parts)) for image, *parts in zip(images, *rows, strict=True)])


def prune(store: Store, folders: Sequence[Path], most: float) -> tuple[str, ...]:
    """Remove the images below `folders` whose files are gone; at most the share `most` of those below them."""
    for folder in folders:
        _check_prunable(folder)
    store.refresh()
    gone, total = find_vanished(store.snapshot(), folders)
    if len(gone) > most * total:
        raise InputError(
            f"{len(gone):,} of {total:,} images have no file any more: that many are not removed unasked",
            expected=f"at most {most:.0%} to be gone",
            actual=f"{len(gone) / total:.0%}",
            fix="moved files: resight relink COLLECTION FOLDER; deleted ones: index again with --prune --yes",
        )
    store.remove(gone)
    return tuple(gone)


def _check_prunable(folder: Path) -> None:
    """Refuse a folder that is gone or has no image: a disk that is not mounted looks like that."""
    problem = ""
    if is_remote(folder):
        problem = "an address"
    elif not folder.is_dir():
        problem = "no such folder"
    elif not any(isinstance(item, ImageRef) for item in walk(folder)):
        problem = "no image in it: a disk that is not mounted looks like that"
    if problem:
        raise InputError(
            f"cannot prune by {folder}",
            expected="a folder of images on this machine",
            actual=problem,
            fix="mount the disk, or remove images by id: resight delete COLLECTION ID",
        )


def to_absolute(path: Path) -> Path:
    return path if is_remote(path) else Path(os.path.abspath(path))  # noqa: PTH100 - links stay, as in the store


def _is_same(record: ImageRecord, path: Path) -> bool:
    status = path.stat()
    if (status.st_size, status.st_mtime_ns) == (record.bytes, record.modified_ns):
        return True
    return status.st_size == record.bytes and fingerprint_file(path) == record.sha256


def _measure(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _split(chunks: Iterator[Descriptors]) -> Iterator[Descriptors]:
    """Rows of many images, image by image, with all that is stored of them."""
    for chunk in chunks:
        limits = np.searchsorted(chunk.owners, np.arange(len(chunk.ids) + 1))
        for name, begin, end in zip(chunk.ids, limits, limits[1:], strict=False):
            parts: dict[str, Any] = {part: getattr(chunk, part) for part in ROWS}
            own: dict[str, Any] = {part: None if rows is None else rows[begin:end] for part, rows in parts.items()}
            owners = np.zeros(int(end - begin), np.int32)
            yield dataclasses.replace(chunk, ids=(name,), owners=owners, **own)

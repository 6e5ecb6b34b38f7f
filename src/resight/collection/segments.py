"""Segments: indexes over some images of a collection, in folders below `indexes/`.

A segment knows its images by id and content (sha256 of the file, and box), and the commit of the store that it was made
from. It serves every state that holds some of them unchanged: images that were removed or changed since are dead in it,
and compaction, which moves images in the store, changes nothing. If the state comes from the segment's commit, equal
stamps prove that an image is unchanged. If it does not (the store went back to a backup, say), or the commit is not
known any more, contents are compared.

`segment.json` has the checksums of all its files and its own, so that a damaged segment is found when it is opened.
"""

import contextlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from resight.files.checksum import FileSum, find_damage, sum_file
from resight.files.durable import write_durable
from resight.files.fingerprint import fingerprint
from resight.index import Searcher
from resight.store import ImageRecord, Reader

FILE = "segment.json"
FEW = 512  # images of a small collection that may lie outside the largest segment, or be dead in it
SHARE = 10  # of a large collection, the share 1 / SHARE may
GROWTH = 4  # a new segment absorbs those at most GROWTH times larger: few segments, and images move rarely
CHECKED_BYTES = 1 << 30  # of a segment that are read when it is opened; of a larger one, each file's end


@dataclass(frozen=True)
class Contents:
    """The images that a segment was made from."""

    version: int  # of the state that the stamps belong to
    commit: str  # that made this state
    stamps: Mapping[str, int]  # of the store: the same stamp proves that an image is unchanged
    prints: Mapping[str, str]  # hashes of file and box: an image that moved has another stamp, and the same print
    files: Mapping[str, FileSum] = field(default_factory=dict)  # path below the segment → checksums

    def __len__(self) -> int:
        return len(self.stamps)


@dataclass(frozen=True)
class StoredSegment:
    folder: Path
    contents: Contents
    searcher: Searcher


@dataclass(frozen=True)
class Share:
    """The images of one state that a segment answers for."""

    segment: StoredSegment
    live: frozenset[str]
    moved: frozenset[str] = frozenset()  # of these, the ones that have moved in the store

    @property
    def dead(self) -> int:
        return len(self.segment.contents) - len(self.live)


def find_share(segment: StoredSegment, reader: Reader) -> Share:
    """The images of a segment that the state holds unchanged."""
    stamps, contents = reader.stamps, segment.contents
    is_ancestor = reader.find_commit(contents.version) == contents.commit
    same = {name for name, _ in contents.stamps.items() & stamps.items()} if is_ancestor else set[str]()
    others = (
        [name for name in contents.stamps if name not in same and name in stamps] if len(same) < len(contents) else []
    )
    records = reader.metadata(others) if others else iter(())
    moved = frozenset(record.id for record in records if take_print(record) == contents.prints[record.id])
    return Share(segment, frozenset(same) | moved, moved)


def cover(shares: Iterable[Share], size: int) -> list[Share]:
    """The shares that a state of `size` images needs, the largest first, each image once."""
    chosen: list[Share] = []
    for share in sorted(shares, key=lambda share: (-len(share.live), share.dead)):
        left = share.live.difference(*(other.live for other in chosen)) if chosen else share.live
        if left or (size == 0 and not chosen and not share.dead):
            chosen.append(replace(share, live=left))
    return chosen


def find_gap(shares: Sequence[Share], reader: Reader, in_parts: bool) -> list[str] | None:
    """The images of the segment to build: None if none is missing, and all images for a whole index.

    Without `in_parts`, one segment must hold exactly the images of the state.
    """
    size = len(reader)
    if not shares:
        return list(reader.stamps)
    largest, *others = shares
    if size - len(largest.live) + largest.dead > (max(FEW, size // SHARE) if in_parts else 0):
        return list(reader.stamps)
    if sum(len(share.live) for share in shares) == size:
        return None
    gap = list(reader.stamps.keys() - frozenset().union(*(share.live for share in shares)))
    for share in reversed(others):
        if len(share.live) <= GROWTH * len(gap):
            gap += share.live
    return gap


def restamp(share: Share, reader: Reader) -> StoredSegment:
    """The segment with the stamps of this state, so that images that moved need not be compared again."""
    segment, contents = share.segment, share.segment.contents
    if not share.moved or reader.version < contents.version:
        return segment
    gone = contents.stamps.keys() - share.live  # their numbers may belong to others in this history
    stamps = {**contents.stamps, **dict.fromkeys(gone, -1), **{name: reader.stamps[name] for name in share.moved}}
    contents = replace(contents, version=reader.version, commit=reader.commit_id, stamps=stamps)
    with contextlib.suppress(OSError):  # read-only: every process compares for itself
        write_contents(contents, segment.folder)
    return replace(segment, contents=contents)


def read_contents(reader: Reader, names: Sequence[str]) -> Contents:
    """The contents of a segment of these images, in the order of the store if they are all of it."""
    records = reader.metadata(None if len(names) == len(reader) else names)
    prints = {record.id: take_print(record) for record in records}
    return Contents(reader.version, reader.commit_id, {name: reader.stamps[name] for name in prints}, prints)


def take_print(record: ImageRecord) -> str:
    return fingerprint(f"{record.sha256} {record.ref.box}", 16)


def write_contents(contents: Contents, folder: Path) -> None:
    table = {
        "version": contents.version,
        "commit": contents.commit,
        "stamps": contents.stamps,
        "prints": contents.prints,
        "files": {path: found.to_json() for path, found in contents.files.items()},
    }
    text = json.dumps(table)
    write_durable(folder / FILE, json.dumps({"checksum": zlib.crc32(text.encode()), "contents": text}).encode())


def load_contents(folder: Path) -> Contents:
    """ValueError where the file is damaged, or from before there were checksums."""
    try:
        outer = json.loads((folder / FILE).read_bytes())
        if "contents" not in outer:
            raise ValueError("it is of an earlier format")
        if zlib.crc32(outer["contents"].encode()) != outer["checksum"]:
            raise ValueError(f"{FILE} has changed")
        table: dict[str, Any] = json.loads(outer["contents"])
        files = {path: FileSum.from_json(values) for path, values in table.pop("files").items()}
        return Contents(**table, files=files)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{FILE} cannot be read: {error}") from error


def sum_files(folder: Path) -> dict[str, FileSum]:
    """The checksums of all files of a segment but `segment.json`."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / FILE)
    return {path.relative_to(folder).as_posix(): sum_file(path) for path in paths}


def find_damaged_file(folder: Path, contents: Contents, deep: bool = False) -> str:
    """The first file of a segment that has changed, and how; empty if none has. `deep` reads large ones completely."""
    whole = deep or sum(expected.bytes for expected in contents.files.values()) <= CHECKED_BYTES
    for path, expected in contents.files.items():
        damage = find_damage(folder / path, expected, 0 if whole else expected.bytes)
        if damage:
            return f"{path}: {damage}"
    return ""


def hash_contents(contents: Contents) -> str:
    return fingerprint(json.dumps(sorted(contents.prints.items())), 8)

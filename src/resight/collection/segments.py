"""Indexes on disk, each over the images of its own segment of a collection, and which of them serve one state of it.

A segment knows the images that it was made from by id and content (sha256 of the file, and box). It serves every state
that holds some of them unchanged, whoever made it and when: images that were removed or changed since are dead in it,
and compaction, which moves images in the store, changes nothing. In: segments and a state. Out: which of them answer
for which images (`find_share`, `cover`), and what is to be built where they do not reach (`find_gap`).
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight.index import Searcher
from resight.store import ImageRecord, Reader

FILE = "segment.json"
FEW = 512  # images that may lie outside the largest segment, or be dead in it, of a small collection
SHARE = 10  # of a large one, the part of the whole that may
GROWTH = 4  # a new segment takes in those that are at most so many times larger: few segments, each image moved rarely


@dataclass(frozen=True)
class Contents:
    """The images that a segment was made from."""

    version: int  # of the state that the stamps are of
    stamps: Mapping[str, int]  # of the store: the same one is proof enough that an image has not changed
    prints: Mapping[str, str]  # of file and box: an image that was moved has another stamp, and the same print

    def __len__(self) -> int:
        return len(self.stamps)


@dataclass(frozen=True)
class StoredSegment:
    folder: Path
    contents: Contents
    searcher: Searcher


@dataclass(frozen=True)
class Share:
    """What a segment answers for in one state."""

    segment: StoredSegment
    live: frozenset[str]
    moved: frozenset[str] = frozenset()  # of those, the ones that lie elsewhere in the store by now

    @property
    def dead(self) -> int:
        return len(self.segment.contents) - len(self.live)


def find_share(segment: StoredSegment, reader: Reader) -> Share:
    """The images of a segment that the state holds unchanged."""
    stamps, contents = reader.stamps, segment.contents
    same = {name for name, _ in contents.stamps.items() & stamps.items()}
    others = (
        [name for name in contents.stamps if name not in same and name in stamps] if len(same) < len(contents) else []
    )
    records = reader.metadata(others) if others else iter(())
    moved = frozenset(record.id for record in records if take_print(record) == contents.prints[record.id])
    return Share(segment, frozenset(same) | moved, moved)


def cover(shares: Iterable[Share], size: int) -> list[Share]:
    """The shares that a state of `size` images needs, the largest first, and no image twice."""
    chosen: list[Share] = []
    for share in sorted(shares, key=lambda share: (-len(share.live), share.dead)):
        left = share.live.difference(*(other.live for other in chosen)) if chosen else share.live
        if left or (size == 0 and not chosen and not share.dead):
            chosen.append(replace(share, live=left))
    return chosen


def find_gap(shares: Sequence[Share], reader: Reader, in_parts: bool) -> list[str] | None:
    """The images of a segment that has to be built; None where nothing has to be, all of them for a whole index.

    Without `in_parts`, one segment with these images and no others has to do.
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
    """The segment with the stamps of a newer state, where its images were moved: they need not be compared again."""
    segment, contents = share.segment, share.segment.contents
    if not share.moved or reader.version <= contents.version:
        return segment
    stamps = {**contents.stamps, **{name: reader.stamps[name] for name in share.moved}}
    contents = Contents(reader.version, stamps, contents.prints)
    with contextlib.suppress(OSError):  # where it may not be written, others compare for themselves
        write_contents(contents, segment.folder)
    return replace(segment, contents=contents)


def read_contents(reader: Reader, names: Sequence[str]) -> Contents:
    """Of these images, in the order of the store where they are all of it."""
    records = reader.metadata(None if len(names) == len(reader) else names)
    prints = {record.id: take_print(record) for record in records}
    return Contents(reader.version, {name: reader.stamps[name] for name in prints}, prints)


def take_print(record: ImageRecord) -> str:
    return hashlib.sha256(f"{record.sha256} {record.ref.box}".encode()).hexdigest()[:16]


def write_contents(contents: Contents, folder: Path) -> None:
    table = {"version": contents.version, "stamps": contents.stamps, "prints": contents.prints}
    temporary = folder / f".{FILE}.{os.getpid()}"
    temporary.write_text(json.dumps(table), encoding="utf-8")
    temporary.replace(folder / FILE)


def load_contents(folder: Path) -> Contents:
    return Contents(**json.loads((folder / FILE).read_text(encoding="utf-8")))


def hash_contents(contents: Contents) -> str:
    return hashlib.sha256(json.dumps(sorted(contents.prints.items())).encode()).hexdigest()[:8]

"""The indexes of a collection, under `indexes/`: opened, and built if missing.

In: an index by name, a state of the store and a branch. Out: a Searcher over the state. Everything here is derived:
damaged or missing indexes are built again, and outdated ones removed.

A *segment* is an index over some images, which it knows by id and content (sha256 of the file, and box). It serves
every state that holds some of them unchanged: images that were removed or changed since are dead in it, and compaction,
which moves images in the store, changes nothing. An index that can be divided (`index.Divisible`) gets a new segment
for added images; others are built over the whole state. A segment lies in a folder named after branch, plug-in with
settings, space, state of the store and images. It is built under a temporary name and renamed, so that it is complete
or does not exist, and processes share it. If the collection is read-only, segments lie in a temporary folder until the
process ends.

A process that is about to open a segment which another one removes looks again; one that has opened it keeps it.
"""

import atexit
import contextlib
import errno
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight import index as indexes
from resight.collection import LOCAL
from resight.errors import ClusterError, MissingExtra, RecipeError, ResightError, StorageError
from resight.files.atomic import replace_atomic
from resight.files.fingerprint import fingerprint
from resight.index import Chunks, Divisible, Index, Learner, Searcher
from resight.index._segments import Segment, join
from resight.store import ImageRecord, Reader
from resight.types import Choice

FILE = "segment.json"
FEW = 512  # images of a small collection that may lie outside the largest segment, or be dead in it
SHARE = 10  # of a large collection, the share 1 / SHARE may
GROWTH = 4  # a new segment absorbs those at most GROWTH times larger: few segments, and images move rarely


@dataclass(frozen=True)
class Contents:
    """The images that a segment was made from."""

    version: int  # of the state that the stamps belong to
    stamps: Mapping[str, int]  # of the store: the same stamp proves that an image is unchanged
    prints: Mapping[str, str]  # hashes of file and box: an image that moved has another stamp, and the same print

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
    same = {name for name, _ in contents.stamps.items() & stamps.items()}
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
    """The segment with the stamps of a newer state, so that images that moved need not be compared again."""
    segment, contents = share.segment, share.segment.contents
    if not share.moved or reader.version <= contents.version:
        return segment
    stamps = {**contents.stamps, **{name: reader.stamps[name] for name in share.moved}}
    contents = Contents(reader.version, stamps, contents.prints)
    with contextlib.suppress(OSError):  # read-only: every process compares for itself
        write_contents(contents, segment.folder)
    return replace(segment, contents=contents)


def read_contents(reader: Reader, names: Sequence[str]) -> Contents:
    """The contents of a segment of these images, in the order of the store if they are all of it."""
    records = reader.metadata(None if len(names) == len(reader) else names)
    prints = {record.id: take_print(record) for record in records}
    return Contents(reader.version, {name: reader.stamps[name] for name in prints}, prints)


def take_print(record: ImageRecord) -> str:
    return fingerprint(f"{record.sha256} {record.ref.box}", 16)


def write_contents(contents: Contents, folder: Path) -> None:
    table = {"version": contents.version, "stamps": contents.stamps, "prints": contents.prints}
    with replace_atomic(folder / FILE) as temporary:
        temporary.write_text(json.dumps(table), encoding="utf-8")


def load_contents(folder: Path) -> Contents:
    return Contents(**json.loads((folder / FILE).read_text(encoding="utf-8")))


def hash_contents(contents: Contents) -> str:
    return fingerprint(json.dumps(sorted(contents.prints.items())), 8)


ABANDONED = 24 * 3600  # seconds
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
ATTEMPTS = 8


class IndexCache:
    """The indexes of one collection; of several threads, one builds or opens at a time."""

    def __init__(self, folder: Path, spaces: Sequence[str], engine: str = LOCAL) -> None:
        """`engine` is where searches run (engine.py); an index that is opened `whole` runs in this process."""
        self.spaces = tuple(spaces)
        self._engine = engine
        self._folders = [folder / "indexes"]
        self._opened: dict[Path, StoredSegment] = {}
        self._lock = threading.Lock()

    def open(self, choice: Choice, reader: Reader, branch: int, *, whole: bool = False) -> Searcher:
        """The index of one branch at one state, `whole` in one piece; missing segments are built first."""
        plugin, prefix = self._find_plugin(choice if whole else self._choose_index(choice), branch)
        in_parts = not whole and isinstance(plugin, Divisible) and plugin.divisible
        known: dict[Path, Share] = {}
        with self._lock:
            for _ in range(ATTEMPTS):
                known = self._find_shares(plugin, prefix, reader, known)
                shares = cover(known.values(), len(reader))
                gap = find_gap(shares, reader, in_parts)
                if gap is None:
                    used = shares if in_parts else shares[:1]
                    self._keep_only(prefix, used, reader)
                    if len(known) > len(used):
                        self._remove_outdated(prefix, used, reader)
                    return join([Segment(share.segment.searcher, share.live, share.dead) for share in used])
                self._build(plugin, reader, branch, gap, prefix)
        raise StorageError(
            "the index cannot be built",
            expected=f"a folder {self._folders[0]} that keeps the files written to it",
            actual=f"after {ATTEMPTS} attempts it is still missing",
            fix="check whether another program removes files there, and check the disk",
        )

    def merge(self, choice: Choice, reader: Reader, branch: int) -> None:
        """Merge the segments of an index; it can be opened and searched meanwhile."""
        plugin, prefix = self._find_plugin(self._choose_index(choice), branch)
        with self._lock:
            shares = cover(self._find_shares(plugin, prefix, reader, {}).values(), len(reader))
        gap = find_gap(shares, reader, in_parts=False)
        if gap is not None:
            self._build(plugin, reader, branch, gap, prefix)
        self.open(choice, reader, branch)

    def _choose_index(self, choice: Choice) -> Choice:
        """The index that the engine keeps for `choice`."""
        if self._engine == LOCAL:
            return choice
        from resight.collection.engine import spread

        return spread(choice, self._engine)

    def _find_plugin(self, choice: Choice, branch: int) -> tuple[Index, str]:
        """The plug-in, and the prefix of its segments' names."""
        recipe = json.dumps([choice.name, sorted(choice.settings.items()), self.spaces[branch]], default=str)
        prefix = f"{branch}-{choice.name}-{fingerprint(recipe, 8)}-v"
        return indexes.build(choice.name, **choice.settings), prefix

    def _find_shares(
        self, plugin: Index, prefix: str, reader: Reader, known: Mapping[Path, Share]
    ) -> dict[Path, Share]:
        """The shares of an index's segments on disk. A segment that another process has removed still serves its open
        searchers, but no new ones: only segments on disk are there for every process."""
        self._opened = {folder: segment for folder, segment in self._opened.items() if folder.is_dir()}
        tried: set[Path] = set()
        # Again until nothing is new: a process that removes a segment has written its successor before.
        while new := [folder for folder in self._list(prefix) if folder not in self._opened and folder not in tried]:
            self._opened |= {folder: found for folder in new if (found := _open(plugin, folder)) is not None}
            tried.update(new)
        mine = {folder: segment for folder, segment in self._opened.items() if folder.name.startswith(prefix)}
        return {folder: known.get(folder) or find_share(segment, reader) for folder, segment in mine.items()}

    def _list(self, prefix: str) -> list[Path]:
        return [folder for parent in self._folders for folder in sorted(parent.glob(f"{prefix}*"))]

    def _build(self, plugin: Index, reader: Reader, branch: int, names: Sequence[str], prefix: str) -> None:
        contents = read_contents(reader, names)
        parent = self._folders[-1]
        folder = parent / f"{prefix}{reader.version}-{hash_contents(contents)}"
        try:
            _write(plugin, reader, branch, contents, folder)
        except OSError as error:
            if error.errno in FORBIDDEN and len(self._folders) == 1:
                scratch = Path(tempfile.mkdtemp(prefix="resight-index-"))
                atexit.register(shutil.rmtree, scratch, ignore_errors=True)
                self._folders.append(scratch)
                _write(plugin, reader, branch, contents, scratch / folder.name)
                return
            raise StorageError(
                "cannot write the index",
                expected=f"space and permission to write below {parent}",
                actual=str(error),
                fix="free some space; the images are stored, and the next search builds the index again",
            ) from error

    def _keep_only(self, prefix: str, used: Sequence[Share], reader: Reader) -> None:
        """Forget outdated segments, and record where compaction has moved the images of the others."""
        others = {folder: segment for folder, segment in self._opened.items() if not folder.name.startswith(prefix)}
        self._opened = {**others, **{share.segment.folder: restamp(share, reader) for share in used}}
        for share in used:
            with contextlib.suppress(OSError):
                os.utime(share.segment.folder)  # it is in use

    def _remove_outdated(self, prefix: str, used: Sequence[Share], reader: Reader) -> None:
        """Remove segments that serve neither this state nor a newer one, and those unused for long."""
        kept = {share.segment.folder for share in used}
        for folder in self._list(prefix):
            if folder not in kept and _read_version(folder.name.removeprefix(prefix)) <= reader.version:
                shutil.rmtree(folder, ignore_errors=True)
        for folder in self._list(""):
            with contextlib.suppress(OSError):
                if folder not in self._opened and time.time() - folder.stat().st_mtime > ABANDONED:
                    shutil.rmtree(folder, ignore_errors=True)


def create_index(plugin: Index, read: Callable[[int], Chunks], branches: int, branch: int, folder: Path) -> Searcher:
    """Build the index of one of `branches` branches, which may learn from the rows of another."""
    if not isinstance(plugin, Learner) or (teacher := plugin.learns_from) is None:
        return plugin.create(read(branch), folder)
    if not 0 <= teacher < branches:
        raise RecipeError(
            f"there is no branch {teacher} to learn from",
            expected=f"one of 0 to {branches - 1}",
            actual=str(teacher),
            fix="branches count from 0 in the order of the recipe",
        )
    return plugin.create(read(branch), folder, training=read(teacher))


def _open(plugin: Index, folder: Path) -> StoredSegment | None:
    """None if it is gone or damaged."""
    try:
        contents = load_contents(folder)
        searcher = plugin.open(folder)
    except (ClusterError, MissingExtra):
        raise  # the files may be intact
    except (ResightError, OSError, ValueError, TypeError, KeyError, RuntimeError, EOFError):
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return StoredSegment(folder, contents, searcher)


def _write(plugin: Index, reader: Reader, branch: int, contents: Contents, folder: Path) -> None:
    """Build a segment of the images in `contents`, under a temporary name until it is complete."""
    folder.parent.mkdir(exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    names = None if len(contents) == len(reader) else list(contents.stamps)

    def read(number: int) -> Chunks:
        return lambda: reader.descriptors(number, names, fields=("words", "boxes"))

    try:
        create_index(plugin, read, len(reader.layout), branch, temporary)
        write_contents(contents, temporary)
        temporary.replace(folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process has just built the same segment
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _read_version(text: str) -> int:
    """The version in the name of a segment: "7-0a1b2c3d" → 7; a folder with another name is outdated."""
    number = text.partition("-")[0]
    return int(number) if number.isdecimal() else 0

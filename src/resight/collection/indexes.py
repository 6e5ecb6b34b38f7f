"""Indexes on disk, each over the images of its own segment of a collection, and which of them serve one state of it.

A segment knows the images that it was made from by id and content (sha256 of the file, and box). It serves every state
that holds some of them unchanged, whoever made it and when: images that were removed or changed since are dead in it,
and compaction, which moves images in the store, changes nothing. In: segments and a state. Out: which of them answer
for which images (`find_share`, `cover`), and what is to be built where they do not reach (`find_gap`).

Indexes that a collection keeps beside its store, under `indexes/`.

An index that may lie in parts (`index.Divisible`) is not built anew for every change: what was added since is a segment
of its own, and what was removed is left out (see segments.py). Others are built over the whole of a state. Each segment
lies in a folder named after what it was made from: branch, plug-in with settings, space, state of the store, images. It
is built under a temporary name and renamed, so that it is whole or not there, and processes share it. All of it is
derived: what no longer serves is removed, what is damaged or missing is made again, and where the collection may not be
written to, indexes live in a temporary folder as long as the process.

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
    """Of one collection; may be used from several threads, one of which builds or opens at a time."""

    def __init__(self, folder: Path, spaces: Sequence[str], engine: str = LOCAL) -> None:
        """`engine` is where searches run (engines.py); what is opened `whole` is opened here."""
        self.spaces = tuple(spaces)
        self._engine = engine
        self._homes = [folder / "indexes"]
        self._opened: dict[Path, StoredSegment] = {}
        self._lock = threading.Lock()

    def open(self, choice: Choice, reader: Reader, branch: int, *, whole: bool = False) -> Searcher:
        """The index of one branch at one state, `whole` in one piece; what is missing of it is made first."""
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
            "the index cannot be made",
            expected=f"a folder {self._homes[0]} that keeps what is written to it",
            actual=f"after {ATTEMPTS} attempts it is still not there",
            fix="see whether something else removes files there, and check the disk",
        )

    def merge(self, choice: Choice, reader: Reader, branch: int) -> None:
        """Put the parts of an index together; it can be opened and searched meanwhile."""
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
        """With what the names of its segments begin with."""
        recipe = json.dumps([choice.name, sorted(choice.settings.items()), self.spaces[branch]], default=str)
        prefix = f"{branch}-{choice.name}-{fingerprint(recipe, 8)}-v"
        return indexes.build(choice.name, **choice.settings), prefix

    def _find_shares(
        self, plugin: Index, prefix: str, reader: Reader, known: Mapping[Path, Share]
    ) -> dict[Path, Share]:
        """Of the segments of an index. One that another process has removed serves its searchers on, but not new ones:
        what is built goes with what lies on disk, and that alone is there for everybody."""
        self._opened = {place: segment for place, segment in self._opened.items() if place.is_dir()}
        tried: set[Path] = set()
        # Again until nothing new is there: whoever removes a segment has put another in its place before.
        while new := [place for place in self._list(prefix) if place not in self._opened and place not in tried]:
            self._opened |= {place: found for place in new if (found := _open(plugin, place)) is not None}
            tried.update(new)
        mine = {place: segment for place, segment in self._opened.items() if place.name.startswith(prefix)}
        return {place: known.get(place) or find_share(segment, reader) for place, segment in mine.items()}

    def _list(self, prefix: str) -> list[Path]:
        return [place for home in self._homes for place in sorted(home.glob(f"{prefix}*"))]

    def _build(self, plugin: Index, reader: Reader, branch: int, names: Sequence[str], prefix: str) -> None:
        contents = read_contents(reader, names)
        home = self._homes[-1]
        place = home / f"{prefix}{reader.version}-{hash_contents(contents)}"
        try:
            _write(plugin, reader, branch, contents, place)
        except OSError as error:
            if error.errno in FORBIDDEN and len(self._homes) == 1:
                scratch = Path(tempfile.mkdtemp(prefix="resight-index-"))
                atexit.register(shutil.rmtree, scratch, ignore_errors=True)
                self._homes.append(scratch)
                _write(plugin, reader, branch, contents, scratch / place.name)
                return
            raise StorageError(
                "cannot write the index",
                expected=f"space and permission to write below {home}",
                actual=str(error),
                fix="free some space; the images themselves are stored, and the index is made again at the next search",
            ) from error

    def _keep_only(self, prefix: str, used: Sequence[Share], reader: Reader) -> None:
        """Forget what no longer serves, and note where compaction has moved the images of the others."""
        others = {place: segment for place, segment in self._opened.items() if not place.name.startswith(prefix)}
        self._opened = {**others, **{share.segment.folder: restamp(share, reader) for share in used}}
        for share in used:
            with contextlib.suppress(OSError):
                os.utime(share.segment.folder)  # it is in use

    def _remove_outdated(self, prefix: str, used: Sequence[Share], reader: Reader) -> None:
        """Segments that do not serve this state nor were made for a newer one, and what nobody has used for long."""
        kept = {share.segment.folder for share in used}
        for place in self._list(prefix):
            if place not in kept and _read_version(place.name.removeprefix(prefix)) <= reader.version:
                shutil.rmtree(place, ignore_errors=True)
        for place in self._list(""):
            with contextlib.suppress(OSError):
                if place not in self._opened and time.time() - place.stat().st_mtime > ABANDONED:
                    shutil.rmtree(place, ignore_errors=True)


def create_index(plugin: Index, read: Callable[[int], Chunks], branches: int, branch: int, folder: Path) -> Searcher:
    """The index of one of so many branches, which may learn from the rows of another."""
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


def _open(plugin: Index, place: Path) -> StoredSegment | None:
    """None when it is not there any more, or not as it was written."""
    try:
        contents = load_contents(place)
        searcher = plugin.open(place)
    except (ClusterError, MissingExtra):
        raise  # which says nothing about the files
    except (ResightError, OSError, ValueError, TypeError, KeyError, RuntimeError, EOFError):
        shutil.rmtree(place, ignore_errors=True)
        return None
    return StoredSegment(place, contents, searcher)


def _write(plugin: Index, reader: Reader, branch: int, contents: Contents, place: Path) -> None:
    """A segment of the images in `contents`, under a temporary name until it is whole."""
    place.parent.mkdir(exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=place.parent))
    names = None if len(contents) == len(reader) else list(contents.stamps)

    def read(number: int) -> Chunks:
        return lambda: reader.descriptors(number, names, fields=("words", "boxes"))

    try:
        create_index(plugin, read, len(reader.layout), branch, temporary)
        write_contents(contents, temporary)
        temporary.replace(place)
    except OSError:
        if not place.is_dir():  # otherwise another process has just made the same segment
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _read_version(text: str) -> int:
    """Of the name of a segment: "7-0a1b2c3d" → 7; a folder that was named in another way is outdated."""
    number = text.partition("-")[0]
    return int(number) if number.isdecimal() else 0

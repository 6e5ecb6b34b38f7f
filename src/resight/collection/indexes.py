"""The indexes of a collection, under `indexes/`: opened, and built if missing.

In: an index by name, a state of the store and a branch. Out: a Searcher over the state. Everything here is derived:
damaged or missing indexes are built again, and outdated ones removed.

An index that can be divided (`index.Divisible`) gets a new segment (segments.py) for added images; others are built
over the whole state. A segment lies in a folder named after branch, plug-in with settings, space, state of the store
and images. It is built under a temporary name and renamed, so that it is complete or does not exist, and processes
share it. If the collection is read-only, segments lie in a temporary folder until the process ends. If the disk is
full, the segments that are there serve on, and a warning says what they lack.

Only checksums and the plug-in's own errors call a segment damaged, never a lack of memory or of file descriptors. It is
removed by a process that can take the writer lock; others build their own beside it.

A process that is about to open a segment which another one removes looks again; one that has opened it keeps it.
"""

import atexit
import contextlib
import errno
import json
import logging
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from resight import index as indexes
from resight.collection import LOCAL
from resight.collection.segments import (
    Contents,
    Share,
    StoredSegment,
    cover,
    find_damaged_file,
    find_gap,
    find_share,
    hash_contents,
    load_contents,
    read_contents,
    restamp,
    sum_files,
    write_contents,
)
from resight.errors import ClusterError, CollectionBusy, MissingExtra, RecipeError, ResightError, StorageError
from resight.files.durable import sync_tree
from resight.files.fingerprint import fingerprint
from resight.files.lock import writer_lock
from resight.index import Chunks, Divisible, Index, Learner, Searcher
from resight.index._segments import Segment, join
from resight.store import Reader
from resight.types import Choice

log = logging.getLogger("resight.indexes")
FOLDER = "indexes"
ABANDONED = 24 * 3600  # seconds
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
ATTEMPTS = 8


class IndexCache:
    """The indexes of one collection; of several threads, one builds or opens at a time."""

    def __init__(self, folder: Path, spaces: Sequence[str], engine: str = LOCAL) -> None:
        """`engine` is where searches run (engine.py); an index that is opened `whole` runs in this process."""
        self.spaces = tuple(spaces)
        self._engine = engine
        self._folders = [folder / FOLDER]
        self._damaged: set[Path] = set()  # found, and not removed
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
                    return _join(used)
                try:
                    self._build(plugin, reader, branch, gap, prefix)
                except StorageError as error:
                    if not shares:
                        raise
                    return self._serve_old(shares if in_parts else shares[:1], reader, error)
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
        # Again until nothing is new: a process that removes a segment has written its successor before.
        skipped = set(self._damaged)
        while new := [folder for folder in self._list(prefix) if folder not in self._opened and folder not in skipped]:
            self._opened |= {folder: found for folder in new if (found := self._open(plugin, folder)) is not None}
            skipped.update(new)
        mine = {folder: segment for folder, segment in self._opened.items() if folder.name.startswith(prefix)}
        return {folder: known.get(folder) or find_share(segment, reader) for folder, segment in mine.items()}

    def _open(self, plugin: Index, folder: Path) -> StoredSegment | None:
        """None if it is gone or damaged."""
        try:
            contents = load_contents(folder)
            damage = find_damaged_file(folder, contents)
            if damage:
                raise ValueError(damage)
            return StoredSegment(folder, contents, plugin.open(folder))
        except (ClusterError, MissingExtra):
            raise  # the files may be intact
        except FileNotFoundError as error:
            self._discard(folder, error)
        except (OSError, MemoryError) as error:
            raise StorageError(
                f"the index in {folder} cannot be read",
                expected="free memory and file descriptors, and permission to read it",
                actual=str(error) or type(error).__name__,
                fix="close other programs, or raise the limits (ulimit); the index was left as it is",
            ) from error
        except (ResightError, ValueError, TypeError, KeyError, RuntimeError, EOFError) as error:
            self._discard(folder, error)
        return None

    def _discard(self, folder: Path, error: Exception) -> None:
        """Remove a damaged segment if this process may write; otherwise leave it, and build another one."""
        if folder.is_dir():
            log.warning(
                "the index %s cannot be used and is built again: %s", folder.name, str(error).partition("\n")[0]
            )
        try:
            with contextlib.nullcontext() if folder.parent != self._folders[0] else writer_lock(folder.parents[1]):
                shutil.rmtree(folder)
        except (OSError, CollectionBusy, StorageError):
            self._damaged.add(folder)

    def _serve_old(self, shares: Sequence[Share], reader: Reader, error: StorageError) -> Searcher:
        missing = len(reader) - sum(len(share.live) for share in shares)
        log.warning("%s (%s): searches leave out %d new images until then", error.problem, error.actual, missing)
        return _join(shares)

    def _list(self, prefix: str) -> list[Path]:
        return [folder for parent in self._folders for folder in sorted(parent.glob(f"{prefix}*"))]

    def _build(self, plugin: Index, reader: Reader, branch: int, names: Sequence[str], prefix: str) -> None:
        contents = read_contents(reader, names)
        parent = self._folders[-1]
        folder = parent / f"{prefix}{reader.version}-{hash_contents(contents)}"
        if folder in self._damaged:
            folder = folder.with_name(f"{folder.name}-{secrets.token_hex(4)}")
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


def _join(shares: Sequence[Share]) -> Searcher:
    return join([Segment(share.segment.searcher, share.live, share.dead) for share in shares])


def _write(plugin: Index, reader: Reader, branch: int, contents: Contents, folder: Path) -> None:
    """Build a segment of the images in `contents`, under a temporary name until it is complete."""
    folder.parent.mkdir(exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    names = None if len(contents) == len(reader) else list(contents.stamps)

    def read(number: int) -> Chunks:
        return lambda: reader.descriptors(number, names, fields=("words", "boxes"))

    try:
        create_index(plugin, read, len(reader.layout), branch, temporary)
        sync_tree(temporary)
        write_contents(replace(contents, files=sum_files(temporary)), temporary)
        temporary.chmod(folder.parent.stat().st_mode & 0o777)  # mkdtemp keeps others out
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

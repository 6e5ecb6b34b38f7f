"""The actor on a node: the shards that it holds, opened once and searched many times.

It opens a shard from the collection's own folder if it sees that, else from its cache, under a name derived from the
content. Files arrive in the cache in pieces under a temporary name, are verified by sha256, and then renamed: a shard
in the cache is complete. Errors are returned as values, so that they arrive unchanged.
"""

import glob
import os
import shutil
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from resight import index as indexes
from resight.errors import CollectionError, ResightError, StorageError
from resight.files.fingerprint import fingerprint_file
from resight.index import Searcher
from resight.index.shards.shard_manifest import Shard, has_files
from resight.ray_cluster import tell_versions
from resight.types import Choice, Descriptors, Ranking

Ask = tuple[str, frozenset[str] | None]  # key of a shard, and which of its images are allowed
SPARE = 64 << 20  # bytes that a node's disk keeps free


class HeldShards:
    """Of one node, for one process that searches. Used from several threads."""

    def __init__(self, cache: Path, measure_free: Callable[[Path], int] | None = None) -> None:
        self._cache = cache
        self._measure_free = measure_free or (lambda folder: shutil.disk_usage(folder).free)
        self._searchers: dict[str, Searcher] = {}
        self._fetched: dict[str, Path] = {}
        self._sweep()

    def tell(self) -> dict[str, str]:
        """The versions of what computes here."""
        return tell_versions()

    def sign(self) -> None:
        """A sign of life: that it comes back is the answer."""

    def hold(
        self, key: str, inner: Choice, shard: Shard, folder: Path | None
    ) -> Literal["held", "absent"] | ResightError:
        """Open a shard that lies in `folder` or in the cache; "absent": in neither."""
        cached = self._cache / shard.content
        places = [place for place in (folder, cached) if place is not None and has_files(place, shard.files)]
        if not places:
            return "absent"
        try:
            searcher = indexes.build(inner.name, **inner.settings).open(places[0])
        except ResightError as error:
            return error
        except (OSError, ValueError, KeyError, EOFError, RuntimeError) as error:
            return CollectionError(f"{places[0]} cannot be opened on {socket.gethostname()}", actual=str(error))
        if places[0] == cached:
            self._fetched[key] = cached
        self._searchers[key] = searcher
        return "held"

    def prepare(self, shard: Shard) -> StorageError | None:
        """Make room for a shard that is about to be sent."""
        partial = self._find_partial(shard)
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            free = self._measure_free(partial)
            if free < shard.size + SPARE:
                raise OSError(f"{free:,} bytes are free, and the shard takes {shard.size:,}")
        except OSError as error:
            return self._give_up(shard, error)
        return None

    def receive(self, shard: Shard, name: str, piece: bytes) -> StorageError | None:
        """Put `piece` behind what is there of a file."""
        path = self._find_partial(shard) / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(piece)
        except OSError as error:
            return self._give_up(shard, error)
        return None

    def settle(self, shard: Shard) -> ResightError | None:
        """All pieces are here: compare them, and give the shard its name."""
        partial, target = self._find_partial(shard), self._cache / shard.content
        for file in shard.files:
            found = fingerprint_file(partial / file.name) if (partial / file.name).is_file() else "no such file"
            if found != file.sha256:
                shutil.rmtree(partial, ignore_errors=True)
                return CollectionError(
                    f"{file.name} did not arrive on {socket.gethostname()} as it was sent",
                    expected=f"sha256 {file.sha256}",
                    actual=found,
                    fix="remove the index: it is made again from the collection",
                )
        try:
            partial.rename(target)
        except OSError as error:
            if not has_files(target, shard.files):  # otherwise another process has just fetched the same
                return self._give_up(shard, error)
            shutil.rmtree(partial, ignore_errors=True)
        return None

    def search(self, asks: Sequence[Ask], query: Descriptors, k: int) -> list[Ranking | None] | ResightError:
        """One ranking a shard; None for one that is not held (any more)."""
        try:
            return [self._search_one(key, query, k, allowed) for key, allowed in asks]
        except ResightError as error:
            return error

    def drop(self, key: str) -> None:
        """Forget a shard; what was fetched for it goes, too, unless another key uses it."""
        self._searchers.pop(key, None)
        folder = self._fetched.pop(key, None)
        if folder is not None and folder not in self._fetched.values():
            shutil.rmtree(folder, ignore_errors=True)

    def _search_one(self, key: str, query: Descriptors, k: int, allowed: frozenset[str] | None) -> Ranking | None:
        searcher = self._searchers.get(key)
        return None if searcher is None else searcher.search(query, k, allowed)

    def _find_partial(self, shard: Shard) -> Path:
        return self._cache / f".{shard.content}.{socket.gethostname()}.{os.getpid()}"

    def _sweep(self) -> None:
        """Remove what processes of this machine were about to fetch when they died."""
        for partial in self._cache.glob(f".*.{glob.escape(socket.gethostname())}.*"):
            pid = partial.name.rpartition(".")[2]
            if pid.isdecimal() and not _is_alive(int(pid)):
                shutil.rmtree(partial, ignore_errors=True)

    def _give_up(self, shard: Shard, error: OSError) -> StorageError:
        shutil.rmtree(self._find_partial(shard), ignore_errors=True)
        return StorageError(
            f"the node {socket.gethostname()} has no room for a shard",
            expected=f"{shard.size:,} bytes, and {SPARE:,} to spare, below {self._cache}",
            actual=str(error),
            fix="free some space there, name another folder (setting cache), or add a node",
        )


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # there, to ask is to end it
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # of somebody else
    return True

"""The actor on a node: the shards that it holds, opened once and searched many times.

It opens a shard from the collection's own folder if the node sees that folder, else from its cache, under a name
derived from the content. The cache receives files in pieces under a temporary name, verifies them by sha256 and renames
them: a shard in the cache is complete. Methods return errors as values, so that they reach the caller unchanged.
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
from resight.files.inside import find_fault
from resight.index import Searcher
from resight.index.shards.shard_manifest import Shard, has_files, locate_file
from resight.ray_cluster import list_versions
from resight.types import Choice, Descriptors, Ranking

ShardRequest = tuple[str, frozenset[str] | None]  # key of a shard, and which of its images are allowed (None: all)
SPARE = 64 << 20  # bytes that a node's disk keeps free


class ShardServer:
    """Serves the shards of one node to one searching process. Thread-safe."""

    def __init__(self, cache: Path, measure_free: Callable[[Path], int] | None = None) -> None:
        self._cache = cache
        self._measure_free = measure_free or (lambda folder: shutil.disk_usage(folder).free)
        self._searchers: dict[str, Searcher] = {}
        self._fetched: dict[str, Path] = {}
        self._sweep()

    def describe_versions(self) -> dict[str, str]:
        """Versions of the packages that compute scores on this node."""
        return list_versions()

    def ping(self) -> None:
        """Return at once, which shows that the actor is alive."""

    def open_shard(
        self, key: str, inner: Choice, shard: Shard, folder: Path | None
    ) -> Literal["held", "absent"] | ResightError:
        """Open a shard from `folder` or from the cache; "absent": the node finds it in neither."""
        cached = self._cache / shard.content
        try:
            folders = [path for path in (folder, cached) if path is not None and has_files(path, shard.files)]
            if not folders:
                return "absent"
            searcher = indexes.build(inner.name, **inner.settings).open(folders[0])
        except ResightError as error:
            return error
        except (OSError, ValueError, KeyError, EOFError, RuntimeError) as error:
            return CollectionError(f"{folders[0]} cannot be opened on {socket.gethostname()}", actual=str(error))
        if folders[0] == cached:
            self._fetched[key] = cached
        self._searchers[key] = searcher
        return "held"

    def prepare(self, shard: Shard) -> StorageError | None:
        """Prepare an empty temporary folder for a shard, and check that the disk has space for it."""
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

    def receive(self, shard: Shard, name: str, piece: bytes) -> ResightError | None:
        """Append `piece` to a file, whose name must stay inside the shard's folder."""
        try:
            path = locate_file(self._find_partial(shard), name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(piece)
        except OSError as error:
            return self._give_up(shard, error)
        except CollectionError as error:
            return error
        return None

    def commit(self, shard: Shard) -> ResightError | None:
        """Verify the received files by sha256, and give the shard its final name."""
        partial, target = self._find_partial(shard), self._cache / shard.content
        for file in shard.files:
            path = partial / file.name
            found = fingerprint_file(path) if path.is_file() and not find_fault(file.name) else "no such file"
            if found != file.sha256:
                shutil.rmtree(partial, ignore_errors=True)
                return CollectionError(
                    f"{file.name} did not arrive on {socket.gethostname()} as it was sent",
                    expected=f"sha256 {file.sha256}",
                    actual=found,
                    fix="delete the index; the next search rebuilds it from the collection",
                )
        try:
            partial.rename(target)
        except OSError as error:
            if not has_files(target, shard.files):  # otherwise another process has just fetched the same shard
                return self._give_up(shard, error)
            shutil.rmtree(partial, ignore_errors=True)
        return None

    def search(
        self, requests: Sequence[ShardRequest], query: Descriptors, k: int
    ) -> list[Ranking | None] | ResightError:
        """One ranking per shard; None for a shard that this node does not hold (any more)."""
        try:
            return [self._search_one(key, query, k, allowed) for key, allowed in requests]
        except ResightError as error:
            return error

    def drop(self, key: str) -> None:
        """Forget a shard, and delete its files from the cache unless another key uses them."""
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
        """Delete partial shards of processes on this machine that have died."""
        for partial in self._cache.glob(f".*.{glob.escape(socket.gethostname())}.*"):
            pid = partial.name.rpartition(".")[2]
            if pid.isdecimal() and not _is_alive(int(pid)):
                shutil.rmtree(partial, ignore_errors=True)

    def _give_up(self, shard: Shard, error: OSError) -> StorageError:
        shutil.rmtree(self._find_partial(shard), ignore_errors=True)
        return StorageError(
            f"the node {socket.gethostname()} has no disk space for a shard",
            expected=f"{shard.size:,} bytes, and {SPARE:,} to spare, below {self._cache}",
            actual=str(error),
            fix="free some space there, set another folder (setting cache), or add a node",
        )


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # os.kill would end the process there
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # a process of another user
    return True

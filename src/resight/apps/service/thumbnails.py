"""Thumbnails of stored images, made once in the sandbox and cached on disk; the least recently used are removed first.

They lie in the collection's folder `pictures`, or in the user's cache where that is not writable. A file's name is the
hash of the image's content and a size, never a client's text.
"""

import os
import threading
from bisect import bisect_left
from collections.abc import Container
from pathlib import Path

from anyio.to_thread import run_sync

from resight.apps.service.decode_pool import DecodePool
from resight.apps.service.error_responses import ApiError
from resight.collection.location import find_local_folder
from resight.data import image_files
from resight.errors import ImageError, StorageError
from resight.files import cache_folder
from resight.files.atomic import write_atomic
from resight.files.fingerprint import fingerprint
from resight.files.inside import resolve_inside
from resight.files.remote import is_remote
from resight.store import ImageRecord

FOLDER = "pictures"
SIDES = (96, 160, 320, 640, 1280, 2048)
CAPACITY = 512 * 2**20  # bytes
KEPT = 0.8  # share of the capacity that remains after a clean-up


class ThumbnailCache:
    def __init__(self, collection: Path, capacity: int = CAPACITY) -> None:
        self.folder = choose_cache_folder(collection)
        self._capacity = capacity
        self._lock = threading.Lock()
        self._size: int | None = None  # of all files; None: not measured yet

    async def read(self, record: ImageRecord, side: int, pool: DecodePool, keep_metadata: bool = False) -> bytes:
        """A WebP, its longer side at most `side` (one of SIDES), or with `keep_metadata` a JPEG with the EXIF block."""
        path = self._path(record, side, keep_metadata)
        data = await run_sync(_read, path)
        if data is None:
            data = await self._make(record, side, pool, keep_metadata)
            await run_sync(self._write, path, data)
        return data

    def remove_unused(self, stored: Container[str]) -> int:
        """Remove thumbnails of content that no image has any more; returns how many."""
        unused = [path for _, _, path in self._list() if path.name.partition("-")[0] not in stored]
        for path in unused:
            path.unlink(missing_ok=True)
        with self._lock:
            self._size = None
        return len(unused)

    async def _make(self, record: ImageRecord, side: int, pool: DecodePool, keep_metadata: bool) -> bytes:
        try:
            return await pool.make_thumbnail(lambda: _read_unchanged(record), record.id, side, keep_metadata)
        except ImageError as error:
            raise ApiError(
                404,
                "the file of this image cannot be shown",
                expected="the file that was added to the collection",
                actual="it is gone or has changed",
                fix="add the image again",
            ) from error

    def _path(self, record: ImageRecord, side: int, keep_metadata: bool) -> Path:
        key = f"{record.sha256}-{side}{'.jpg' if keep_metadata else '.webp'}"
        return resolve_inside(
            self.folder, f"{key[:2]}/{key}", what="a thumbnail"
        )  # a stranger may have made the records

    def _write(self, path: Path, data: bytes) -> None:
        try:
            with write_atomic(path) as temporary:
                temporary.write_bytes(data)
        except StorageError:  # a full disk must not prevent an image from being shown
            return
        with self._lock:
            self._size = self._measure() if self._size is None else self._size + len(data)
            if self._size > self._capacity:
                self._size = self._shrink()

    def _measure(self) -> int:
        return sum(size for _, size, _ in self._list())

    def _shrink(self) -> int:
        """Remove the least recently used files; returns the bytes that remain."""
        total = 0
        for _, size, path in sorted(self._list(), reverse=True):
            if total + size > KEPT * self._capacity:
                path.unlink(missing_ok=True)
            else:
                total += size
        return total

    def _list(self) -> list[tuple[float, int, Path]]:
        """Time of last use, bytes and path of every file."""
        found = []
        for path in self.folder.glob("*/*"):
            try:
                status = path.stat()
            except OSError:  # another process has just removed it
                continue
            found.append((status.st_mtime, status.st_size, path))
        return found


def round_up_side(side: int) -> int:
    """The smallest of SIDES that is large enough, or the largest."""
    return SIDES[min(bisect_left(SIDES, side), len(SIDES) - 1)]


def make_etag(record: ImageRecord, side: int, keep_metadata: bool) -> str:
    return f'"{record.sha256[:32]}-{side}{"-m" if keep_metadata else ""}"'


def choose_cache_folder(collection: Path) -> Path:
    if is_remote(collection):
        return find_local_folder(collection) / FOLDER
    folder = collection / FOLDER
    if os.access(folder if folder.exists() else collection, os.W_OK):
        return folder
    return cache_folder() / FOLDER / fingerprint(str(collection.resolve()), 16)


def _read_unchanged(record: ImageRecord) -> bytes:
    """The bytes of the file that was added: the cache names the thumbnail by their hash."""
    data, _ = image_files.read_file(record.path)
    if fingerprint(data) != record.sha256:
        raise ImageError(f"cannot show {record.id}: its file has changed")
    return data


def _read(path: Path) -> bytes | None:
    """A cached file, marked as used now; None where there is none."""
    try:
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    return data

"""Small pictures of stored images, kept on disk: made once by a decoder, the ones not seen for longest go first.

They lie in the collection's folder `pictures`, or in the user's cache where that cannot be written to. Names are the
content's hash and a size, never anything that a client sent.
"""

import hashlib
import os
import threading
from bisect import bisect_left
from collections.abc import Container
from pathlib import Path

from anyio.to_thread import run_sync

from resight.apps.service.decoding import DecoderPool
from resight.apps.service.error_responses import Refusal
from resight.collection.location import find_home
from resight.data import image_files
from resight.errors import ImageError, StorageError
from resight.files.atomic import find_cache, write_whole
from resight.files.remote import is_remote
from resight.store import ImageRecord

SIDES = (96, 160, 320, 640, 1280, 2048)
ROOM = 512 * 2**20  # bytes
KEPT = 0.8  # of the room, after some had to go


class PictureCache:
    def __init__(self, collection: Path, room: int = ROOM) -> None:
        self.folder = choose_folder(collection)
        self._room = room
        self._lock = threading.Lock()
        self._size: int | None = None  # of all files; None: not counted yet

    async def read(self, record: ImageRecord, side: int, decoders: DecoderPool, keep_metadata: bool = False) -> bytes:
        """A WebP, its longer side at most `side` (one of SIDES); a JPEG with its EXIF block where that is kept."""
        path = self._name(record, side, keep_metadata)
        data = await run_sync(_read, path)
        if data is None:
            data = await self._make(record, side, decoders, keep_metadata)
            await run_sync(self._keep, path, data)
        return data

    async def _make(self, record: ImageRecord, side: int, decoders: DecoderPool, keep_metadata: bool) -> bytes:
        try:
            return await decoders.shrink(lambda: _read_same(record), record.id, side, keep_metadata)
        except ImageError as error:
            raise Refusal(
                404,
                "the file of this image cannot be shown",
                expected="the file that was added to the collection",
                actual="it is gone, or has changed",
                fix="add the image again",
            ) from error

    def _name(self, record: ImageRecord, side: int, keep_metadata: bool) -> Path:
        key = f"{record.sha256}-{side}{'.jpg' if keep_metadata else '.webp'}"
        return self.folder / key[:2] / key

    def _keep(self, path: Path, data: bytes) -> None:
        try:
            with write_whole(path) as temporary:
                temporary.write_bytes(data)
        except StorageError:  # a full disk must not keep a picture from being shown
            return
        with self._lock:
            self._size = self._measure() if self._size is None else self._size + len(data)
            if self._size > self._room:
                self._size = self._shrink()

    def remove_unused(self, stored: Container[str]) -> int:
        """Forget pictures of content that no image has any more; gives how many there were."""
        unused = [path for _, _, path in self._list() if path.name.partition("-")[0] not in stored]
        for path in unused:
            path.unlink(missing_ok=True)
        with self._lock:
            self._size = None
        return len(unused)

    def _measure(self) -> int:
        return sum(size for _, size, _ in self._list())

    def _shrink(self) -> int:
        """Remove what was not seen for longest; gives the bytes that are left."""
        files = sorted(self._list(), reverse=True)
        total = 0
        for _, size, path in files:
            if total + size > KEPT * self._room:
                path.unlink(missing_ok=True)
            else:
                total += size
        return total

    def _list(self) -> list[tuple[float, int, Path]]:
        found = []
        for path in self.folder.glob("*/*"):
            try:
                status = path.stat()
            except OSError:  # another process has just removed it
                continue
            found.append((status.st_mtime, status.st_size, path))
        return found


def _read_same(record: ImageRecord) -> bytes:
    """The file, if it is the one that was added: its picture is kept under that one's hash."""
    data, _ = image_files.read_file(record.path)
    if hashlib.sha256(data).hexdigest() != record.sha256:
        raise ImageError(f"cannot show {record.id}: its file has changed")
    return data


def _read(path: Path) -> bytes | None:
    """A file that is there, marked as seen just now."""
    try:
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    return data


def round_up(side: int) -> int:
    """The next of SIDES; the last for all that are larger."""
    return SIDES[min(bisect_left(SIDES, side), len(SIDES) - 1)]


def tag(record: ImageRecord, side: int, keep_metadata: bool) -> str:
    """The ETag."""
    return f'"{record.sha256[:32]}-{side}{"-m" if keep_metadata else ""}"'


def choose_folder(collection: Path) -> Path:
    if is_remote(collection):
        return find_home(collection) / "pictures"
    folder = collection / "pictures"
    if os.access(folder if folder.exists() else collection, os.W_OK):
        return folder
    return find_cache() / "pictures" / hashlib.sha256(str(collection.resolve()).encode()).hexdigest()[:16]

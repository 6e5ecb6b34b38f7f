"""Files that clients uploaded, below COLLECTION/uploads/, each named after the SHA-256 of its content.

In go bytes, out come paths that are durable: when `keep` returns, the files survive a power cut. No name that a
client chose becomes part of a path. One file serves all images of the same content, so a file is removed only when
no image and no job has its hash any more (`remove_unused`).
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from resight.errors import StorageError
from resight.whole_files import UNFINISHED, write_whole

FOLDER = "uploads"
HASH = re.compile(r"[0-9a-f]{64}")
ABANDONED = 3600  # seconds after which a file that nobody finished is removed


class Uploads:
    def __init__(self, collection: Path) -> None:
        self.folder = Path(os.path.abspath(collection)) / FOLDER  # noqa: PTH100 - as the store names files: links stay

    def path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def keep(self, files: Iterable[bytes]) -> list[Path]:
        """Where files of this content lie now, and after a power cut."""
        paths = [self._write(data) for data in files]
        _sync_folders(dict.fromkeys(folder for path in paths for folder in path.parents[:3]))
        return paths

    def list_hashes(self) -> Iterator[str]:
        """Of all files that are there; anything that this module did not make is left out."""
        for path in self.folder.glob("??/*"):
            if HASH.fullmatch(path.name) and path == self.path(path.name) and not path.is_symlink():
                yield path.name

    def remove_unused(self, candidates: Iterator[str], used: Container[str]) -> int:
        """Remove those of the candidates that are not used; gives how many."""
        removed = 0
        for sha256 in candidates:
            if sha256 not in used and HASH.fullmatch(sha256):
                with contextlib.suppress(OSError):  # another process was quicker, or it is tried again next time
                    self.path(sha256).unlink()
                    removed += 1
        return removed

    def remove_unfinished(self) -> None:
        """What a process left that was killed while it wrote."""
        for path in self.folder.glob(f"??/*{UNFINISHED}"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()

    def _write(self, data: bytes) -> Path:
        path = self.path(hashlib.sha256(data).hexdigest())
        if not path.is_file():
            with write_whole(path, "cannot keep the upload", "free some space, then send it again") as temporary:
                _write_durably(temporary, data)
        return path


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folders(folders: Iterable[Path]) -> None:
    """The names, too: a new file is found after a power cut only when its folder was written out."""
    try:
        for folder in folders:
            _sync(folder)
    except OSError as error:
        raise StorageError(
            "cannot keep the upload",
            expected="a disk that writes what it is given",
            actual=str(error),
            fix="check the disk, then send it again",
        ) from error


def _sync(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders, and writes names at once
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

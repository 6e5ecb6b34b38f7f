"""A cache of Features in a folder: a picture goes through the same network only once.

In: pictures. Out: their Features, read from the folder where the same pixels have gone through a backbone of the same
fingerprint at the same scale, otherwise computed and stored. One file per picture, written atomically, so that an
interrupted run continues where it stopped. Above `limit` bytes the least recently used files are deleted.
"""

import contextlib
import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from resight.encode.backbones import Backbone, unbatch
from resight.files import cache_folder
from resight.files.atomic import TEMPORARY, write_atomic
from resight.types import Features, Picture

ARRAYS = [field.name for field in fields(Features) if field.name not in ("ids", "grid")]
MAGIC = b"resight features 1\n"
ALIGNED = 64  # bytes: alignment of the first array
ROOM = 0.9  # of the limit, after files were deleted
ABANDONED = 3600.0  # seconds after which a temporary file is taken for abandoned


class FeatureCache:
    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.found = self.computed = 0  # pictures, since the cache was opened
        self._lock = threading.Lock()
        self._bytes: int | None = None  # of all files, as counted by this process; None: not yet

    def read(self, key: str) -> Features | None:
        path = self._path(key)
        try:
            data = bytearray(path.read_bytes())
            os.utime(path)
        except OSError:
            return None  # missing, or deleted by another process
        try:
            return unpack(data)
        except (ValueError, KeyError, TypeError):
            path.unlink(missing_ok=True)  # damaged: it is computed again
            return None

    def write(self, key: str, features: Features) -> None:
        path = self._path(key)
        data = pack(features)
        size = len(data)
        if size > self.limit:
            return
        fix = "choose another folder (--cache) or a smaller limit (--cache-size), or switch it off (--no-cache)"
        with write_atomic(path, f"cannot cache features in {self.folder}", fix) as temporary:
            temporary.write_bytes(data)
        self._count(size)

    def count(self, found: int, computed: int) -> None:
        with self._lock:
            self.found += found
            self.computed += computed

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.features"

    def _count(self, size: int) -> None:
        with self._lock:
            known = self._count_files() if self._bytes is None else self._bytes
            self._bytes = known + size
            if self._bytes > self.limit:
                self._bytes = self._drop_oldest()

    def _count_files(self) -> int:
        return sum(size for _, size, _ in self._list_files())

    def _drop_oldest(self) -> int:
        """Delete the least recently used files; the bytes that stay."""
        known = self._list_files()
        total = sum(size for _, size, _ in known)
        now = time.time()
        for used, size, path in sorted(known):
            if total <= ROOM * self.limit:
                break
            if path.suffix != TEMPORARY or now - used > ABANDONED:
                path.unlink(missing_ok=True)
                total -= size
        return total

    def _list_files(self) -> list[tuple[float, int, Path]]:
        """The time of last use, the bytes and the path of each file."""
        known = []
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):  # another process may delete files
                status = path.stat()
                known.append((status.st_mtime, status.st_size, path))
        return known


class Cached:
    """A backbone that looks in the cache first."""

    def __init__(self, backbone: Backbone, cache: FeatureCache) -> None:
        self.max_side = backbone.max_side
        self.fingerprint = backbone.fingerprint
        self.batch = backbone.batch
        self._backbone = backbone
        self._cache = cache

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        keys = [make_key(picture, self.fingerprint, scale) for picture in pictures]
        known = [self._cache.read(key) for key in keys]
        unknown = [picture for picture, features in zip(pictures, known, strict=True) if features is None]
        self._cache.count(len(pictures) - len(unknown), len(unknown))
        computed = unbatch(self._backbone.extract(unknown, scale)) if unknown else iter(())
        for picture, key, features in zip(pictures, keys, known, strict=True):
            if features is None:
                features = next(computed)
                self._cache.write(key, features)
            yield replace(features, ids=(picture.ref.id,))


def pack(features: Features) -> bytes:
    """A magic line, the length of the header, the header (JSON: grid, types and shapes), the arrays.

    Not numpy's format: reading its header builds a syntax tree, which several threads of Python 3.11 cannot do at once.
    """
    arrays = {name: getattr(features, name) for name in ARRAYS if getattr(features, name) is not None}
    shapes = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    header = json.dumps({"grid": features.grid, "arrays": shapes}).encode()
    header += b" " * (-(len(MAGIC) + 4 + len(header)) % ALIGNED)
    start = MAGIC + len(header).to_bytes(4, "little") + header
    return b"".join([start, *(np.ascontiguousarray(array).tobytes() for array in arrays.values())])


def unpack(data: bytearray) -> Features:
    """The inverse, with an empty id; raises ValueError, KeyError or TypeError where the data is damaged."""
    if not data.startswith(MAGIC):
        raise ValueError("not a features file")
    at = len(MAGIC) + 4
    length = int.from_bytes(data[len(MAGIC) : at], "little")
    header = json.loads(data[at : at + length])
    at += length
    held = {}
    for name, (kind, shape) in header["arrays"].items():
        count = math.prod(shape)
        held[name] = np.frombuffer(data, np.dtype(kind), count, at).reshape(shape)
        at += held[name].nbytes
    if at != len(data):
        raise ValueError("truncated, or too long")
    return Features(ids=("",), grid=tuple(header["grid"]) if header["grid"] else None, **held)


def make_key(picture: Picture, fingerprint: str, scale: float) -> str:
    """A hash of the pixels that the backbone sees: a crop, or a reduced decoding of the file, is another picture."""
    header = f"{fingerprint}\0{scale:g}\0{picture.pixels.shape}\0{picture.size}\0"
    digest = hashlib.sha256(header.encode())
    digest.update(np.ascontiguousarray(picture.pixels).data)
    return digest.hexdigest()


def find_folder() -> Path:
    """The default folder: RESIGHT_CACHE, or the user's cache folder."""
    named = os.environ.get("RESIGHT_CACHE")
    return Path(named) if named else cache_folder() / "features"

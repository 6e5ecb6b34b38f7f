"""Thumbnails for a duplicate search: every image as 96 × 96 grey pixels, from one pass over the files.

In: records. Out: Thumbnails, mapped from a file, so that 200,000 of them (1.8 GB) need no memory. They find mirrored
and rotated copies (dct_signature.py), and show whether two pictures agree when aligned (verify.py). `digests` identify
equal pixels in different files: they are hashes of the decoded picture, reduced if it is large. `Side` adds the source
of stored rows.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.audit.dedup.branches import Rows
from resight.boxes import crop
from resight.data import image_files
from resight.errors import BoxError, ImageError
from resight.files.mapped import create_mapped
from resight.store import ImageRecord
from resight.types import Box, Skipped

SIDE = 96
DECODED = 512  # longest side of a decoded picture
FLAT = 2.0  # standard deviation of grey values below which a picture is blank
BATCH = 64  # images between two reports of progress

Count = Callable[[int, int], None]


class Pictures(Protocol):
    """Grey pictures [side, side] uint8 by number: an array [n, side, side], or some rows of one."""

    def __len__(self) -> int: ...
    def __getitem__(self, row: int, /) -> NDArray[np.uint8]: ...
    def __iter__(self) -> Iterator[NDArray[np.uint8]]: ...


@dataclass(frozen=True)
class SomePictures:
    """Some rows of other pictures, read on demand: a copy of a mapped file would stay in memory."""

    pictures: Pictures
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int, /) -> NDArray[np.uint8]:
        return self.pictures[int(self.rows[row])]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self.pictures[int(row)] for row in self.rows)


@dataclass(frozen=True)
class Thumbnails:
    ids: tuple[str, ...]
    grey: Pictures  # n of [SIDE, SIDE]
    digests: tuple[str, ...]  # empty for an unreadable file
    flat: NDArray[np.bool_]  # [n] blank, or unreadable
    skipped: tuple[Skipped, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def choose(self, rows: Sequence[int]) -> "Thumbnails":
        """Some of them, without copying pictures."""
        chosen = np.asarray(rows, np.int64)
        digests = tuple(self.digests[row] for row in rows)
        ids = tuple(self.ids[row] for row in rows)
        return Thumbnails(ids, SomePictures(self.grey, chosen), digests, self.flat[chosen], self.skipped)


def make_thumbnails(records: Sequence[ImageRecord], file: Path, progress: Count | None = None) -> Thumbnails:
    """Write thumbnails to `file`, replacing it; two threads decode."""
    grey = create_mapped(file, (len(records), SIDE, SIDE), np.uint8)
    digests, flat, skipped = [], np.ones(len(records), np.bool_), []
    with ThreadPoolExecutor(2) as pool:
        for start in range(0, len(records), BATCH):
            for row, made in enumerate(pool.map(_make, records[start : start + BATCH]), start=start):
                if isinstance(made, Skipped):
                    skipped.append(made)
                    digests.append("")
                    continue
                grey[row], digest = made
                flat[row] = grey[row].std() < FLAT
                digests.append(digest)
            if progress:
                progress(len(digests), len(records))
    grey.flush()
    ids = tuple(record.id for record in records)
    return Thumbnails(ids, np.load(file, mmap_mode="r"), tuple(digests), flat, tuple(skipped))


def shrink(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[H, W, 3] RGB → [SIDE, SIDE] grey."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


def _make(record: ImageRecord) -> tuple[NDArray[np.uint8], str] | Skipped:
    ref = record.ref
    try:
        picture = image_files.read(ref, max_side=None if ref.box else DECODED)
        pixels = picture.pixels if ref.box is None else crop(picture, ref.box).pixels
    except (ImageError, BoxError) as error:
        return Skipped(str(ref.path), image_files.reason(error, ref.path))
    digest = hashlib.sha256(
        repr((record.size, ref.box, pixels.shape)).encode() + np.ascontiguousarray(pixels).tobytes()
    )
    return shrink(pixels), digest.hexdigest()


@dataclass(frozen=True)
class Side:
    source: Rows
    ids: tuple[str, ...]
    outlines: tuple[Box, ...]  # the part of the picture that the image shows: all of it, or a box
    thumbnails: Thumbnails

    def __len__(self) -> int:
        return len(self.ids)


def outline_of(record: ImageRecord) -> Box:
    return record.ref.box or (0.0, 0.0, float(record.size[0]), float(record.size[1]))

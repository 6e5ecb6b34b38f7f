"""Partition a stream of rows by shard: reads the chunks once, and gives chunks per shard that can be read repeatedly.

Rows go to one folder per shard, in files of a few megabytes; memory holds only rows that are not written yet.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.index import Chunks
from resight.index.shards.placement import EXTRAS, partition
from resight.types import Descriptors

BUFFER_BYTES = 4 << 20  # of rows per shard in memory


def spill(chunks: Chunks, shards: int, folder: Path) -> list["Spilled"]:
    """The rows of every shard, in files below `folder`."""
    spilled = [Spilled(folder / f"{number:04}") for number in range(shards)]
    for chunk in chunks():
        for number, part in partition(chunk, shards).items():
            spilled[number].add(part)
    for shard in spilled:
        shard.finish()
    return spilled


class Spilled:
    """The rows of one shard; each call iterates over all of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._waiting: list[Descriptors] = []
        self._bytes = 0
        self._files = 0
        self.images = 0

    def __call__(self) -> Iterator[Descriptors]:
        for number in range(self._files):
            yield from _read(self._folder / f"{number:06}.npz")

    def add(self, part: Descriptors) -> None:
        self._waiting.append(part)
        self._bytes += part.vectors.nbytes
        self.images += len(part.ids)
        if self._bytes >= BUFFER_BYTES:
            self.finish()

    def finish(self) -> None:
        if self._waiting:
            _write(self._waiting, self._folder / f"{self._files:06}.npz")
            self._files += 1
        self._waiting, self._bytes = [], 0


def _write(parts: Sequence[Descriptors], path: Path) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    for number, part in enumerate(parts):
        named = {"vectors": part.vectors, "owners": part.owners, **{name: getattr(part, name) for name in EXTRAS}}
        arrays |= {f"{number}.{name}": array for name, array in named.items() if array is not None}
    images = json.dumps([[part.ids, part.space] for part in parts]).encode()
    arrays["images"] = np.frombuffer(images, np.uint8)
    np.savez(path, allow_pickle=False, **arrays)


def _read(path: Path) -> Iterator[Descriptors]:
    with np.load(path) as arrays:
        for number, (ids, space) in enumerate(json.loads(arrays["images"].tobytes())):
            names = [name for name in ("vectors", "owners", *EXTRAS) if f"{number}.{name}" in arrays]
            yield Descriptors(ids=tuple(ids), space=space, **{name: arrays[f"{number}.{name}"] for name in names})

"""Images → shards: an id always goes to the same of so many shards, whoever asks and whatever else is there."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from resight.types import Descriptors

EXTRAS = ("boxes", "weights", "points", "words", "seeds")  # what rows may have beside their vectors


def find_shard(name: str, shards: int) -> int:
    """The number of the shard that holds the image."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % shards


def split_names(names: Iterable[str], shards: int) -> dict[int, frozenset[str]]:
    """Ids by the shard that holds them; shards that hold none of them are not named."""
    parts: dict[int, set[str]] = {}
    for name in names:
        parts.setdefault(find_shard(name, shards), set()).add(name)
    return {shard: frozenset(part) for shard, part in sorted(parts.items())}


def deal(chunk: Descriptors, shards: int) -> dict[int, Descriptors]:
    """The images of a chunk by the shard that they belong to, with their rows."""
    numbers = np.array([find_shard(name, shards) for name in chunk.ids], np.int64)
    return {int(shard): take_images(chunk, numbers == shard) for shard in np.unique(numbers)}


def take_images(chunk: Descriptors, kept: NDArray[np.bool_]) -> Descriptors:
    """The images that are `kept` [N]."""
    rows = kept[chunk.owners] if len(chunk.owners) else np.zeros(0, bool)
    numbers = np.cumsum(kept) - 1
    arrays = {name: array[rows] for name in EXTRAS if (array := getattr(chunk, name)) is not None}
    return replace(
        chunk,
        ids=tuple(name for name, keep in zip(chunk.ids, kept, strict=True) if keep),
        vectors=chunk.vectors[rows],
        owners=numbers[chunk.owners[rows]].astype(np.int32),
        **arrays,
    )

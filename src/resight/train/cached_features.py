"""What a frozen encoder says of the images of things: encoded once, kept in memory for training.

In: things, an encoder and which of its branches. Out: FrozenRows. What cannot be read, has no rows or rows that are not
finite is listed and left out. With a feature cache, a second training on the same images encodes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from resight.collection.add import read_picture
from resight.encode.encoder import Encoder, encode_stored
from resight.encode.extract import Encoded, extract
from resight.encode.transforms.whiten import require_floats
from resight.errors import InputError
from resight.train.instances import Thing
from resight.types import FloatArray, ImageRef, IntArray, Skipped

Progress = Callable[[int, int], None]
MOST_BYTES = 8_000_000_000  # of rows that are kept in memory


@dataclass(frozen=True)
class FrozenRows:
    ids: tuple[str, ...]  # n images
    labels: IntArray  # [n] the number of the thing that each shows; `choose` needs them in order
    vectors: NDArray[np.floating]  # [m, D] of all images, one after the other
    offsets: IntArray  # [n + 1] the rows of image i are offsets[i]:offsets[i + 1]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, images: Sequence[int] | IntArray) -> tuple[Tensor, Tensor]:
        """Rows [B, K, D] of some images, and which of them there are [B, K]."""
        longest = max(int(np.diff(self.offsets)[images].max()), 1)
        rows = np.zeros((len(images), longest, self.vectors.shape[1]), np.float32)
        mask = np.zeros((len(images), longest), bool)
        for number, image in enumerate(images):
            low, high = self.offsets[image], self.offsets[image + 1]
            rows[number, : high - low] = self.vectors[low:high]
            mask[number, : high - low] = True
        return torch.from_numpy(rows), torch.from_numpy(mask)

    def group(self) -> list[IntArray]:
        """For each thing that has two images or more, their numbers."""
        found = [np.flatnonzero(self.labels == label) for label in np.unique(self.labels)]
        return [images for images in found if len(images) > 1]

    def sample(self, most: int, generator: np.random.Generator) -> FloatArray:
        """Some rows [at most `most`, D] of all."""
        chosen = generator.permutation(len(self.vectors))[:most]
        return np.asarray(self.vectors[np.sort(chosen)], np.float32)


def encode_things(
    things: Sequence[Thing], encoder: Encoder, branch: int, progress: Progress | None = None
) -> tuple[FrozenRows, tuple[Skipped, ...]]:
    """The rows of all images of all things; `labels` count the things in the order in which they are given."""
    skipped: list[Skipped] = []
    ids: list[str] = []
    labels: list[int] = []
    rows: list[NDArray[np.float16]] = []
    held = 0
    thing_of = {ref.id: number for number, thing in enumerate(things) for ref in thing.images}

    def keep(batch: list[Encoded]) -> None:
        for picture, described in batch:
            require_floats(described[branch])
            vectors = described[branch].vectors
            if not len(vectors) or not np.isfinite(vectors).all():
                reason = "its rows are not finite" if len(vectors) else "nothing that could be found again in it"
                skipped.append(Skipped(str(picture.ref.path), reason))
                continue
            ids.append(picture.ref.id)
            labels.append(thing_of[picture.ref.id])
            rows.append(np.asarray(vectors, np.float16))
            nonlocal held
            held += rows[-1].nbytes
        if held > MOST_BYTES:
            raise InputError(
                "these images have more rows than are kept in memory for training",
                expected=f"at most {MOST_BYTES / 1e9:g} GB of them",
                actual=f"{held / 1e9:.1f} GB after {len(ids):,} of {len(thing_of):,} images",
                fix="take a descriptor with fewer rows (aggregated, pooled), or a part of the things",
            )
        if progress:
            progress(len(ids) + len(skipped), len(thing_of))

    extract(
        list_images(things),
        lambda ref: read_picture(ref, encoder),
        lambda pictures: encode_stored(pictures, encoder),
        keep,
        skipped.append,
        together=encoder.batch,
    )
    counts = [len(one) for one in rows]
    vectors = np.concatenate(rows) if rows else np.zeros((0, 1), np.float16)
    return FrozenRows(tuple(ids), np.array(labels, np.int64), vectors, np.cumsum([0, *counts])), tuple(skipped)


def choose(rows: FrozenRows, things: range) -> FrozenRows:
    """The images of some things, which have numbers in a row; the vectors are not copied."""
    first, last = np.searchsorted(rows.labels, [things.start, things.stop])
    low, high = rows.offsets[first], rows.offsets[last]
    return FrozenRows(
        rows.ids[first:last], rows.labels[first:last], rows.vectors[low:high], rows.offsets[first : last + 1] - low
    )


def list_images(things: Sequence[Thing]) -> Iterator[ImageRef]:
    return (ref for thing in things for ref in thing.images)

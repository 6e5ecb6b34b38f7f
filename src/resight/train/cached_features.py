"""Features of a frozen encoder for training: the images of instances in, CachedFeatures in memory out.

Every image is encoded once. Images that cannot be read, have no rows, or have rows that are not finite are listed and
left out. With a feature cache on disk, a second training on the same images encodes nothing.
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
from resight.train.instances import Instance
from resight.types import FloatArray, ImageRef, IntArray, Skipped

Progress = Callable[[int, int], None]
MOST_BYTES = 8_000_000_000  # of rows in memory


@dataclass(frozen=True)
class CachedFeatures:
    ids: tuple[str, ...]  # n images
    labels: IntArray  # [n] the number of each image's instance; `choose` needs them sorted
    vectors: NDArray[np.floating]  # [m, D] rows of all images, in order
    offsets: IntArray  # [n + 1] the rows of image i are offsets[i]:offsets[i + 1]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, images: Sequence[int] | IntArray) -> tuple[Tensor, Tensor]:
        """Rows [B, K, D] of some images, padded with zeros, and the mask [B, K] of real rows."""
        longest = max(int(np.diff(self.offsets)[images].max()), 1)
        rows = np.zeros((len(images), longest, self.vectors.shape[1]), np.float32)
        mask = np.zeros((len(images), longest), bool)
        for number, image in enumerate(images):
            low, high = self.offsets[image], self.offsets[image + 1]
            rows[number, : high - low] = self.vectors[low:high]
            mask[number, : high - low] = True
        return torch.from_numpy(rows), torch.from_numpy(mask)

    def group(self) -> list[IntArray]:
        """The numbers of the images of each instance with two or more."""
        found = [np.flatnonzero(self.labels == label) for label in np.unique(self.labels)]
        return [images for images in found if len(images) > 1]

    def sample(self, most: int, generator: np.random.Generator) -> FloatArray:
        """A random sample of at most `most` rows [n, D]."""
        chosen = generator.permutation(len(self.vectors))[:most]
        return np.asarray(self.vectors[np.sort(chosen)], np.float32)


def encode_instances(
    instances: Sequence[Instance], encoder: Encoder, branch: int, progress: Progress | None = None
) -> tuple[CachedFeatures, tuple[Skipped, ...]]:
    """Encode all images of all instances; `labels` number the instances in the order given."""
    skipped: list[Skipped] = []
    ids: list[str] = []
    labels: list[int] = []
    rows: list[NDArray[np.float16]] = []
    held = 0
    instance_of = {ref.id: number for number, instance in enumerate(instances) for ref in instance.images}

    def keep(batch: list[Encoded]) -> None:
        for picture, described in batch:
            require_floats(described[branch])
            vectors = described[branch].vectors
            if not len(vectors) or not np.isfinite(vectors).all():
                reason = "its rows are not finite" if len(vectors) else "it has no features"
                skipped.append(Skipped(str(picture.ref.path), reason))
                continue
            ids.append(picture.ref.id)
            labels.append(instance_of[picture.ref.id])
            rows.append(np.asarray(vectors, np.float16))
            nonlocal held
            held += rows[-1].nbytes
        if held > MOST_BYTES:
            raise InputError(
                "the features of these images take too much memory for training",
                expected=f"at most {MOST_BYTES / 1e9:g} GB",
                actual=f"{held / 1e9:.1f} GB after {len(ids):,} of {len(instance_of):,} images",
                fix="use a descriptor with fewer rows (aggregated, pooled), or fewer images",
            )
        if progress:
            progress(len(ids) + len(skipped), len(instance_of))

    extract(
        list_images(instances),
        lambda ref: read_picture(ref, encoder),
        lambda pictures: encode_stored(pictures, encoder),
        keep,
        skipped.append,
        together=encoder.batch,
    )
    counts = [len(one) for one in rows]
    vectors = np.concatenate(rows) if rows else np.zeros((0, 1), np.float16)
    return CachedFeatures(tuple(ids), np.array(labels, np.int64), vectors, np.cumsum([0, *counts])), tuple(skipped)


def choose(rows: CachedFeatures, instances: range) -> CachedFeatures:
    """The images of consecutive instances; the vectors are not copied."""
    first, last = np.searchsorted(rows.labels, [instances.start, instances.stop])
    low, high = rows.offsets[first], rows.offsets[last]
    return CachedFeatures(
        rows.ids[first:last], rows.labels[first:last], rows.vectors[low:high], rows.offsets[first : last + 1] - low
    )


def list_images(instances: Sequence[Instance]) -> Iterator[ImageRef]:
    return (ref for instance in instances for ref in instance.images)

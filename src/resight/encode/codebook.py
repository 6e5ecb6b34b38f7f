"""Code books: the centres that visual words stand for.

A code book file is an .npz with `centres` [k, D] float16. Two generic ones for RootSIFT come with the
package (256 words for VLAD, 4,096 for ASMK), made by `benchmarks/make_codebooks.py` from photos in
Python packages; `resight codebook` learns one from the images of a collection.
"""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.types import FloatArray
from resight.whole_files import write_whole

SHIPPED = Path(__file__).parent / "descriptors"
ROWS_AT_ONCE = 4096  # bounds the distance block: 4,096 × 65,536 words would be 1 GiB in float32


@dataclass(frozen=True)
class Codebook:
    centres: FloatArray  # [k, D]
    fingerprint: str

    def assign(self, vectors: FloatArray, count: int = 1) -> NDArray[np.int32]:
        """The `count` nearest words of each row of vectors [n, D], nearest first: [n, count] int32."""
        if vectors.shape[1] != self.centres.shape[1]:
            raise InputError(
                "the code book does not fit the encoder",
                expected=f"features of {self.centres.shape[1]} dimensions",
                actual=f"{vectors.shape[1]} dimensions",
                fix="learn one for this encoder: `resight codebook IMAGES --encoder NAME --out FILE.npz`",
            )
        count = min(count, len(self.centres))
        half_norms = (self.centres**2).sum(axis=1) / 2
        blocks = [np.zeros((0, count), np.int32)]
        for start in range(0, len(vectors), ROWS_AT_ONCE):
            closeness = vectors[start : start + ROWS_AT_ONCE] @ self.centres.T - half_norms
            blocks.append(_largest(closeness, count))
        return np.concatenate(blocks)


def _largest(values: FloatArray, count: int) -> NDArray[np.int32]:
    """Columns of the `count` largest of each row, largest first. Overwrites `values`.

    A few passes of argmax take a fraction of the time of a partition, which moves every value.
    """
    rows = np.arange(len(values))
    columns = np.empty((len(values), count), np.int32)
    for place in range(count):
        columns[:, place] = values.argmax(axis=1)
        values[rows, columns[:, place]] = -np.inf
    return columns


def load(path: Path | None, shipped: str) -> Codebook:
    """The code book at `path`, or the shipped one of that name."""
    source = path or SHIPPED / f"{shipped}.npz"
    try:
        # From memory: numpy leaves the file open when an archive is damaged.
        with np.load(io.BytesIO(source.read_bytes()), allow_pickle=False) as archive:
            return make(archive["centres"].astype(np.float32))
    except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{source} is not a code book",
            expected="an .npz file with the array 'centres' [words, dimensions]",
            actual=str(error),
            fix="make one with `resight codebook IMAGES --words N --out FILE.npz`",
        ) from error


def save(codebook: Codebook, path: Path) -> None:
    with write_whole(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, centres=codebook.centres.astype(np.float16))


def make(centres: FloatArray) -> Codebook:
    if centres.ndim != 2 or 0 in centres.shape or not (np.abs(centres) < np.finfo(np.float16).max).all():
        raise InputError(
            "not a code book",
            expected="finite centres [words, dimensions], below 65,504",
            actual=f"an array of shape {centres.shape}",
            fix="make one with `resight codebook IMAGES --words N --out FILE.npz`",
        )
    centres = centres.astype(np.float16).astype(np.float32)  # what a file can hold, so that saving changes nothing
    return Codebook(centres, hashlib.sha256(centres.tobytes()).hexdigest()[:12])


def learn(vectors: FloatArray, words: int, seed: int = 0, rounds: int = 20) -> Codebook:
    """k-means of vectors [n, D] into `words` centres."""
    if len(vectors) < words:
        raise InputError(
            f"too few local features for {words} words",
            expected=f"at least {words}",
            actual=str(len(vectors)),
            fix="give more images or ask for fewer words",
        )
    import faiss

    kmeans = faiss.Kmeans(
        vectors.shape[1], words, niter=rounds, seed=seed, min_points_per_centroid=1, max_points_per_centroid=1000
    )
    kmeans.train(np.ascontiguousarray(vectors, dtype=np.float32))
    return make(kmeans.centroids)

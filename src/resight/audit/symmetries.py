"""Pictures by their coarse shades, in all eight positions a square can be laid: thumbnails in, vectors out.

A vector holds the 8 × 8 lowest frequencies of the cosine transform of a thumbnail without the mean, at unit length:
the product of two is the correlation of the blurred pictures. Mirroring changes signs of frequencies, and turning by
90° swaps rows and columns too, so that the other seven positions cost no second transform.
"""

from collections.abc import Iterator

import cv2
import numpy as np

from resight.audit.thumbnails import Pictures
from resight.types import FloatArray

FREQUENCIES = 8
REDUCED = 32
SIGNS = (-1.0) ** np.arange(FREQUENCIES)


def describe(grey: Pictures) -> FloatArray:
    """n thumbnails [side, side] → [n, 64]; zeros where a picture is of one shade."""
    vectors = np.zeros((len(grey), FREQUENCIES * FREQUENCIES), np.float32)
    for row, picture in enumerate(grey):
        small = cv2.resize(picture, (REDUCED, REDUCED), interpolation=cv2.INTER_AREA).astype(np.float32)
        vectors[row] = cv2.dct(small)[:FREQUENCIES, :FREQUENCIES].ravel()
    vectors[:, 0] = 0
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6), np.float32)


def lay(vectors: FloatArray) -> Iterator[tuple[bool, FloatArray]]:
    """The vectors [n, 64] in each of the eight positions, and whether that is one of the four mirrored ones."""
    planes = vectors.reshape(-1, FREQUENCIES, FREQUENCIES)
    for across in (1.0, SIGNS):
        for down in (1.0, SIGNS):
            for swapped in (False, True):
                laid = planes * np.broadcast_to(across, FREQUENCIES) * np.broadcast_to(down, FREQUENCIES)[:, None]
                laid = laid.transpose(0, 2, 1) if swapped else laid
                mirrored = (across is SIGNS) ^ (down is SIGNS) ^ swapped
                yield mirrored, np.ascontiguousarray(laid.reshape(len(vectors), -1), np.float32)

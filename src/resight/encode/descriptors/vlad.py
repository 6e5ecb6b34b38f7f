"""VLAD: one vector an image from the residuals of its local features to their visual words.

v_w = Σ_{x assigned to w} (x - c_w); each v_w L2-normalised (intra-normalisation, against bursts), the
concatenation L2-normalised: [1, words · D]. Jégou et al., CVPR 2010; Arandjelović and Zisserman, CVPR 2013.
An image without local features gives the zero vector, which is similar to nothing.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.encode import codebook as codebooks
from resight.types import Descriptors, Features, FloatArray, Role


@dataclass(frozen=True)
class Config:
    codebook: Path | None = None  # a file of one's own; None: the generic one for RootSIFT


def build(config: Config) -> "Vlad":
    return Vlad(codebooks.load(config.codebook, "vlad_256"))


class Vlad:
    def __init__(self, codebook: codebooks.Codebook) -> None:
        self.fingerprint = f"vlad({codebook.fingerprint})"
        self._codebook = codebook

    def describe(self, features: Features, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        vectors = np.stack([aggregate(patches, self._codebook) for patches in features.patches])
        return Descriptors(features.ids, vectors, np.arange(len(features.ids), dtype=np.int32))


def aggregate(vectors: FloatArray, codebook: codebooks.Codebook) -> FloatArray:
    """Local features [n, D] → VLAD [words · D] float32 of unit length."""
    words, residuals = sum_residuals(vectors, codebook, count=1)
    table = np.zeros_like(codebook.centres)
    table[words] = residuals / np.maximum(np.linalg.norm(residuals, axis=1, keepdims=True), 1e-6)
    flat: FloatArray = table.ravel()
    return flat / max(float(np.linalg.norm(flat)), 1e-6)


def sum_residuals(vectors: FloatArray, codebook: codebooks.Codebook, count: int) -> tuple[np.ndarray, FloatArray]:
    """The words that occur [m], rising, and the sum of their residuals [m, D], each feature given to `count` words."""
    assigned = codebook.assign(vectors, count)
    words, slots = np.unique(assigned.ravel(), return_inverse=True)
    order = np.argsort(slots, kind="stable")
    residuals = np.repeat(vectors, assigned.shape[1], axis=0) - codebook.centres[assigned.ravel()]
    if len(words) == 0:
        return words, np.zeros((0, codebook.centres.shape[1]), np.float32)
    starts = np.searchsorted(slots[order], np.arange(len(words)))
    return words, np.add.reduceat(residuals[order], starts, axis=0)

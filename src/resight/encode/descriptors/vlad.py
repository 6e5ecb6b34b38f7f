"""VLAD: one vector per image from the residuals of its local features to their visual words.

v_w = Σ_{x assigned to w} (x - c_w); each v_w L2-normalised (intra-normalisation, against bursts), and the
concatenation L2-normalised: [1, words · D]. Jégou et al., CVPR 2010; Arandjelović and Zisserman, CVPR 2013.
An image without local features gives the zero vector, which is similar to nothing.
"""

from dataclasses import dataclass

import numpy as np

from resight.encode import codebook as codebooks
from resight.encode.descriptors._vocabulary import VocabularySettings, open_codebook, read_rows, sum_residuals
from resight.types import Descriptors, Features, FloatArray, Role
from resight.vectors import l2_normalise_exact


@dataclass(frozen=True)
class Config(VocabularySettings):
    pass


def build(config: Config) -> "Vlad":
    return Vlad(open_codebook(config, "vlad_256"), config.normalise)


class Vlad:
    def __init__(self, codebook: codebooks.Codebook, normalise: bool = False) -> None:
        self.fingerprint = f"vlad({codebook.fingerprint}{', unit length' if normalise else ''})"
        self._codebook = codebook
        self._normalise = normalise

    def describe(self, features: Features, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        images = [read_rows(features, image, self._normalise) for image in range(len(features.ids))]
        vectors = np.stack([aggregate(rows, self._codebook) for rows in images])
        return Descriptors(features.ids, vectors, np.arange(len(features.ids), dtype=np.int32))


def aggregate(vectors: FloatArray, codebook: codebooks.Codebook) -> FloatArray:
    """Local features [n, D] → VLAD [words · D] float32 of unit length."""
    words, residuals = sum_residuals(vectors, codebook, count=1)
    table = np.zeros_like(codebook.centres)
    table[words] = l2_normalise_exact(residuals, floor=1e-6)
    flat: FloatArray = table.ravel()
    # Not l2_normalise: the norm of one long vector is summed in another order, and stored rows would change.
    return flat / max(float(np.linalg.norm(flat)), 1e-6)

"""What tells the parts of an image from each other: rows minus the mean of their image's rows, L2-normalised.

In: tokens [n, D] of images that have several each. Out: the same rows, centred; a row of an image that has no other
stays as it is. All tokens of a picture of one kind of ground have much in common, and what is left is its form. A row
that equals the mean becomes 0, similar to nothing.
"""

from dataclasses import dataclass, replace

import numpy as np

from resight.encode.transforms.whiten import require_floats
from resight.types import Descriptors, Role
from resight.vectors import l2_normalise


@dataclass(frozen=True)
class Config:
    pass


def build(config: Config) -> "Centre":  # noqa: ARG001 - there is nothing to set
    return Centre()


class Centre:
    fingerprint = "centre()"

    def apply(self, descriptors: Descriptors, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        require_floats(descriptors)
        vectors = np.asarray(descriptors.vectors, np.float32)
        sums = np.zeros((len(descriptors.ids), vectors.shape[1]), np.float32)
        np.add.at(sums, descriptors.owners, vectors)
        counts = np.bincount(descriptors.owners, minlength=len(sums))
        means = np.where(counts[:, None] > 1, sums / np.maximum(counts, 1)[:, None], 0)
        return replace(descriptors, vectors=l2_normalise(vectors - means[descriptors.owners], floor=1e-6))

"""L2 normalisation: vectors of any length in, vectors of length 1 out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray


def l2_normalise(vectors: NDArray[Any], floor: float = 1e-12) -> FloatArray:
    """`vectors` divided by their L2 norm over the last axis, as float32; a vector of zeros stays zero.

    A norm below `floor` counts as `floor`, so that a vector that is zero but for rounding stays small. Its value is
    part of what collections store: do not change it at a call site.
    """
    return np.asarray(l2_normalise_exact(vectors, floor), np.float32)


def l2_normalise_exact(vectors: NDArray[Any], floor: float = 1e-12) -> NDArray[Any]:
    """The same in the dtype of `vectors`, for sums that need float64."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), floor))

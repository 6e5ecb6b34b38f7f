"""The one home of L2 normalisation."""

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray


def l2_normalise(vectors: NDArray[np.floating]) -> FloatArray:
    """Rows of L2 norm 1 as float32, over the last axis; a row of zeros stays zero."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12), np.float32)

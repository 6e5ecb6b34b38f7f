"""The transform of a row before coding: centred, whitened and reduced (PCA), rotated (OPQ).

    y = (x − mean) · matrix, scaled to unit length after whitening

Rows of one network share most of their content and differ little, along few directions; without whitening, codes would
spend their words on the shared part. Whitening with λ^−power, λ being the variance along a direction, gives the
differences more weight.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.types import FloatArray
from resight.vectors import l2_normalise_exact


@dataclass(frozen=True)
class Pretransform:
    mean: FloatArray  # [D]
    matrix: FloatArray | None  # [D, D']; None: the identity
    unit: bool

    @property
    def nbytes(self) -> int:
        """Bytes that it adds to an index; the mean alone is not counted."""
        return 0 if self.matrix is None else self.matrix.nbytes

    def apply(self, rows: FloatArray) -> FloatArray:
        centred = rows - self.mean
        transformed = centred if self.matrix is None else centred @ self.matrix
        if self.unit:
            transformed = l2_normalise_exact(transformed)
        return np.ascontiguousarray(transformed, np.float32)

    def compose(self, rotation: FloatArray) -> "Pretransform":
        """This transform, then a rotation [D', D']."""
        matrix = rotation if self.matrix is None else self.matrix @ rotation
        return Pretransform(self.mean, np.ascontiguousarray(matrix), self.unit)


def identity(dimensions: int) -> Pretransform:
    """The transform that changes nothing; on disk, its matrix is empty."""
    return Pretransform(np.zeros(dimensions, np.float32), None, unit=False)


def learn_whitening(sample: FloatArray, dimensions: int, power: float) -> Pretransform:
    """Learn from rows [n, D]. It keeps at most the dimensions along which the sample varies; if none, the identity."""
    mean = sample.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(np.cov((sample - mean).T)) if len(sample) > 1 else (np.zeros(1), np.eye(1))
    known = int((variances > 1e-9 * max(float(variances[-1]), 1e-30)).sum()) if len(sample) > 1 else 0
    count = min(dimensions, known)
    if count == 0:
        return identity(sample.shape[1])
    best = slice(-1, -count - 1, -1)  # eigh returns the smallest first
    matrix = directions[:, best] * variances[best] ** -power
    return Pretransform(mean.astype(np.float32), np.ascontiguousarray(matrix, np.float32), unit=True)


def save_pretransform(pretransform: Pretransform, folder: Path) -> None:
    np.save(folder / "turn_mean.npy", pretransform.mean)
    np.save(folder / "turn_matrix.npy", np.zeros((0, 0)) if pretransform.matrix is None else pretransform.matrix)
    np.save(folder / "turn_unit.npy", np.array(pretransform.unit))


def load_pretransform(folder: Path) -> Pretransform:
    matrix, unit = np.load(folder / "turn_matrix.npy"), bool(np.load(folder / "turn_unit.npy"))
    return Pretransform(np.load(folder / "turn_mean.npy"), matrix if matrix.size else None, unit)

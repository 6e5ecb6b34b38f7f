"""The transform of a row before it is coded: centred, whitened and reduced (PCA), rotated (OPQ).

    y = (x − mean) · matrix, scaled to unit length if it was whitened

Rows of a network have much in common and differ along few directions, by little: codes would spend their words on what
is common. Whitening with λ^−power, λ being the variance along a direction, gives the differences weight.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.types import FloatArray
from resight.vectors import l2_normalise_exact


@dataclass(frozen=True)
class Turn:
    mean: FloatArray  # [D]
    matrix: FloatArray  # [D, D']
    unit: bool

    def apply(self, rows: FloatArray) -> FloatArray:
        turned = (rows - self.mean) @ self.matrix
        if self.unit:
            turned = l2_normalise_exact(turned)
        return np.ascontiguousarray(turned, np.float32)

    def then(self, rotation: FloatArray) -> "Turn":
        return Turn(self.mean, np.ascontiguousarray(self.matrix @ rotation), self.unit)


def leave(dimensions: int) -> Turn:
    """Rows as they are."""
    return Turn(np.zeros(dimensions, np.float32), np.eye(dimensions, dtype=np.float32), unit=False)


def learn_whitening(sample: FloatArray, dimensions: int, power: float) -> Turn:
    """From rows [n, D]; no more dimensions than the sample tells apart, and rows as they are where that is none."""
    mean = sample.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(np.cov((sample - mean).T)) if len(sample) > 1 else (np.zeros(1), np.eye(1))
    known = int((variances > 1e-9 * max(float(variances[-1]), 1e-30)).sum()) if len(sample) > 1 else 0
    count = min(dimensions, known)
    if count == 0:
        return leave(sample.shape[1])
    best = slice(-1, -count - 1, -1)  # eigh gives the smallest first
    matrix = directions[:, best] * variances[best] ** -power
    return Turn(mean.astype(np.float32), np.ascontiguousarray(matrix, np.float32), unit=True)


def save(turn: Turn, folder: Path) -> None:
    np.save(folder / "turn_mean.npy", turn.mean)
    np.save(folder / "turn_matrix.npy", turn.matrix)
    np.save(folder / "turn_unit.npy", np.array(turn.unit))


def load(folder: Path) -> Turn:
    matrix = np.load(folder / "turn_matrix.npy")
    return Turn(np.load(folder / "turn_mean.npy"), matrix, bool(np.load(folder / "turn_unit.npy")))

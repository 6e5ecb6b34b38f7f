"""Covariances from few samples. In: rows, a block at a time. Out: their moments, and how far to trust them.

A sample covariance S of n rows in D dimensions has eigenvalues that are too large and too small; for n < D some are
zero, and whitening would blow those directions up. It is therefore pulled towards a multiple of the identity:

    S_ρ = (1 - ρ) S + ρ μ I,    μ = tr S / D

The intensity ρ is the larger of two estimates of the best one:

    Ledoit and Wolf (2004)   ρ = ((1/n) Σ ‖x‖⁴ - ‖S‖²) / (n ‖S - μ I‖²)
    OAS (Chen et al. 2010)   ρ = ((1 - 2/D) ‖S‖² + tr² S) / ((n + 1 - 2/D) (‖S‖² - tr² S / D))

with ‖·‖ the Frobenius norm. The first holds for any distribution, but goes to 0 when there are only one or two rows,
whose covariance they seem to explain perfectly; the second goes to 1 there, but takes rows for normally distributed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError

Matrix = NDArray[np.float64]
Blocks = Callable[[], Iterable[NDArray[np.floating]]]  # gives all rows each time that it is called, in parts [b, D]
MOST_DIMENSIONS = 4096  # a [D, D] matrix in float64 is then 128 MiB, and learning holds a few
ROWS_AT_ONCE = 4096  # of many tokens, in float64
SMALLEST = 1e-10  # of the mean eigenvalue: what is below is rounding


@dataclass(frozen=True)
class Moments:
    rows: int
    mean: Matrix  # [D]
    covariance: Matrix  # [D, D], the mean of (x - mean)(x - mean)ᵀ
    fourth: float  # the mean of ‖x - mean‖⁴

    @property
    def shrinkage(self) -> float:
        return choose_intensity(self.covariance, self.fourth, self.rows - 1)


def measure(blocks: Blocks) -> Moments:
    """In two passes, one for the mean: memory holds one block and a [D, D] matrix."""
    rows, total = 0, np.zeros(1)
    for block in blocks():
        rows, total = rows + len(block), total + block.sum(axis=0, dtype=np.float64)
    mean = total / max(rows, 1)
    _check(mean)
    covariance, fourth = measure_about(mean, blocks())
    return Moments(rows, mean, covariance, fourth)


def measure_about(mean: Matrix, blocks: Iterable[NDArray[np.floating]]) -> tuple[Matrix, float]:
    """The means of (x - mean)(x - mean)ᵀ and of ‖x - mean‖⁴."""
    rows, fourth, products = 0, 0.0, np.zeros((len(mean), len(mean)))
    for block in blocks:
        for start in range(0, len(block), ROWS_AT_ONCE):
            centred = block[start : start + ROWS_AT_ONCE] - mean
            products += centred.T @ centred
            fourth += float(((centred**2).sum(axis=1) ** 2).sum())
        rows += len(block)
    return products / max(rows, 1), fourth / max(rows, 1)


def choose_intensity(covariance: Matrix, fourth: float, independent: int) -> float:
    """ρ, from 0 to 1. `independent` is n: fewer than the rows where some follow from others."""
    size, trace, square = len(covariance), float(np.trace(covariance)), float((covariance**2).sum())
    spread = square - trace**2 / size
    if independent < 1 or spread <= 1e-12 * square:  # one dimension, no rows, or round already
        return 1.0
    ledoit_wolf = (fourth - square) / (independent * spread)
    oas = ((1 - 2 / size) * square + trace**2) / ((independent + 1 - 2 / size) * spread)
    return float(np.clip(max(ledoit_wolf, oas), 0, 1))


def shrink(eigenvalues: Matrix, intensity: float) -> Matrix:
    """Eigenvalues [D] of S → those of S_ρ, all above 0."""
    mean = float(eigenvalues.mean())
    if mean <= 0:  # samples without any spread say nothing about a direction
        return np.ones_like(eigenvalues)
    return np.maximum((1 - intensity) * eigenvalues + intensity * mean, SMALLEST * mean)


def _check(mean: Matrix) -> None:
    if len(mean) > MOST_DIMENSIONS:
        raise InputError(
            "the vectors are too long for their covariance",
            expected=f"at most {MOST_DIMENSIONS:,} dimensions",
            actual=f"{len(mean):,}",
            fix="for vlad, a code book with fewer words: `resight codebook PHOTOS --words 32 --out FILE.npz`",
        )
    if not np.isfinite(mean).all():
        raise InputError("not all vectors are finite", expected="numbers", actual="NaN or infinity", fix="leave it out")

"""Shrinkage: covariances from few samples, and how much to shrink them.

`measure`: rows, one block at a time → their moments. A sample covariance S of n rows in D dimensions has eigenvalues
that are too large and too small; for n < D some are zero, and whitening would amplify those directions without limit.
Shrinkage pulls it towards a multiple of the identity:

    S_ρ = (1 - ρ) S + ρ μ I,    μ = tr S / D

The intensity ρ is the larger of two estimates of the best one:

    Ledoit and Wolf (2004)   ρ = ((1/n) Σ ‖x‖⁴ - ‖S‖²) / (n ‖S - μ I‖²)
    OAS (Chen et al. 2010)   ρ = ((1 - 2/D) ‖S‖² + tr² S) / ((n + 1 - 2/D) (‖S‖² - tr² S / D))

with ‖·‖ the Frobenius norm. The first holds for any distribution, but goes to 0 when there are only one or two rows,
whose covariance they seem to explain perfectly; the second goes to 1 there, but assumes normally distributed rows.

`choose_shrinkage`: images, pairs of them that show the same instance → the intensity for the covariance of the
differences of pairs, by cross-validation. Each of FOLDS parts of the pairs is held out once: every image of a held-out
pair searches for its partner among all others, and scores 1 / rank. Pairs that are connected by common images are held
out together, and the images of such a group never count as wrong answers for each other.

The analytic intensity stays unless another, or no whitening at all, is better by SURE standard errors: few pairs cannot
distinguish two intensities by their ranks, and the best of many would be a matter of chance.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.types import FloatArray, IntArray
from resight.vectors import l2_normalise

Matrix = NDArray[np.float64]
Blocks = Callable[[], Iterable[NDArray[np.floating]]]  # each call yields all rows, in parts [b, D]
MOST_DIMENSIONS = 4096  # a [D, D] matrix in float64 is then 128 MiB, and learning holds a few
ROWS_AT_ONCE = 4096  # that are converted to float64 together
SMALLEST = 1e-10  # of the mean eigenvalue: smaller ones are rounding
FOLDS = 5
STRONGER = (0.5, 0.7, 0.8, 0.9, 1.0)  # tried beside the analytic intensity, where they shrink more
FEWEST_GROUPS = 10  # of pairs; fewer give no useful standard error
SURE = 2.0  # standard errors
MOST_QUERIES = 500  # pairs whose images search for each other
QUERIES_AT_ONCE = 256


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
    """Two passes, the first for the mean; memory holds one block and a [D, D] matrix."""
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
    """ρ, from 0 to 1. `independent` is n: less than the number of rows where some follow from others."""
    size, trace, square = len(covariance), float(np.trace(covariance)), float((covariance**2).sum())
    spread = square - trace**2 / size
    if independent < 1 or spread <= 1e-12 * square:  # one dimension, no rows, or isotropic already
        return 1.0
    ledoit_wolf = (fourth - square) / (independent * spread)
    oas = ((1 - 2 / size) * square + trace**2) / ((independent + 1 - 2 / size) * spread)
    return float(np.clip(max(ledoit_wolf, oas), 0, 1))


def shrink(eigenvalues: Matrix, intensity: float) -> Matrix:
    """Eigenvalues [D] of S → those of S_ρ, all above 0."""
    mean = float(eigenvalues.mean())
    if mean <= 0:  # samples without spread favour no direction
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
        raise InputError(
            "not all vectors are finite", expected="numbers", actual="NaN or infinity", fix="leave those images out"
        )


@dataclass(frozen=True)
class Verdict:
    shrinkage: float | None  # None: the vectors are best left unwhitened
    before: float | None = None  # mean of 1 / rank of the partner, unwhitened; None: too few pairs to compare
    after: float | None = None  # the same with the chosen intensity


def choose_shrinkage(
    gallery: FloatArray, pairs: IntArray, mean: Matrix, power: float, generator: np.random.Generator
) -> Verdict:
    """Images [m, D], row numbers of pairs [p, 2] → the intensity, by cross-validation."""
    analytic = measure_pairs(gallery, pairs)[1]
    groups = group_images(pairs, len(gallery))
    group_of_pair = groups[pairs[:, 0]]
    names = np.unique(group_of_pair)
    if len(names) < FEWEST_GROUPS:
        return Verdict(analytic)
    choices = [analytic, *(value for value in STRONGER if value > analytic)]
    fold_of_group = np.empty(groups.max() + 1, np.int64)
    fold_of_group[names] = generator.permutation(len(names)) % FOLDS
    asked = generator.permutation(len(pairs))[:MOST_QUERIES]
    scores = np.zeros((len(choices) + 1, len(asked)))
    for fold in range(FOLDS):
        learnt = pairs[fold_of_group[group_of_pair] != fold]
        held_out = fold_of_group[group_of_pair[asked]] == fold
        scores[:, held_out] = _score_choices(gallery, learnt, pairs[asked[held_out]], groups, mean, choices[1:], power)
    best = _choose(scores, group_of_pair[asked])
    chosen = None if best == len(choices) else choices[best]
    return Verdict(chosen, float(scores[-1].mean()), float(scores[best].mean()))


def measure_pairs(gallery: FloatArray, pairs: IntArray) -> tuple[Matrix, float]:
    """The covariance of the differences of pairs, and the analytic intensity of its shrinkage.

    All differences of k connected images follow from k - 1 of them.
    """
    parts = (pairs[start : start + QUERIES_AT_ONCE] for start in range(0, len(pairs), QUERIES_AT_ONCE))
    differences = (gallery[part[:, 0]].astype(np.float64) - gallery[part[:, 1]] for part in parts)
    covariance, fourth = measure_about(np.zeros(gallery.shape[1]), differences)
    groups = group_images(pairs, len(gallery))
    independent = int((groups >= 0).sum()) - len(np.unique(groups[groups >= 0]))
    return covariance, choose_intensity(covariance, fourth, independent)


def group_images(pairs: IntArray, count: int) -> IntArray:
    """[count]: the group of images that pairs connect, named by its first image; -1: in no pair."""
    first = np.arange(count)

    def find(image: int) -> int:
        while first[image] != image:
            first[image] = first[first[image]]
            image = int(first[image])
        return image

    for a, b in pairs.tolist():
        one, other = find(a), find(b)
        first[max(one, other)] = min(one, other)
    groups = np.full(count, -1, np.int64)
    for image in np.unique(pairs).tolist():
        groups[image] = find(image)
    return groups


def _score_choices(
    gallery: FloatArray,
    learnt: IntArray,
    asked: IntArray,
    groups: IntArray,
    mean: Matrix,
    stronger: Sequence[float],
    power: float,
) -> NDArray[np.float64]:
    """Scores [choices, asked]: with the analytic intensity of the learnt pairs, with each stronger one, unwhitened."""
    covariance, analytic = measure_pairs(gallery, learnt)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    turned = np.asarray((gallery - mean) @ vectors, np.float32)
    scales = [shrink(eigenvalues, value) ** -power for value in (analytic, *stronger)]
    views = [*(l2_normalise(turned * scale.astype(np.float32)) for scale in scales), l2_normalise(gallery)]
    return np.stack(
        [(_score_ranks(view, asked, groups) + _score_ranks(view, asked[:, ::-1], groups)) / 2 for view in views]
    )


def _score_ranks(vectors: FloatArray, asked: IntArray, groups: IntArray) -> NDArray[np.float64]:
    """1 / rank of the second image of each pair when the first one is the query."""
    ranks = [np.zeros(0)]
    for start in range(0, len(asked), QUERIES_AT_ONCE):
        queries, partners = asked[start : start + QUERIES_AT_ONCE].T
        similarities = vectors[queries] @ vectors.T
        wanted = similarities[np.arange(len(queries)), partners]
        better = (similarities > wanted[:, None]) & (groups[None, :] != groups[queries][:, None])
        ranks.append(1.0 + better.sum(axis=1))
    return 1 / np.concatenate(ranks)


def _choose(scores: NDArray[np.float64], groups: IntArray) -> int:
    """The row of scores [choices, asked] to use: the first, unless another is better by SURE standard errors."""
    names, slots = np.unique(groups, return_inverse=True)
    sizes = np.bincount(slots)
    gains = np.stack([np.bincount(slots, row, len(names)) / sizes for row in scores - scores[0]])
    errors = gains.std(axis=1, ddof=1) / np.sqrt(len(names)) if len(names) > 1 else np.full(len(gains), np.inf)
    sure = gains.mean(axis=1) - SURE * errors
    sure[0] = 1e-9  # rounding is no gain
    return int(sure.argmax())

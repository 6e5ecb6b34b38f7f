"""Whether a whitening that was learnt from pairs holds for pairs that it has not seen.

In: images, pairs of them that show the same thing, and intensities of shrinkage. Out: the intensity to use. Pairs are
learnt in FOLDS parts, each tried on the part left out: every image of a pair looks for its partner among all others,
and 1 / rank is its score. Pairs that hang together by a common image are left out together, and the images of such a
group never count as wrong answers for one another.

The analytic intensity stays unless another, or no whitening at all, does better by SURE standard errors. Few pairs
cannot tell two intensities apart by their ranks, and whoever took the best of many each time would follow chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.encode.descriptors.tokens import to_unit_length
from resight.encode.shrinkage import Matrix, choose_intensity, measure_about, shrink
from resight.types import FloatArray, IntArray

FOLDS = 5
STRONGER = (0.5, 0.7, 0.8, 0.9, 1.0)  # tried beside the analytic intensity, where they shrink more than it does
FEWEST = 10  # groups of pairs that a comparison is worth; fewer have no standard error to speak of
SURE = 2.0
MOST_ASKED = 500  # pairs that look for each other
QUERIES_AT_ONCE = 256


@dataclass(frozen=True)
class Verdict:
    shrinkage: float | None  # None: the vectors are best left as they are
    before: float | None = None  # mean of 1 / rank of the partner, as the vectors are; None: too few pairs to tell
    after: float | None = None  # the same with what was chosen


def choose_shrinkage(
    gallery: FloatArray, pairs: IntArray, mean: Matrix, power: float, generator: np.random.Generator
) -> Verdict:
    """Images [m, D], row numbers of pairs [p, 2] → the intensity for the covariance of their differences."""
    analytic = measure_pairs(gallery, pairs)[1]
    groups = group_images(pairs, len(gallery))
    group_of_pair = groups[pairs[:, 0]]
    names = np.unique(group_of_pair)
    if len(names) < FEWEST:
        return Verdict(analytic)
    choices = [analytic, *(value for value in STRONGER if value > analytic)]
    fold_of_group = np.empty(groups.max() + 1, np.int64)
    fold_of_group[names] = generator.permutation(len(names)) % FOLDS
    asked = generator.permutation(len(pairs))[:MOST_ASKED]
    scores = np.zeros((len(choices) + 1, len(asked)))
    for fold in range(FOLDS):
        learnt = pairs[fold_of_group[group_of_pair] != fold]
        held = fold_of_group[group_of_pair[asked]] == fold
        scores[:, held] = _try(gallery, learnt, pairs[asked[held]], groups, mean, choices[1:], power)
    best = _pick(scores, group_of_pair[asked])
    chosen = None if best == len(choices) else choices[best]
    return Verdict(chosen, float(scores[-1].mean()), float(scores[best].mean()))


def measure_pairs(gallery: FloatArray, pairs: IntArray) -> tuple[Matrix, float]:
    """The covariance of the differences of pairs, and the analytic intensity of its shrinkage.

    The differences of k images that hang together all follow from k - 1 of them.
    """
    parts = (pairs[start : start + QUERIES_AT_ONCE] for start in range(0, len(pairs), QUERIES_AT_ONCE))
    differences = (gallery[part[:, 0]].astype(np.float64) - gallery[part[:, 1]] for part in parts)
    covariance, fourth = measure_about(np.zeros(gallery.shape[1]), differences)
    groups = group_images(pairs, len(gallery))
    independent = int((groups >= 0).sum()) - len(np.unique(groups[groups >= 0]))
    return covariance, choose_intensity(covariance, fourth, independent)


def group_images(pairs: IntArray, count: int) -> IntArray:
    """[count]: the group of images that pairs tie together, named by its first image; -1: in no pair."""
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


def _try(
    gallery: FloatArray,
    learnt: IntArray,
    asked: IntArray,
    groups: IntArray,
    mean: Matrix,
    stronger: Sequence[float],
    power: float,
) -> NDArray[np.float64]:
    """Scores [choices, asked]: by the analytic intensity of the learnt pairs, by each stronger one, without any."""
    covariance, analytic = measure_pairs(gallery, learnt)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    turned = np.asarray((gallery - mean) @ vectors, np.float32)
    scales = [shrink(eigenvalues, value) ** -power for value in (analytic, *stronger)]
    views = [*(to_unit_length(turned * scale.astype(np.float32)) for scale in scales), to_unit_length(gallery)]
    return np.stack([(_find(view, asked, groups) + _find(view, asked[:, ::-1], groups)) / 2 for view in views])


def _find(vectors: FloatArray, asked: IntArray, groups: IntArray) -> NDArray[np.float64]:
    """1 / rank of the second image of each pair when the first one asks."""
    ranks = [np.zeros(0)]
    for start in range(0, len(asked), QUERIES_AT_ONCE):
        queries, partners = asked[start : start + QUERIES_AT_ONCE].T
        similarities = vectors[queries] @ vectors.T
        wanted = similarities[np.arange(len(queries)), partners]
        better = (similarities > wanted[:, None]) & (groups[None, :] != groups[queries][:, None])
        ranks.append(1.0 + better.sum(axis=1))
    return 1 / np.concatenate(ranks)


def _pick(scores: NDArray[np.float64], groups: IntArray) -> int:
    """The row of scores [choices, asked] to use: the first, unless another is better beyond doubt."""
    names, slots = np.unique(groups, return_inverse=True)
    sizes = np.bincount(slots)
    gains = np.stack([np.bincount(slots, row, len(names)) / sizes for row in scores - scores[0]])
    errors = gains.std(axis=1, ddof=1) / np.sqrt(len(names)) if len(names) > 1 else np.full(len(gains), np.inf)
    sure = gains.mean(axis=1) - SURE * errors
    sure[0] = 1e-9  # rounding is no gain
    return int(sure.argmax())

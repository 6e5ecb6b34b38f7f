"""Models of how matched key points of two images lie to each other: matches in, the fitted model and its support out.

    similarity    from each single match, whose key points give shift, scale and rotation; refined to an affinity.
                  Loose tolerances: it holds in scenes with depth, and needs no random trials. Learnt key points have
                  no size and angle: two matches give a similarity then
    homography    MAGSAC, refused if no camera makes it; for flat objects and far views
    fundamental   MAGSAC on point-to-line distances; for scenes with depth

Every fit keeps the matches whose size and angle, if known, change as the model says. `choose` compares fits by their
significance (a_contrario.py). J. Philbin et al., Object retrieval with large vocabularies and fast spatial matching,
2007; D. Barath et al., MAGSAC++, 2020.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.kernels import dispatch
from resight.search.a_contrario import Extent, measure
from resight.search.homography_checks import Matrix, agree_in_shape, is_plausible, map_points
from resight.types import Box, FloatArray

ModelName = Literal["similarity", "homography", "fundamental"]
SAMPLE = {"similarity": 1, "pair": 2, "affinity": 3, "homography": 4, "fundamental": 7}  # matches that define one
FEWEST = {"similarity": 4, "homography": 5, "fundamental": 9}  # matches that a fit needs
LARGEST_SCALE, LARGEST_ANGLE = 2.0, 35.0  # by which a match may differ from the model
SHAPE = 0.1  # share of sizes and angles that agree by chance: 70 of 360 degrees, and half of the usual sizes
LINE_SHAPE = 0.18  # the same for the fundamental matrix: 90 of 360 degrees, and more sizes
LINE_SCALE, LINE_ANGLE = 2.5, 45.0
HYPOTHESES = 100  # best matches that are tried as similarities
PAIRS = 500  # best pairs of matches that are tried as similarities, where key points have no size and angle
APART = 0.05  # least distance of a pair, of the side that the query's matches span
MOST_SCALE = 8.0  # by which a pair may grow or shrink
MOST_STRETCH = 4.0  # of an affinity: its larger singular value in units of the smaller
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Fit:
    model: ModelName
    transform: Matrix  # [3, 3] query → image, or the fundamental matrix
    inliers: Mask  # [n] of the matches
    significance: float  # −log10 of the number of such models to expect by chance; below 0: nothing


def choose(fits: Iterable[Fit | None]) -> Fit | None:
    """The most significant fit; of equals the first."""
    return max((fit for fit in fits if fit is not None), key=lambda fit: fit.significance, default=None)


def fit_similarity(query: FloatArray, image: FloatArray, extent: Extent) -> Fit | None:
    """Key points [n, 4] of query and image, best matches first."""
    kept = _distinct(query, image)
    if len(kept) < FEWEST["similarity"]:
        return None
    query_kept, image_kept = query[kept], image[kept]
    if extent.shaped:
        guesses, sample = _similarities(query_kept[:HYPOTHESES], image_kept[:HYPOTHESES]), SAMPLE["similarity"]
    else:
        guesses, sample = _similarities_of_pairs(query_kept, image_kept), SAMPLE["pair"]
    if len(guesses) == 0:
        return None
    counts = _count_support(guesses, query_kept, image_kept, extent.radii)
    values = measure(counts, len(kept), sample, len(kept), extent.around_point(SHAPE))
    best, level = np.unravel_index(int(values.argmax()), values.shape)
    (errors,) = _all_errors(guesses[best][None], query_kept, image_kept)
    fit = Fit("similarity", guesses[best], errors < extent.radii[level], float(values[best, level]))
    fit = _refine(_refine(fit, query_kept, image_kept, extent), query_kept, image_kept, extent)
    inliers = np.zeros(len(query), bool)
    inliers[kept[fit.inliers]] = True
    return replace(fit, inliers=inliers)


def fit_homography(
    query: FloatArray, image: FloatArray, outline: Box, extent: Extent, tolerance: float, iterations: int
) -> Fit | None:
    if len(query) < FEWEST["homography"]:
        return None
    transform, mask = cv2.findHomography(
        query[:, :2], image[:, :2], cv2.USAC_MAGSAC, tolerance, None, iterations, 0.999
    )
    if transform is None or not is_plausible(transform, outline):
        return None
    inliers = mask.ravel().astype(bool)
    inliers[inliers] = agree_in_shape(transform, query[inliers], image[inliers])
    if inliers.sum() < FEWEST["homography"]:
        return None
    refined, _ = cv2.findHomography(query[inliers, :2], image[inliers, :2], 0)
    if refined is not None and is_plausible(refined, outline):
        transform = refined
    errors = _errors(transform, query, image)
    return Fit("homography", transform, inliers, _significance(errors, "homography", query, image, extent))


def fit_fundamental(
    query: FloatArray, image: FloatArray, extent: Extent, tolerance: float, iterations: int
) -> Fit | None:
    """Twice the iterations of the homography: seven points are all inliers less often than four."""
    if len(query) < FEWEST["fundamental"]:
        return None
    try:
        transform, mask = cv2.findFundamentalMat(
            query[:, :2], image[:, :2], cv2.USAC_MAGSAC, tolerance / 2, 0.999, 2 * iterations
        )
    except cv2.error:  # OpenCV 5 fails on some degenerate samples
        return None
    if transform is None or transform.shape != (3, 3) or mask is None:
        return None
    inliers = mask.ravel().astype(bool)
    if not inliers.any():
        return None
    agree = _agree_with_each_other(query, image, inliers) if extent.shaped else np.ones(len(query), bool)
    inliers &= agree
    if inliers.sum() < FEWEST["fundamental"]:
        return None
    errors = np.where(agree, _line_distances(transform, query, image), np.inf)
    return Fit("fundamental", transform, inliers, _significance(errors, "fundamental", query, image, extent))


def _agree_with_each_other(query: FloatArray, image: FloatArray, inliers: Mask) -> Mask:
    """Whether size and angle change about as for the usual inlier: a fundamental matrix has no Jacobian."""
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.log(image[:, 2] / query[:, 2])
    turn = np.radians(image[:, 3] - query[:, 3])
    usual = np.arctan2(np.sin(turn[inliers]).mean(), np.cos(turn[inliers]).mean())  # a mean on the circle
    agree = np.abs(growth - np.median(growth[inliers])) <= np.log(LINE_SCALE)
    return np.asarray(agree & (np.cos(turn - usual) >= np.cos(np.radians(LINE_ANGLE))))


def _refine(fit: Fit, query: FloatArray, image: FloatArray, extent: Extent) -> Fit:
    """An affinity through the inliers, if it explains more."""
    if fit.inliers.sum() <= SAMPLE["affinity"]:
        return fit
    known = np.column_stack([query[fit.inliers, :2], np.ones(fit.inliers.sum())]).astype(np.float64)
    solved, *_ = np.linalg.lstsq(known, image[fit.inliers, :2].astype(np.float64), rcond=None)
    transform = np.vstack([solved.T, [0, 0, 1]])
    stretches = np.linalg.svd(transform[:2, :2], compute_uv=False)
    if np.linalg.det(transform[:2, :2]) <= 1e-6 or stretches[0] > MOST_STRETCH * stretches[1]:
        return fit
    errors = _errors(transform, query, image)
    counts = (errors < extent.radii[:, None]).sum(axis=1)
    values = measure(counts, len(query), SAMPLE["affinity"], len(query), extent.around_point(SHAPE))
    level = int(values.argmax())
    if values[level] <= fit.significance:
        return fit
    return Fit(fit.model, transform, errors < extent.radii[level], float(values[level]))


def _significance(errors: Matrix, model: ModelName, query: FloatArray, image: FloatArray, extent: Extent) -> float:
    """Of distinct matches alone, since ten matches at one point are one piece of evidence."""
    kept = _distinct(query, image)
    counts = (errors[kept] < extent.radii[:, None]).sum(axis=1)
    log_alpha = extent.along_line(LINE_SHAPE) if model == "fundamental" else extent.around_point(SHAPE)
    return float(measure(counts, len(kept), SAMPLE[model], len(kept), log_alpha).max())


def _distinct(query: FloatArray, image: FloatArray, cell: float = 3.0) -> NDArray[np.intp]:
    """The first match at each spot of either image."""
    kept = np.arange(len(query))
    for points in (query, image):
        _, first = np.unique(number_cells(points[kept, :2], cell), return_index=True)
        kept = kept[np.sort(first)]
    return kept


def number_cells(points: FloatArray, cell: float) -> NDArray[np.int64]:
    """One number per cell of a grid for points [n, 2]: quicker to compare than pairs of coordinates."""
    cells = np.round(points / cell).astype(np.int64)
    return np.asarray(cells[:, 0] * 2**32 + cells[:, 1])


def _similarities(query: FloatArray, image: FloatArray) -> Matrix:
    """The similarity [n, 3, 3] that each match alone gives."""
    scale = image[:, 2] / np.maximum(query[:, 2], 1e-6)
    return _through(scale * np.exp(1j * np.radians(image[:, 3] - query[:, 3])), query, image)


def _similarities_of_pairs(query: FloatArray, image: FloatArray) -> Matrix:
    """The similarities [n, 3, 3] of the best pairs of matches, without near pairs and extreme changes of size."""
    count = min(len(query), int(2 * PAIRS**0.5) + 1)
    first, second = np.triu_indices(count, 1)
    best = np.argsort(first + second, kind="stable")
    first, second = first[best], second[best]
    steps = [(ends[second, :2] - ends[first, :2]).astype(np.float64) @ (1, 1j) for ends in (query, image)]
    apart = np.abs(steps[0]) > APART * np.ptp(query[:, :2], axis=0).max()
    ratio = steps[1] / np.where(apart, steps[0], 1)
    chosen = np.flatnonzero(apart & (np.abs(ratio) < MOST_SCALE) & (np.abs(ratio) > 1 / MOST_SCALE))[:PAIRS]
    return _through(ratio[chosen], query[first[chosen]], image[first[chosen]])


def _through(factors: NDArray[np.complex128], query: FloatArray, image: FloatArray) -> Matrix:
    """The similarities [n, 3, 3] that turn and scale by a complex factor and map a query point to its match."""
    transforms = np.zeros((len(query), 3, 3))
    transforms[:, 0, 0] = transforms[:, 1, 1] = factors.real
    transforms[:, 1, 0] = factors.imag
    transforms[:, 0, 1] = -factors.imag
    transforms[:, :2, 2] = image[:, :2] - np.einsum("nij,nj->ni", transforms[:, :2, :2], query[:, :2])
    transforms[:, 2, 2] = 1
    return transforms


def _count_support(transforms: Matrix, query: FloatArray, image: FloatArray, radii: Matrix) -> NDArray[np.int32]:
    """How many matches each of h similarities maps nearer than each radius [h, radii]."""
    kernel = getattr(dispatch.native(), "count_support", None)  # compiled kernels of an earlier build lack it
    if kernel is None:
        errors = _all_errors(transforms, query, image)
        return np.stack([(errors < radius).sum(axis=1, dtype=np.int32) for radius in radii], axis=1)
    growth, turn = _change(query, image)
    matches = np.full((6, -(-len(query) // 4) * 4), np.inf)  # an infinite distance is near nothing
    matches[:, : len(query)] = *query[:, :2].T, *image[:, :2].T, growth, turn
    models = np.column_stack(
        [transforms[:, 0, 0], transforms[:, 1, 0], transforms[:, :2, 2], *_scale_and_turn(transforms)]
    )
    counts = np.empty((len(transforms), len(radii)), np.int32)
    kernel(matches, float(np.log(LARGEST_SCALE)), LARGEST_ANGLE, np.ascontiguousarray(models), radii, counts)
    return counts


def _all_errors(transforms: Matrix, query: FloatArray, image: FloatArray) -> Matrix:
    """Distances [h, n] of n matches from h similarities; infinite where size or angle disagree."""
    mapped = np.einsum("hij,nj->hni", transforms[:, :2, :2], query[:, :2]) + transforms[:, None, :2, 2]
    errors = np.hypot(mapped[..., 0] - image[:, 0], mapped[..., 1] - image[:, 1])
    growth, turn = _change(query, image)
    scales, turns = _scale_and_turn(transforms)
    apart = np.abs(growth - scales[:, None]) > np.log(LARGEST_SCALE)
    apart |= np.abs((turn - turns[:, None] + 180) % 360 - 180) > LARGEST_ANGLE
    return np.where(apart, np.inf, errors)


def _change(query: FloatArray, image: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By how much size (log) and angle (degrees) of key points change."""
    growth = np.log(np.maximum(image[:, 2], 1e-6) / np.maximum(query[:, 2], 1e-6))
    return growth, image[:, 3] - query[:, 3]


def _scale_and_turn(transforms: Matrix) -> tuple[Matrix, Matrix]:
    """log of scale, and rotation in degrees, of similarities."""
    real, imaginary = transforms[:, 0, 0], transforms[:, 1, 0]
    return np.log(np.hypot(real, imaginary)), np.degrees(np.arctan2(imaginary, real))


def _errors(transform: Matrix, query: FloatArray, image: FloatArray) -> Matrix:
    """Distances [n] from a homography; infinite where size or angle disagree."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        distances = np.linalg.norm(map_points(transform, query[:, :2]) - image[:, :2], axis=1)
        agree = agree_in_shape(transform, query, image, LARGEST_SCALE, LARGEST_ANGLE)
    return np.where(agree & np.isfinite(distances), distances, np.inf)


def _line_distances(transform: Matrix, query: FloatArray, image: FloatArray) -> Matrix:
    lines = np.column_stack([query[:, :2], np.ones(len(query))]) @ transform.T
    ends = np.column_stack([image[:, :2], np.ones(len(image))])
    return np.asarray(np.abs((lines * ends).sum(axis=1)) / np.maximum(np.hypot(lines[:, 0], lines[:, 1]), 1e-12))

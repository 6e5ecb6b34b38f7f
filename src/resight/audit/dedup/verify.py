"""Verify candidate pairs by key points, and align the two pictures to measure how well they agree.

In: candidates. Out: Findings with signals (inliers, agreement, perspective), batch by batch. Pictures with too few key
points are compared whole, in the best of four rotations.

Registration: one thumbnail is warped onto the other by the verified transform; `agreement` is the share of windows with
contrast whose grey values correlate. It separates near copies from other pictures of the same instance.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.audit.dedup.branches import Branches, read_local
from resight.audit.dedup.candidates import Candidates
from resight.audit.dedup.dct_signature import mirror_features
from resight.audit.dedup.grey_thumbnails import SIDE, Side
from resight.search.homography_checks import corners, map_points
from resight.search.matchers import LocalFeatures
from resight.search.verification import Settings, verify
from resight.types import Box, Match

Matrix = NDArray[np.float64]
Grey = NDArray[np.uint8]
WINDOW = 11  # pixels of a thumbnail
CORRELATED = 0.6  # correlation from which a window agrees
FEWEST = 60  # windows: a smaller overlap is no evidence
SMOOTHED = 1.0  # pixels: a transform is off by a fraction of one
FLAT = 3.0  # a window with a smaller standard deviation of grey levels is blank


@dataclass(frozen=True)
class Registration:
    agreement: float  # 0 to 1; 0 also if the pictures share too little
    share_a: float  # share of the first picture's area that the second shows
    share_b: float
    region_a: Box  # the part of the first that the second shows, in fractions of its sides: 0, 0, 1, 1 is all of it
    region_b: Box


def register(a: Grey, b: Grey, onto: Matrix) -> Registration:
    """`onto` maps pixels of the first thumbnail [side, side] to the second's."""
    side = a.shape[0]
    back: Matrix = np.asarray(np.linalg.inv(onto), np.float64)
    edges = corners((-0.5, -0.5, side - 0.5, side - 0.5))
    regions = _bound(map_points(back, edges), side), _bound(map_points(onto, edges), side)
    there, here = _cover(back, side), _cover(onto, side)
    # Compare in the picture where the shared part has fewer pixels: the finer one can be reduced, not the reverse.
    if there.sum() <= here.sum():
        agreement = _agree(_smooth(a), _warp(b, back), there)
    else:
        agreement = _agree(_smooth(b), _warp(a, onto), here)
    return Registration(agreement, float(there.mean()), float(here.mean()), *regions)


def reduce_transform(transform: Matrix, outlines: tuple[Box, Box], side: int) -> Matrix:
    """A transform between pixels of two originals, converted for thumbnails of the `outlines`."""
    return _stretch(outlines[1], side) @ transform @ np.linalg.inv(_stretch(outlines[0], side))


def turn_whole(quarters: int, side: int) -> Matrix:
    """The transform that turns a thumbnail about its middle by quarter turns."""
    turn = np.linalg.matrix_power(np.array([[0.0, -1.0], [1.0, 0.0]]), quarters)
    middle = np.full(2, (side - 1) / 2)
    return np.vstack([np.column_stack([turn, middle - turn @ middle]), [0, 0, 1]])


def _agree(first: NDArray[np.float32], second: NDArray[np.float32], shared: NDArray[np.bool_]) -> float:
    """The share of windows that correlate, among those inside the shared part that are not blank."""

    def average(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(cv2.blur(values, (WINDOW, WINDOW)), np.float32)

    means = average(first), average(second)
    variances = average(first**2) - means[0] ** 2, average(second**2) - means[1] ** 2
    covariance = average(first * second) - means[0] * means[1]
    inside = cv2.erode(shared.astype(np.uint8), np.ones((WINDOW, WINDOW), np.uint8), borderValue=0) > 0
    shown = inside & ((variances[0] > FLAT**2) | (variances[1] > FLAT**2))
    if shown.sum() < FEWEST:
        return 0.0
    correlation = covariance / np.sqrt(np.maximum(variances[0] * variances[1], 1e-6))
    return float((correlation[shown] > CORRELATED).mean())


def _warp(picture: Grey, transform: Matrix) -> NDArray[np.float32]:
    """Warp the picture, blurred first according to its reduction."""
    scale = float(np.sqrt(abs(np.linalg.det(transform[:2, :2]))))
    blurred = cv2.GaussianBlur(picture, (0, 0), 0.5 / max(scale, 0.05)) if scale < 0.9 else picture
    return _smooth(cv2.warpPerspective(blurred, transform, picture.shape[::-1], flags=cv2.INTER_LINEAR))


def _cover(transform: Matrix, side: int) -> NDArray[np.bool_]:
    """Which pixels a whole thumbnail covers after the transform."""
    whole = np.full((side, side), 255, np.uint8)
    return np.asarray(cv2.warpPerspective(whole, transform, (side, side), borderMode=cv2.BORDER_CONSTANT) > 127)


def _smooth(picture: Grey) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(picture.astype(np.float32), (0, 0), SMOOTHED), np.float32)


def _stretch(outline: Box, side: int) -> Matrix:
    """Pixels of the original → of the thumbnail; whole numbers are the middles of pixels in both."""
    x0, y0, x1, y1 = outline
    across, down = side / (x1 - x0), side / (y1 - y0)
    left, top = across * (0.5 - x0) - 0.5, down * (0.5 - y0) - 0.5
    return np.array([[across, 0, left], [0, down, top], [0, 0, 1]], np.float64)


def _bound(points: Matrix, side: int) -> Box:
    x0, y0 = np.clip((points.min(axis=0) + 0.5) / side, 0, 1).tolist()
    x1, y1 = np.clip((points.max(axis=0) + 0.5) / side, 0, 1).tolist()
    return x0, y0, x1, y1


BATCH = 128  # pairs
LEAST_WHOLE = 0.6  # least agreement of whole pictures for a finding
FEW = 30  # key points; with more, two equal pictures always have a model


@dataclass(frozen=True)
class Finding:
    """The evidence for a pair: rows of the two sides, and signals."""

    a: int
    b: int
    mirrored: bool
    inliers: int  # 0: compared by shades only
    tentative: int
    perspective: float  # change of scale across the picture; 1: none
    registration: Registration


def examine(
    one: Side, two: Side, candidates: Candidates, branches: Branches, done: int = 0
) -> Iterator[tuple[int, list[Finding]]]:
    """Yield the findings of each batch, with the number of candidates processed so far.

    `done` is the number of candidates to skip. A pair that is a candidate plain and mirrored may be found twice.
    """
    for start in range(done, len(candidates.rows), BATCH):
        part = slice(start, start + BATCH)
        found = list(_examine_some(one, two, candidates.rows[part], candidates.mirrored[part], branches))
        yield min(start + BATCH, len(candidates.rows)), found


def _examine_some(
    one: Side, two: Side, rows: NDArray[np.int32], mirrored: NDArray[np.bool_], branches: Branches
) -> Iterator[Finding]:
    firsts, seconds = _read(one, rows[:, 0], branches), _read(two, rows[:, 1], branches)
    for (a, b), turned in zip(rows.tolist(), mirrored.tolist(), strict=True):
        found, first, second = None, firsts.get(one.ids[a]), seconds.get(two.ids[b])
        if first and second and (branches.mirrors or not turned):
            found = examine_pair(one, two, (a, b), (first, second), turned)
        if found is None and (first is None or second is None or min(len(first.points), len(second.points)) < FEW):
            found = align_whole(one, two, (a, b), turned)
        if found is not None:
            yield found


def examine_pair(
    one: Side, two: Side, rows: tuple[int, int], features: tuple[LocalFeatures, LocalFeatures], mirrored: bool
) -> Finding | None:
    """Compare two images by key points; None if no plausible model explains them."""
    (a, b), (first, second) = rows, features
    outline = one.outlines[a]
    match = verify(mirror_features(first, outline) if mirrored else first, second, outline, Settings())
    if match is None:
        return None
    onto = reduce_transform(match.transform, (outline, two.outlines[b]), SIDE)
    laid = _register(one, two, rows, mirrored, onto)
    return Finding(a, b, mirrored, match.inliers, match.tentative, measure_perspective(match, outline), laid)


def align_whole(one: Side, two: Side, rows: tuple[int, int], mirrored: bool) -> Finding | None:
    """Compare two images by shades: one whole picture on the other, in the best of four rotations."""
    a, b = rows
    if one.thumbnails.flat[a] or two.thumbnails.flat[b]:
        return None
    found = [_register(one, two, rows, mirrored, turn_whole(quarters, SIDE)) for quarters in range(4)]
    best = max(found, key=lambda laid: laid.agreement)
    return Finding(a, b, mirrored, 0, 0, 1.0, best) if best.agreement >= LEAST_WHOLE else None


def measure_perspective(match: Match, outline: Box) -> float:
    """Depth of the outline's farthest corner divided by that of its nearest: 1 without foreshortening."""
    x0, y0, x1, y1 = outline
    depths = np.abs(np.array([[x, y, 1.0] for x in (x0, x1) for y in (y0, y1)]) @ match.transform[2])
    return float(depths.max() / max(depths.min(), 1e-12))


def _read(side: Side, rows: NDArray[np.int32], branches: Branches) -> dict[str, LocalFeatures]:
    wanted = [side.ids[row] for row in np.unique(rows)]
    return {} if branches.local is None else read_local(side.source, branches.local, wanted)


def _register(one: Side, two: Side, rows: tuple[int, int], mirrored: bool, onto: Matrix) -> Registration:
    """`onto` maps from the mirrored picture if `mirrored`; the region is in the unmirrored one."""
    first, second = one.thumbnails.grey[rows[0]], two.thumbnails.grey[rows[1]]
    laid = register(np.ascontiguousarray(first[:, ::-1]) if mirrored else first, second, onto)
    x0, y0, x1, y1 = laid.region_a
    return replace(laid, region_a=(1 - x1, y0, 1 - x0, y1)) if mirrored else laid

"""Does a pair of candidates show the same thing, and is it the same picture? Candidates in, Findings out.

Key points are verified by geometry, as in a search; where the second may be a mirror image, those of the first are
mirrored. Then one picture is laid on the other. Pictures with too few key points are laid on each other whole, in each
position that their shades allow. Probability and kind come from what was found (judging.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resight.audit.branches import Branches, read_local
from resight.audit.candidates import Candidates
from resight.audit.mirror import mirror_features
from resight.audit.registration import Registration, reduce_transform, register, turn_whole
from resight.audit.side import Side
from resight.audit.thumbnails import SIDE
from resight.search.verification import LocalFeatures, Settings, verify
from resight.types import Box, Match

AT_ONCE = 128  # pairs whose key points are read together
LEAST_WHOLE = 0.6  # agreement of pictures laid on each other whole: with less, nothing is said
FEW = 30  # key points: with more of them, two pictures that are the same have a model
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """What speaks for a pair: rows of the two sides, and signals."""

    a: int
    b: int
    mirrored: bool
    inliers: int  # 0: by their shades alone
    tentative: int
    perspective: float  # how much the scale changes across the picture; 1: not at all
    registration: Registration


def examine(
    one: Side, two: Side, candidates: Candidates, branches: Branches, done: int = 0
) -> Iterator[tuple[int, list[Finding]]]:
    """Candidates for which anything speaks, a batch at a time, each with the number of candidates dealt with by then.

    `done`: how many of the first to leave out. A pair that is a candidate as it is and mirrored may be found twice.
    """
    for start in range(done, len(candidates.rows), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        found = list(_examine_some(one, two, candidates.rows[part], candidates.mirrored[part], branches))
        yield min(start + AT_ONCE, len(candidates.rows)), found


def _examine_some(
    one: Side, two: Side, rows: NDArray[np.int32], mirrored: NDArray[np.bool_], branches: Branches
) -> Iterator[Finding]:
    firsts, seconds = _read(one, rows[:, 0], branches), _read(two, rows[:, 1], branches)
    for (a, b), turned in zip(rows.tolist(), mirrored.tolist(), strict=True):
        found, first, second = None, firsts.get(one.ids[a]), seconds.get(two.ids[b])
        if first and second and (branches.mirrors or not turned):
            found = examine_pair(one, two, (a, b), (first, second), turned)
        if found is None and (first is None or second is None or min(len(first.points), len(second.points)) < FEW):
            found = lay_whole(one, two, (a, b), turned)
        if found is not None:
            yield found


def examine_pair(
    one: Side, two: Side, rows: tuple[int, int], features: tuple[LocalFeatures, LocalFeatures], mirrored: bool
) -> Finding | None:
    """By key points; None where no believable model explains them."""
    (a, b), (first, second) = rows, features
    outline = one.outlines[a]
    match = verify(mirror_features(first, outline) if mirrored else first, second, outline, Settings())
    if match is None:
        return None
    onto = reduce_transform(match.transform, (outline, two.outlines[b]), SIDE)
    laid = _register(one, two, rows, mirrored, onto)
    return Finding(a, b, mirrored, match.inliers, match.tentative, measure_perspective(match, outline), laid)


def lay_whole(one: Side, two: Side, rows: tuple[int, int], mirrored: bool) -> Finding | None:
    """By shades: the whole of one on the whole of the other, in the best of four positions."""
    a, b = rows
    if one.thumbnails.flat[a] or two.thumbnails.flat[b]:
        return None
    found = [_register(one, two, rows, mirrored, turn_whole(quarters, SIDE)) for quarters in range(4)]
    best = max(found, key=lambda laid: laid.agreement)
    return Finding(a, b, mirrored, 0, 0, 1.0, best) if best.agreement >= LEAST_WHOLE else None


def measure_perspective(match: Match, outline: Box) -> float:
    """The depth of the outline's farthest corner by that of its nearest: 1 where nothing is foreshortened."""
    x0, y0, x1, y1 = outline
    depths = np.abs(np.array([[x, y, 1.0] for x in (x0, x1) for y in (y0, y1)]) @ match.transform[2])
    return float(depths.max() / max(depths.min(), 1e-12))


def _read(side: Side, rows: NDArray[np.int32], branches: Branches) -> dict[str, LocalFeatures]:
    wanted = [side.ids[row] for row in np.unique(rows)]
    return {} if branches.local is None else read_local(side.source, branches.local, wanted)


def _register(one: Side, two: Side, rows: tuple[int, int], mirrored: bool, onto: Matrix) -> Registration:
    """`onto` leads from the mirrored picture where that is asked for; the region is that of the picture itself."""
    first, second = one.thumbnails.grey[rows[0]], two.thumbnails.grey[rows[1]]
    laid = register(np.ascontiguousarray(first[:, ::-1]) if mirrored else first, second, onto)
    x0, y0, x1, y1 = laid.region_a
    return replace(laid, region_a=(1 - x1, y0, 1 - x0, y1)) if mirrored else laid

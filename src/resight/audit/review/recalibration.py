"""Why two stored images are a pair: their key points, matched and verified again from what the collections hold.

In: two collections and an id of each. Out: a Match from the first to the second, or None where no believable model
explains the key points, where a recipe has none, or where they are of two kinds. Nothing is decoded or encoded.

What votes say about the machine's probabilities. In: probabilities and votes. Out: a correction, and its worth.

Platt's correction: log-odds' = scale · log-odds + shift. It minimises the log loss over the pairs that were voted on
plus STRENGTH/2 · (size² · (scale - 1)² + shift²), so that a few votes hardly move it and many decide. `size` is the
root mean square of the log-odds that were voted on: what the scale takes away there costs as much as the same shift.
The scale is LEAST_SCALE at least, so that votes never erase what the machine knows. A pair counts once: its target is
the share of `same` among its votes for same or different. Its worth is the mean log loss before and after, each pair
judged by a correction that was fitted without it (FOLDS parts). It is true of pairs such as those that were voted on:
where the uncertain ones came first, it says little of the others.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.audit.dedup.branches import choose_branches, read_local
from resight.audit.dedup.dct_signature import mirror_features
from resight.audit.dedup.grey_thumbnails import outline_of
from resight.audit.dedup.pairs import Pair
from resight.audit.review.votes import Vote
from resight.collection import Collection
from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.search.calibration import Calibration
from resight.search.verification import Settings, verify
from resight.types import Box, Match


def match_stored(one: Collection, a: str, two: Collection, b: str) -> Match | None:
    """Where the pictures do not match as they are, one of them may be mirrored."""
    first, second = choose_branches(one.recipe), choose_branches(two.recipe)
    if first.local is None or second.local is None:
        return None
    if one.description.spaces[first.local] != two.description.spaces[second.local]:
        return None
    (record,) = one.records([a])
    outline = outline_of(record)
    features, others = read_local(one, first.local, [a])[a], read_local(two, second.local, [b])[b]
    match = verify(features, others, outline, Settings())
    if match is None and first.mirrors:
        mirrored = verify(mirror_features(features, outline), others, outline, Settings())
        match = _undo_mirror(mirrored, outline) if mirrored else None
    return match


def _undo_mirror(match: Match, outline: Box) -> Match:
    """The match in the coordinates of the first image as it is."""
    across = outline[0] + outline[2]
    mirror = np.array([[-1.0, 0.0, across], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    points = match.points.copy()
    points[:, 0] = across - points[:, 0]
    return replace(match, transform=match.transform @ mirror, points=points)


CORRECTION = "correction.json"  # in the folder of a review
STRENGTH = 4.0  # worth about sixteen pairs at even odds
NUMBERS = ("scale", "shift", "same", "before", "after")
LEAST_SCALE = 0.1
FOLDS = 5
FEWEST = 10
SURE = 1e-4  # probabilities are kept this far from 0 and 1: a vote against a certainty would otherwise outweigh all


@dataclass(frozen=True)
class Correction:
    scale: float
    shift: float
    pairs: int
    same: float  # of which show the same thing; a half where votes are even
    before: float  # mean log loss of the probabilities as they were
    after: float  # and of the corrected ones, each pair by the others

    def correct(self, probability: float) -> float:
        return float(_squash(self.scale * _logit(np.array([probability])) + self.shift)[0])


def fit_correction(pairs: Iterable[Pair], votes: Iterable[Vote]) -> Correction:
    shares = share_of_same(votes)
    judged = [(pair.probability, shares[pair.a, pair.b]) for pair in pairs if (pair.a, pair.b) in shares]
    if len(judged) < FEWEST:
        raise InputError(
            "too few votes to correct the probabilities by",
            expected=f"{FEWEST} pairs with a vote for same or different",
            actual=str(len(judged)),
            fix="vote on more pairs",
        )
    odds = _logit(np.array([probability for probability, _ in judged]))
    size = max(float(np.sqrt((odds**2).mean())), 1.0)  # at even odds the scale means nothing: it stays where it is
    targets = np.array([share for _, share in judged])
    scale, shift = _fit(odds, targets, size)
    corrected = np.zeros(len(odds))
    folds = np.arange(len(odds)) % FOLDS
    for fold in range(FOLDS):
        out = folds == fold
        own_scale, own_shift = _fit(odds[~out], targets[~out], size)
        corrected[out] = own_scale * odds[out] + own_shift
    before, after = _log_loss(odds, targets), _log_loss(corrected, targets)
    return Correction(scale, shift, len(judged), float(targets.sum()), before, after)


def share_of_same(votes: Iterable[Vote]) -> Mapping[tuple[str, str], float]:
    """Of every pair that somebody called same or different: the share that called it same."""
    ballots: dict[tuple[str, str], list[float]] = {}
    for vote in votes:
        if vote.verdict in ("same", "different"):
            ballots.setdefault((vote.a, vote.b), []).append(float(vote.verdict == "same"))
    return {pair: sum(ballot) / len(ballot) for pair, ballot in ballots.items()}


def correct_calibration(calibration: Calibration, correction: Correction) -> Calibration:
    """A search's calibration with the correction in it: bias and weights are log-odds, so that they are only scaled."""
    return Calibration(
        correction.scale * calibration.bias + correction.shift,
        {name: correction.scale * weight for name, weight in calibration.weights.items()},
        calibration.pairs + correction.pairs,
        calibration.same + round(correction.same),
        calibration.spaces,
    )


def require_both_verdicts(correction: Correction) -> None:
    """For what is to last: votes of one kind say that the machine is too sure or not sure enough, but not of what."""
    if correction.same in (0, correction.pairs):
        raise InputError(
            "all votes are alike, which is too little to calibrate by",
            expected="pairs that were called the same and pairs that were called different",
            actual=f"{correction.pairs:,} pairs, all {'the same' if correction.same else 'different'}",
            fix="vote on more pairs",
        )


def save(correction: Correction, path: Path) -> None:
    with write_atomic(path) as temporary:
        temporary.write_text(json.dumps(asdict(correction), indent=1) + "\n", encoding="utf-8")


def load_correction(path: Path) -> Correction | None:
    """What `save` wrote; None where there is no such file."""
    if not path.exists():
        return None
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
        scale, shift, same, before, after = (float(numbers[name]) for name in NUMBERS)
        correction = Correction(scale, shift, int(numbers["pairs"]), same, before, after)
        if not (math.isfinite(correction.shift) and 0 < correction.scale < math.inf):
            raise ValueError("a scale or a shift that cannot be")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path} is not a correction",
            expected=f"pairs, {', '.join(NUMBERS)}",
            actual=str(error),
            fix="remove it, or make it again with `resight votes FOLDER --correct`",
        ) from error
    return correction


def _fit(odds: NDArray[np.float64], targets: NDArray[np.float64], size: float) -> tuple[float, float]:
    """Scale and shift. Where votes would turn the ranking round, or all but erase it, only the shift is fitted."""
    scale, shift = _minimise(odds, targets, np.array([STRENGTH * size**2, STRENGTH]))
    if scale >= LEAST_SCALE:
        return scale, shift
    pull = np.array([1e12, STRENGTH])  # the scale stays
    return LEAST_SCALE, _minimise(odds, targets, pull, LEAST_SCALE)[1]


def _minimise(
    odds: NDArray[np.float64], targets: NDArray[np.float64], pull: NDArray[np.float64], scale: float = 1.0
) -> tuple[float, float]:
    """Newton's method with halved steps; the loss is convex, and the pull to (scale, 0) keeps it from running off."""
    inputs = np.column_stack([odds, np.ones_like(odds)])
    centre = np.array([scale, 0.0])
    weights = centre.copy()

    def loss(at: NDArray[np.float64]) -> float:
        return _log_loss(inputs @ at, targets) * len(targets) + float((pull * (at - centre) ** 2).sum()) / 2

    for _ in range(100):
        predicted = _squash(inputs @ weights)
        gradient = inputs.T @ (predicted - targets) + pull * (weights - centre)
        curvature = (inputs * (predicted * (1 - predicted))[:, None]).T @ inputs + np.diag(pull)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while loss(weights - size * step) > loss(weights) and size > 1e-6:
            size /= 2
        weights = weights - size * step
        if np.abs(size * step).max() < 1e-10:
            break
    return float(weights[0]), float(weights[1])


def _logit(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    kept = np.clip(probabilities, SURE, 1 - SURE)
    return np.asarray(np.log(kept / (1 - kept)))


def _squash(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))))


def _log_loss(odds: NDArray[np.float64], targets: NDArray[np.float64] | Sequence[float]) -> float:
    """Mean of log(1 + e^x) - target · x, which is the cross entropy with soft targets."""
    return math.fsum(np.logaddexp(0, odds) - np.asarray(targets) * odds) / len(odds)

"""Correct the estimated probabilities by votes (Platt scaling), and measure what the correction is worth.

    log-odds' = scale · log-odds + shift

The fit minimises the log loss over the pairs with votes plus STRENGTH/2 · (size² · (scale - 1)² + shift²): a few votes
hardly move it, many decide. `size` is the root mean square of the log-odds voted on, so that a change by the scale
costs as much as the same change by the shift. The scale is at least LEAST_SCALE: votes never erase the estimates. Each
pair counts once: its target is the share of `same` among its votes for same or different. The worth is the mean log
loss before and after, cross-validated in FOLDS parts. It holds for pairs like those voted on: if reviewers saw the
uncertain ones first, it may not hold for the others.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.audit.dedup.pairs import Pair
from resight.audit.review.votes import Vote
from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.search.calibration import Calibration
from resight.search.logistic import fit_logistic, sigmoid

CORRECTION = "correction.json"  # in the folder of a review
STRENGTH = 4.0  # equivalent to about sixteen pairs at even odds
NUMBERS = ("scale", "shift", "same", "before", "after")
LEAST_SCALE = 0.1
FOLDS = 5
FEWEST = 10
SURE = 1e-4  # distance of probabilities from 0 and 1: a vote against a certainty would otherwise outweigh all others


@dataclass(frozen=True)
class Correction:
    scale: float
    shift: float
    pairs: int
    same: float  # pairs that show the same instance; a pair with even votes counts one half
    before: float  # mean log loss of the original probabilities
    after: float  # mean log loss of the corrected ones, cross-validated

    def correct(self, probability: float) -> float:
        return float(sigmoid(self.scale * _logit(np.array([probability])) + self.shift)[0])


def fit_correction(pairs: Iterable[Pair], votes: Iterable[Vote]) -> Correction:
    shares = share_of_same(votes)
    judged = [(pair.probability, shares[pair.a, pair.b]) for pair in pairs if (pair.a, pair.b) in shares]
    if len(judged) < FEWEST:
        raise InputError(
            "too few votes to correct the probabilities",
            expected=f"{FEWEST} pairs with a vote for same or different",
            actual=str(len(judged)),
            fix="vote on more pairs",
        )
    odds = _logit(np.array([probability for probability, _ in judged]))
    size = max(float(np.sqrt((odds**2).mean())), 1.0)  # at even odds the scale is undetermined and stays
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
    """For every pair with a vote for same or different, the share of votes for same."""
    ballots: dict[tuple[str, str], list[float]] = {}
    for vote in votes:
        if vote.verdict in ("same", "different"):
            ballots.setdefault((vote.a, vote.b), []).append(float(vote.verdict == "same"))
    return {pair: sum(ballot) / len(ballot) for pair, ballot in ballots.items()}


def correct_calibration(calibration: Calibration, correction: Correction) -> Calibration:
    """The calibration of a search with the correction applied: bias and weights are log-odds, so both scale."""
    return Calibration(
        correction.scale * calibration.bias + correction.shift,
        {name: correction.scale * weight for name, weight in calibration.weights.items()},
        calibration.pairs + correction.pairs,
        calibration.same + round(correction.same),
        calibration.spaces,
    )


def require_both_verdicts(correction: Correction) -> None:
    """Refuse to calibrate a collection by votes that all agree: they do not separate same from different."""
    if correction.same in (0, correction.pairs):
        raise InputError(
            "all votes agree: that is not enough to calibrate",
            expected="some pairs voted the same and some voted different",
            actual=f"{correction.pairs:,} pairs, all {'the same' if correction.same else 'different'}",
            fix="vote on more pairs",
        )


def save(correction: Correction, path: Path) -> None:
    with write_atomic(path) as temporary:
        temporary.write_text(json.dumps(asdict(correction), indent=1) + "\n", encoding="utf-8")


def load_correction(path: Path) -> Correction | None:
    """Read what `save` wrote; None if there is no such file."""
    if not path.exists():
        return None
    try:
        numbers = load_json(path.read_text(encoding="utf-8"))
        scale, shift, same, before, after = (float(numbers[name]) for name in NUMBERS)
        correction = Correction(scale, shift, int(numbers["pairs"]), same, before, after)
        if not (math.isfinite(correction.shift) and 0 < correction.scale < math.inf):
            raise ValueError("a scale or a shift out of range")
    except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise InputError(
            f"{path} is not a correction",
            expected=f"pairs, {', '.join(NUMBERS)}",
            actual=str(error),
            fix="delete it, or create it again with `resight votes FOLDER --correct`",
        ) from error
    return correction


def _fit(odds: NDArray[np.float64], targets: NDArray[np.float64], size: float) -> tuple[float, float]:
    """Scale and shift. If the votes would reverse the ranking or nearly erase it, only the shift is fitted."""
    inputs = np.column_stack([odds, np.ones_like(odds)])
    scale, shift = fit_logistic(inputs, targets, np.array([1.0, 0.0]), np.array([STRENGTH * size**2, STRENGTH]))
    if scale >= LEAST_SCALE:
        return float(scale), float(shift)
    fixed = np.array([1e12, STRENGTH])  # holds the scale
    _, shift = fit_logistic(inputs, targets, np.array([LEAST_SCALE, 0.0]), fixed)
    return LEAST_SCALE, float(shift)


def _logit(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    kept = np.clip(probabilities, SURE, 1 - SURE)
    return np.asarray(np.log(kept / (1 - kept)))


def _log_loss(odds: NDArray[np.float64], targets: NDArray[np.float64] | Sequence[float]) -> float:
    """Mean of log(1 + e^x) - target · x, which is the cross entropy with soft targets."""
    return math.fsum(np.logaddexp(0, odds) - np.asarray(targets) * odds) / len(odds)

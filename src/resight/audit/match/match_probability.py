"""The probability that two entries match: ranked candidates of both directions in, a probability per pair out.

A search judges a pair by itself. A match knows more: how far the pair lies above the entry's other candidates, above
the other entries that want the same one, and whether the search in the other direction agrees. Signals:

    score        of the pair: the layout of the tokens, with both craters in the middle (centred_layout.py)
    margin       above the best other candidate of a, at most LIMIT
    rival        above the best other entry of A that has b among its candidates, at most LIMIT
    back         score in the other direction, if that was searched
    back_margin  above the best other candidate of b, in that direction, at most LIMIT

The probability is logistic in them. A calibration belongs to the encoding that it was fitted on; the shipped one
(`benchmarks/match_craters.py --fit`) is for craters and the preset `craters`. Without one, the score is the log-odds of
the search, and the probability is that of the search.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import log
from pathlib import Path

from resight.audit.match.ranked_candidates import Ranked
from resight.collection.view import View
from resight.errors import InputError
from resight.files.fingerprint import fingerprint
from resight.search.calibration import Calibration, Signals, load

FITTED = Path(__file__).with_name("match_calibration.json")
LIMIT = 0.03  # of tuning craters, by cross-validation: larger margins say no more
SUREST = 1 - 1e-9  # keeps log-odds finite
Odds = list[dict[int, float]]  # per entry: number of a candidate → score


class Evidence:
    """The scores of all candidates, by entry of A and by entry of B."""

    def __init__(self, forward: Sequence[Ranked], backward: Mapping[int, Ranked] | None, others: int) -> None:
        """`others` is the number of entries of B; `backward`: by entry of B, of those that were searched."""
        self._forward = [_read(some) for some in forward]
        self._backward = None if backward is None else {number: _read(some) for number, some in backward.items()}
        self._wanted: Odds = [{} for _ in range(others)]
        for a, candidates in enumerate(self._forward):
            for b, score in candidates.items():
                self._wanted[b][a] = score

    def list_signals(self, a: int, b: int) -> Signals:
        score = self._forward[a][b]
        signals = {
            "score": score,
            "margin": _above(self._forward[a], b, score),
            "rival": _above(self._wanted[b], a, score),
        }
        if self._backward is not None:
            there = self._backward[b]
            back = there.get(a, min(there.values(), default=0.0))
            signals |= {"back": back, "back_margin": _above(there, a, back)}
        return signals

    def is_mutual(self, a: int, b: int) -> bool | None:
        """Whether each is the other's best; None if only one direction was searched."""
        if self._backward is None:
            return None
        forward, backward = self._forward[a], self._backward[b]
        return max(forward, key=forward.__getitem__) == b and bool(backward) and next(iter(backward)) == a


def find_calibration(view: View, craters: bool, both: bool, path: Path = FITTED) -> Calibration | None:
    """The shipped calibration for matches of craters by the search of this view; None: that of the search.

    `both`: whether both directions are searched.
    """
    if not craters or not path.is_file():
        return None
    key = fingerprint_spaces(view)
    fitting = (one for one in _load(path) if one.spaces.get("score") == key)
    return next((one for one in fitting if ("back" in one.spaces) == both), None)


def fingerprint_spaces(view: View) -> str:
    """Of the encodings, on which the scores depend."""
    return fingerprint(repr([layout.space for layout in view.layout]), 16)


def judge(view: View, fitted: Calibration | None, signals: Signals) -> float:
    if fitted:
        return fitted.probability(fitted.log_odds(signals))
    return require_calibration(view).probability(signals["score"])


def find_floor(fitted: Calibration | None, least: float) -> float:
    """The score below which no pair reaches the probability `least`, even without competition."""
    wanted = log(least / (1 - least)) if 0 < least < 1 else log(SUREST / (1 - SUREST)) * (1 if least else -1)
    if fitted is None:
        return wanted
    rest = fitted.bias + sum(weight * LIMIT for name, weight in fitted.weights.items() if name != "score")
    own = fitted.weights.get("score", 0.0)
    return (wanted - rest) / own if own > 0 else -1e6


def require_calibration(view: View) -> Calibration:
    """Of the search."""
    calibration = view.pipeline.calibration
    if calibration is None:
        raise InputError(
            "matches need probabilities, and this recipe has no calibration",
            expected="a preset such as sift_tokens or craters, or a collection that was calibrated",
            actual=view.recipe.name,
            fix="resight calibrate COLLECTION --pairs FILE",
        )
    return calibration


@cache
def _load(path: Path) -> tuple[Calibration, ...]:
    return tuple(load(path))


def _read(ranked: Ranked) -> dict[int, float]:
    return {one.entry: one.score for one in ranked.candidates}


def _above(values: Mapping[int, float], own: int, score: float) -> float:
    """How far above the best other; LIMIT without any other."""
    other = max((value for one, value in values.items() if one != own), default=-float("inf"))
    return max(-LIMIT, min(score - other, LIMIT))

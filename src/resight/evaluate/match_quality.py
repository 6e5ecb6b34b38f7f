"""How good matches are, where the truth is known: probabilities and truths in, figures and a reliability diagram out.

Each query has at most one match: the probability, whether it is right, and whether the query has a right answer at all
(`present`). Precision: right ones among the matches at or above a threshold. Recall: right ones among all present
queries. Bins of the diagram hold equal counts of matches; its error is `expected_calibration_error`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resight.errors import InputError
from resight.evaluate.statistics.reliability import expected_calibration_error
from resight.evaluate.statistics.tests import bootstrap_interval
from resight.evaluate.table import Chart, Line

BINS = 10
SEED = 0
SAFE = 0.99


@dataclass(frozen=True)
class Outcome:
    """One query."""

    probability: float  # of its match; 0 without one
    right: bool
    present: bool  # whether a right answer exists


@dataclass(frozen=True)
class Quality:
    queries: int
    present: int
    listed: int  # matches at or above the threshold
    right: int
    precision: float  # 1 without matches
    recall: float
    recall_interval: tuple[float, float]
    precision_interval: tuple[float, float]
    best_right: float  # share of present queries whose match is right, whatever its probability
    best_interval: tuple[float, float]
    calibration_error: float
    safe_recall: float  # at a precision of SAFE, with the threshold that gives most
    safe_threshold: float


def measure_matches(outcomes: Sequence[Outcome], least: float = 0.0) -> Quality:
    """Intervals are bootstrap intervals over queries, of 95 %."""
    if not any(one.present for one in outcomes):
        raise InputError(
            "nothing to measure matches by",
            expected="entries of A whose label an entry of B has",
            actual=f"{len(outcomes):,} entries, none with its label in B",
            fix="give both collections labels of the same catalogue, or leave out --truth",
        )
    generator = np.random.default_rng(SEED)
    listed = [one for one in outcomes if one.probability > 0 and one.probability >= least]
    found = [one.right and one.probability >= least for one in outcomes if one.present]
    best = [one.right for one in outcomes if one.present]
    right = [one.right for one in listed]
    return Quality(
        *(len(outcomes), len(found), len(listed), sum(right)),
        float(np.mean(right)) if right else 1.0,
        float(np.mean(found)),
        bootstrap_interval(np.array(found, float), generator),
        bootstrap_interval(np.array(right, float), generator),
        float(np.mean(best)),
        bootstrap_interval(np.array(best, float), generator),
        measure_calibration(outcomes),
        *find_recall(outcomes, SAFE),
    )


def measure_calibration(outcomes: Sequence[Outcome]) -> float:
    """Over all matches, likely or not."""
    some = [one for one in outcomes if one.probability > 0]
    return (
        expected_calibration_error([one.probability for one in some], [one.right for one in some], BINS)
        if some
        else 0.0
    )


def find_recall(outcomes: Sequence[Outcome], precision: float) -> tuple[float, float]:
    """The largest recall at that precision, over all thresholds, and the threshold; 0 and 1 if none reaches it."""
    order = sorted((one for one in outcomes if one.probability > 0), key=lambda one: -one.probability)
    total = sum(one.present for one in outcomes)
    best, threshold, right = 0.0, 1.0, 0
    for count, one in enumerate(order, start=1):
        right += one.right
        last = count == len(order) or order[count].probability < one.probability
        if last and right >= precision * count and total and right / total > best:
            best, threshold = right / total, one.probability
    return best, threshold


def draw_reliability(outcomes: Sequence[Outcome]) -> Chart:
    """Share of right matches against their mean probability, in bins of equal count, and the diagonal."""
    some = sorted((one for one in outcomes if one.probability > 0), key=lambda one: one.probability)
    bins = [
        part for part in np.array_split(np.array([(one.probability, one.right) for one in some]), BINS) if len(part)
    ]
    points: dict[float, list[float]] = {}  # bins of one mean probability are one
    for part in bins:
        points.setdefault(round(float(part[:, 0].mean()), 4), []).extend(part[:, 1].tolist())
    positions = tuple(sorted(points))
    generator = np.random.default_rng(SEED)
    spans = tuple(bootstrap_interval(points[at], generator) for at in positions)
    lines = (
        Line("right", tuple(float(np.mean(points[at])) for at in positions), spans),
        Line("as its probability", positions),
    )
    ticks = tuple(f"{at:.2f}" for at in positions)
    return Chart("Reliability", "mean probability of ten bins", positions, ticks, lines, from_zero=True)

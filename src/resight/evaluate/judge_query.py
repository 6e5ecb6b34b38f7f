"""Which positives of a graded query count: "easy/ap" is `ap` under the protocol easy.

The revisited Oxford and Paris benchmark grades positives as easy (grade 2 here) or hard (grade 1), and asks three
questions of one ranking. What a protocol leaves aside is ignored: it leaves the ranking before ranks are counted.

    easy/…      grade 2 and above are positives, grade 1 is ignored
    medium/…    every grade above 0 is a positive
    hard/…      grade 1 is a positive, grade 2 and above are ignored

A query without a positive under a protocol has no value there (NaN): it is left out of the mean, and counted.
Radenović et al., Revisiting Oxford and Paris, CVPR 2018.

One query's ranking and what is true of it in, figures out.

Conventions, the same for every metric:

- Grades above 0 are positives. Ignored ids leave the ranking before ranks are counted, and are no positives.
- A positive that is not in the ranking was not found; it still counts in P, the number of positives.
- A protocol before the name ("easy/ap") chooses which positives count (protocols.py). Without a positive under it, the
  value is NaN.
- Metrics that localise look only at positives whose true box is known: the others leave P and the ranking.
  A hit without a shown box overlaps by 0. With no true box at all the value is NaN, and a mean over queries
  has to leave it out (`numpy.nanmean`).
- Images of the same score are judged in the order in which they are given; no tie is broken here.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resight.errors import BoxError, InputError, RecipeError
from resight.evaluate.metrics import Metric, Overlaps, RunMetric, build
from resight.evaluate.rank_positions import Ids, find_places
from resight.types import Box, IntArray, Judgement

BEFORE_METRIC = "/"
EASY = 2  # the lowest grade of an easy positive


@dataclass(frozen=True)
class Protocol:
    easy: bool  # whether easy positives count
    hard: bool
    convention: str


PROTOCOLS = {
    "easy": Protocol(True, False, "Easy: grade 2 and above are positives, grade 1 is ignored."),
    "medium": Protocol(True, True, "Medium: every grade above 0 is a positive."),
    "hard": Protocol(False, True, "Hard: grade 1 is a positive, grade 2 and above are ignored."),
}


def split(name: str) -> tuple[str | None, str]:
    """ "easy/ap@20" → ("easy", "ap@20"); "ap" → (None, "ap")."""
    protocol, slash, metric = name.partition(BEFORE_METRIC)
    if not slash:
        return None, name
    if protocol not in PROTOCOLS:
        raise RecipeError(
            f"there is no protocol called {protocol!r}",
            expected=f"one of {', '.join(PROTOCOLS)} before the {BEFORE_METRIC!r}",
            actual=repr(name),
            fix="write for example medium/ap_trapezoid, or the metric alone",
        )
    return protocol, metric


def narrow(judgement: Judgement, protocol: str | None) -> Judgement:
    """The judgement as a protocol sees it; None leaves it as it is."""
    if protocol is None:
        return judgement
    kept = PROTOCOLS[protocol]
    aside = [
        id for id, grade in judgement.grades.items() if grade > 0 and not (kept.easy if grade >= EASY else kept.hard)
    ]
    grades = {id: grade for id, grade in judgement.grades.items() if grade <= 0 or id not in set(aside)}
    return replace(judgement, grades=grades, ignored=judgement.ignored.union(aside))


Judged = tuple[Ids, Judgement, Mapping[str, Box] | None]


def judge(
    ranked_ids: Ids, judgement: Judgement, names: Iterable[str], boxes: Mapping[str, Box] | None = None
) -> dict[str, float]:
    """Each metric of `names` for one query; `boxes` are those shown for the ids.

    Refused: an id that is in the ranking twice, a query without positives, a metric that localises without
    `boxes` (InputError), a box that is inside out or not finite (BoxError), an unknown metric, or one of a whole run
    (RecipeError).
    """
    return next(judge_all([(ranked_ids, judgement, boxes)], names))


def judge_all(rankings: Iterable[Judged], names: Iterable[str]) -> Iterator[dict[str, float]]:
    """`judge` for many queries, one at a time as they are asked for; the names are checked at once."""
    plan = plan_metrics(names)
    return (_judge_query(plan, *judged) for judged in rankings)


@dataclass(frozen=True)
class View:
    """Metrics of one view are given the same positives."""

    protocol: str | None
    localises: bool


Plan = Mapping[str, tuple[View, Metric]]  # name → what it is given, and the metric


def plan_metrics(names: Iterable[str]) -> Plan:
    return {name: (View(split(name)[0], metric.localises), metric) for name, metric in _build_all(names)}


def judge_places(
    plan: Plan, places: Mapping[str, int], judgement: Judgement, boxes: Mapping[str, Box] | None
) -> dict[str, float]:
    """`judge` for a query whose `list_relevant` ids were found at these places, from 0."""
    outcomes: dict[View, _Outcome] = {}
    for view, _ in plan.values():
        if view not in outcomes:
            outcomes[view] = _observe(places, judgement, view, boxes)
    return {name: _score(metric, outcomes[view]) for name, (view, metric) in plan.items()}


def list_relevant(judgement: Judgement) -> set[str]:
    """The ids whose places decide every figure."""
    return {*list_positives(judgement), *judgement.ignored}


def list_positives(judgement: Judgement) -> list[str]:
    return [id for id, grade in judgement.grades.items() if grade > 0 and id not in judgement.ignored]


def measure_overlaps(first: NDArray[np.float64], second: NDArray[np.float64]) -> Overlaps:
    """IoU [n] of boxes first[i] and second[i], both [n, 4]; boxes without area overlap nothing."""
    inner = _areas(np.hstack([np.maximum(first[:, :2], second[:, :2]), np.minimum(first[:, 2:], second[:, 2:])]))
    union = _areas(first) + _areas(second) - inner
    shares = np.divide(inner, union, out=np.zeros_like(inner), where=union > 0)
    return np.minimum(shares, 1.0)  # rounding can lift two nearly equal boxes just above 1


@dataclass(frozen=True)
class _Outcome:
    """What a metric is given; see `Metric.score`."""

    ranks: IntArray
    positives: int
    overlaps: Overlaps


def _build_all(names: Iterable[str]) -> Iterator[tuple[str, Metric]]:
    for name in names:
        metric = build(name)
        if isinstance(metric, RunMetric):
            raise RecipeError(
                f"{name} is a figure of a whole run",
                expected="metrics of one query",
                actual=name,
                fix="judge the whole run: resight.evaluate.judge_runs.judge_rankings, or `resight judge`",
            )
        yield name, metric


def _judge_query(
    plan: Plan, ranked_ids: Ids, judgement: Judgement, boxes: Mapping[str, Box] | None
) -> dict[str, float]:
    _require_positives(judgement)
    return judge_places(plan, find_places(ranked_ids, list_relevant(judgement)), judgement, boxes)


def _score(metric: Metric, outcome: _Outcome) -> float:
    if outcome.positives == 0:
        return float("nan")
    return metric.score(outcome.ranks, outcome.positives, outcome.overlaps)


def _require_positives(judgement: Judgement) -> None:
    if not list_positives(judgement):
        raise InputError(
            "a query without positives cannot be judged",
            expected="at least one grade above 0 whose id is not ignored",
            actual=f"{len(judgement.grades)} grades, {len(judgement.ignored)} ignored ids",
            fix="leave such queries out of the evaluation and report how many there are",
        )


def _observe(places: Mapping[str, int], judgement: Judgement, view: View, shown: Mapping[str, Box] | None) -> _Outcome:
    """Where the positives of a view are once the others have left."""
    seen = narrow(judgement, view.protocol)
    positives, dropped = list_positives(seen), seen.ignored
    overlap: Mapping[str, float] = {}
    if view.localises:
        dropped = dropped.union(id for id in positives if id not in seen.boxes)
        positives = [id for id in positives if id in seen.boxes]
        overlap = _overlap_by_id(positives, seen.boxes, shown)
    found = sorted((id for id in positives if id in places), key=places.__getitem__)
    ranks = number_ranks([places[id] for id in found], [places[id] for id in dropped if id in places])
    return _Outcome(ranks, len(positives), np.array([overlap.get(id, 0.0) for id in found]))


def number_ranks(places: Sequence[int], gone: Sequence[int]) -> IntArray:
    """Ranks [h], from 1, of places that increase, once the places in `gone` have left."""
    kept = np.array(places, dtype=np.int64)
    return kept - np.searchsorted(np.sort(np.array(gone, dtype=np.int64)), kept) + 1


def _overlap_by_id(
    boxed: Sequence[str], true_boxes: Mapping[str, Box], shown_boxes: Mapping[str, Box] | None
) -> dict[str, float]:
    if shown_boxes is None:
        raise InputError(
            "locscore and mlocscore need the boxes that were shown",
            expected="boxes, {id: (x0, y0, x1, y1)}",
            actual="None",
            fix="pass boxes ({} if none were shown), or leave these metrics out",
        )
    _check_boxes(true_boxes, "true")
    _check_boxes(shown_boxes, "shown")
    both = [id for id in boxed if id in shown_boxes]
    overlaps = measure_overlaps(_stack([shown_boxes[id] for id in both]), _stack([true_boxes[id] for id in both]))
    return dict(zip(both, overlaps.tolist(), strict=True))


def _check_boxes(boxes: Mapping[str, Box], kind: str) -> None:
    for id, box in boxes.items():
        if not _is_box(box):
            raise BoxError(
                f"the {kind} box of {id!r} cannot be used",
                expected="four finite numbers x0, y0, x1, y1 with x0 ≤ x1 and y0 ≤ y1",
                actual=repr(box),
                fix="correct the box, or leave the id out where there is none",
            )


def _is_box(box: Box) -> bool:
    try:
        x0, y0, x1, y1 = box
        return -math.inf < x0 <= x1 < math.inf and -math.inf < y0 <= y1 < math.inf
    except (TypeError, ValueError):  # fewer or more than four, or no numbers
        return False


def _stack(boxes: Sequence[Box]) -> NDArray[np.float64]:
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)


def _areas(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas [n] of boxes [n, 4]; 0 for one that is inside out, as the meeting of two boxes that do not meet is."""
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0)
    return np.asarray(sides[:, 0] * sides[:, 1])

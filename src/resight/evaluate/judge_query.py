"""Judge one query's ranking.

In: a ranking, the query's Judgement and names of metrics. Out: the value of each metric.

Conventions, the same for every metric:

- Grades above 0 are positives. Ignored ids leave the ranking before ranks are counted, and are not positives.
- A positive that is not in the ranking was not found; it still counts in P, the number of positives.
- A protocol before the name ("easy/ap", see protocols.py) chooses which positives count. A query without a positive
  under the protocol has the value NaN.
- Metrics that localise look only at positives whose true box is known: the others leave P and the ranking.
  A hit without a shown box overlaps by 0. With no true box at all the value is NaN, and a mean over queries
  has to leave it out (`numpy.nanmean`).
- Images of the same score are judged in the given order; judging breaks no ties.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.boxes import iou
from resight.errors import BoxError, InputError, RecipeError
from resight.evaluate.metrics import Metric, Overlaps, RunMetric, build
from resight.evaluate.protocols import apply_protocol, split_name
from resight.evaluate.rank_positions import Ids, find_positions
from resight.types import Box, IntArray, Judgement

RankedQuery = tuple[Ids, Judgement, Mapping[str, Box] | None]  # ids best first, the truth, boxes shown


def judge(
    ranked_ids: Ids, judgement: Judgement, names: Iterable[str], boxes: Mapping[str, Box] | None = None
) -> dict[str, float]:
    """Judge the ranking of one query.

    Args:
        ranked_ids: The ids, best first.
        judgement: The ground truth of the query.
        names: Metrics, such as "ap", "recall@1" or "easy/ap".
        boxes: Id → the box shown for it; needed by metrics that localise.

    Returns:
        Metric → value.

    Raises:
        InputError: The ranking has an id twice, the query has no positives, or a metric needs `boxes`.
        BoxError: A box is inside out or not finite.
        RecipeError: A metric is unknown, or is one of a whole run.

    Examples:
        >>> from resight.evaluate import judge
        >>> from resight.types import Judgement
        >>> judge(["a", "b", "c", "d"], Judgement({"a": 1, "d": 1}), ["ap", "recall@1"])
        {'ap': 0.75, 'recall@1': 1.0}
    """
    return next(judge_all([(ranked_ids, judgement, boxes)], names))


def judge_all(rankings: Iterable[RankedQuery], names: Iterable[str]) -> Iterator[dict[str, float]]:
    """Judge the rankings of many queries, one by one.

    Args:
        rankings: Per query its ids, best first, its ground truth, and the boxes shown or None.
        names: Metrics, as for `judge`; checked at once.

    Returns:
        Metric → value for each query, computed as you iterate.

    Raises:
        RecipeError: A metric is unknown, or is one of a whole run.

    Examples:
        >>> from resight.evaluate import judge_all
        >>> from resight.types import Judgement
        >>> truth = Judgement({"a": 1})
        >>> list(judge_all([(["a", "b"], truth, None), (["b", "a"], truth, None)], ["recall@1"]))
        [{'recall@1': 1.0}, {'recall@1': 0.0}]
    """
    plan = plan_metrics(names)
    return (_judge_query(plan, *ranked) for ranked in rankings)


@dataclass(frozen=True)
class View:
    """Which positives a metric is given; metrics of one view share them."""

    protocol: str | None
    localises: bool


Plan = Mapping[str, tuple[View, Metric]]  # name → what the metric is given, and the metric


def plan_metrics(names: Iterable[str]) -> Plan:
    return {name: (View(split_name(name)[0], metric.localises), metric) for name, metric in _build_all(names)}


def judge_positions(
    plan: Plan, positions: Mapping[str, int], judgement: Judgement, boxes: Mapping[str, Box] | None
) -> dict[str, float]:
    """`judge` for a query whose `list_relevant` ids were found at these positions, counted from 0."""
    outcomes: dict[View, _Outcome] = {}
    for view, _ in plan.values():
        if view not in outcomes:
            outcomes[view] = _observe(positions, judgement, view, boxes)
    return {name: _score(metric, outcomes[view]) for name, (view, metric) in plan.items()}


def list_relevant(judgement: Judgement) -> set[str]:
    """The ids whose positions decide every figure."""
    return {*list_positives(judgement), *judgement.ignored}


def list_positives(judgement: Judgement) -> list[str]:
    return [id for id, grade in judgement.grades.items() if grade > 0 and id not in judgement.ignored]


def count_ranks(positions: Sequence[int], removed: Sequence[int]) -> IntArray:
    """Ranks [h], from 1, of increasing positions once the images at the positions `removed` have left."""
    remaining = np.array(positions, dtype=np.int64)
    return remaining - np.searchsorted(np.sort(np.array(removed, dtype=np.int64)), remaining) + 1


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
    return judge_positions(plan, find_positions(ranked_ids, list_relevant(judgement)), judgement, boxes)


def _require_positives(judgement: Judgement) -> None:
    if not list_positives(judgement):
        raise InputError(
            "a query without positives cannot be judged",
            expected="at least one grade above 0 whose id is not ignored",
            actual=f"{len(judgement.grades)} grades, {len(judgement.ignored)} ignored ids",
            fix="leave such queries out of the evaluation and report how many there are",
        )


@dataclass(frozen=True)
class _Outcome:
    """Arguments of `Metric.score`."""

    ranks: IntArray
    positives: int
    overlaps: Overlaps


def _observe(
    positions: Mapping[str, int], judgement: Judgement, view: View, shown: Mapping[str, Box] | None
) -> _Outcome:
    """Ranks of the positives of a view, once the ignored images have left."""
    seen = apply_protocol(judgement, view.protocol)
    positives, removed = list_positives(seen), seen.ignored
    overlap: Mapping[str, float] = {}
    if view.localises:
        removed = removed.union(id for id in positives if id not in seen.boxes)
        positives = [id for id in positives if id in seen.boxes]
        overlap = _overlap_by_id(positives, seen.boxes, shown)
    found = sorted((id for id in positives if id in positions), key=positions.__getitem__)
    ranks = count_ranks([positions[id] for id in found], [positions[id] for id in removed if id in positions])
    return _Outcome(ranks, len(positives), np.array([overlap.get(id, 0.0) for id in found]))


def _score(metric: Metric, outcome: _Outcome) -> float:
    if outcome.positives == 0:
        return float("nan")
    return metric.score(outcome.ranks, outcome.positives, outcome.overlaps)


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
    overlaps = iou(_stack([shown_boxes[id] for id in both]), _stack([true_boxes[id] for id in both]))
    return dict(zip(both, overlaps.tolist(), strict=True))


def _check_boxes(boxes: Mapping[str, Box], kind: str) -> None:
    for id, box in boxes.items():
        if not _is_box(box):
            raise BoxError(
                f"the {kind} box of {id!r} cannot be used",
                expected="four finite numbers x0, y0, x1, y1 with x0 ≤ x1 and y0 ≤ y1",
                actual=repr(box),
                fix="correct the box, or leave the id out if it has none",
            )


def _is_box(box: Box) -> bool:
    try:
        x0, y0, x1, y1 = box
        return -math.inf < x0 <= x1 < math.inf and -math.inf < y0 <= y1 < math.inf
    except (TypeError, ValueError):  # fewer or more than four values, or not numbers
        return False


def _stack(boxes: Sequence[Box]) -> NDArray[np.float64]:
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)

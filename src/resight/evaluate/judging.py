"""One query's ranking and what is true of it in, figures out.

Conventions, the same for every metric:

- Grades above 0 are positives. Ignored ids leave the ranking before ranks are counted, and are no positives.
- A positive that is not in the ranking was not found; it still counts in P, the number of positives.
- Metrics that localise look only at positives whose true box is known: the others leave P and the ranking.
  A hit without a shown box overlaps by 0. With no true box at all the value is NaN, and a mean over queries
  has to leave it out (`numpy.nanmean`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.errors import BoxError, InputError
from resight.evaluate.metrics import Hits, Metric, Overlaps, build
from resight.types import Box, Judgement

Judged = tuple[Sequence[str], Judgement, Mapping[str, Box] | None]


def judge(
    ranked_ids: Sequence[str], judgement: Judgement, names: Iterable[str], boxes: Mapping[str, Box] | None = None
) -> dict[str, float]:
    """Each metric of `names` for one query; `boxes` are those shown for the ids.

    Refused: an id that is in the ranking twice, a query without positives, a metric that localises without
    `boxes` (InputError), a box that is inside out or not finite (BoxError), an unknown metric (RecipeError).
    """
    return next(judge_all([(ranked_ids, judgement, boxes)], names))


def judge_all(rankings: Iterable[Judged], names: Iterable[str]) -> Iterator[dict[str, float]]:
    """`judge` for many queries, one at a time as they are asked for; the names are checked at once."""
    metrics = {name: build(name) for name in names}
    return (_judge_query(metrics, *judged) for judged in rankings)


def measure_overlaps(first: NDArray[np.float64], second: NDArray[np.float64]) -> Overlaps:
    """IoU [n] of boxes first[i] and second[i], both [n, 4]; boxes without area overlap nothing."""
    inner = _areas(np.hstack([np.maximum(first[:, :2], second[:, :2]), np.minimum(first[:, 2:], second[:, 2:])]))
    union = _areas(first) + _areas(second) - inner
    shares = np.divide(inner, union, out=np.zeros_like(inner), where=union > 0)
    return np.minimum(shares, 1.0)  # rounding can lift two nearly equal boxes just above 1


@dataclass(frozen=True)
class _Outcome:
    """What a metric is given; see `Metric.score`."""

    hits: Hits
    positives: int
    overlaps: Overlaps


def _judge_query(
    metrics: Mapping[str, Metric], ranked_ids: Sequence[str], judgement: Judgement, boxes: Mapping[str, Box] | None
) -> dict[str, float]:
    ranks = _number_ranks(ranked_ids)
    positives = _list_positives(judgement)
    outcomes = {False: _observe(ranks, positives, judgement.ignored, {})}
    if any(metric.localises for metric in metrics.values()):
        boxed = [id for id in positives if id in judgement.boxes]
        dropped = judgement.ignored.union(id for id in positives if id not in judgement.boxes)
        outcomes[True] = _observe(ranks, boxed, dropped, _overlap_by_id(boxed, judgement.boxes, boxes))
    return {name: _score(metric, outcomes[metric.localises]) for name, metric in metrics.items()}


def _score(metric: Metric, outcome: _Outcome) -> float:
    if outcome.positives == 0:
        return float("nan")
    return metric.score(outcome.hits, outcome.positives, outcome.overlaps)


def _number_ranks(ranked_ids: Sequence[str]) -> dict[str, int]:
    ranks = dict(zip(ranked_ids, range(len(ranked_ids)), strict=True))
    if len(ranks) < len(ranked_ids):
        # The dictionary keeps an id's last rank, so an id whose rank differs comes again further down.
        first, id = next((rank, id) for rank, id in enumerate(ranked_ids) if ranks[id] != rank)
        raise InputError(
            f"{id!r} is in the ranking more than once",
            expected="every id at most once",
            actual=f"{id!r} at ranks {first + 1} and {ranks[id] + 1}",
            fix="keep only the best rank of each image",
        )
    return ranks


def _list_positives(judgement: Judgement) -> list[str]:
    positives = [id for id, grade in judgement.grades.items() if grade > 0 and id not in judgement.ignored]
    if not positives:
        raise InputError(
            "a query without positives cannot be judged",
            expected="at least one grade above 0 whose id is not ignored",
            actual=f"{len(judgement.grades)} grades, {len(judgement.ignored)} ignored ids",
            fix="leave such queries out of the evaluation and report how many there are",
        )
    return positives


def _observe(
    ranks: Mapping[str, int], positives: Sequence[str], dropped: Iterable[str], overlap: Mapping[str, float]
) -> _Outcome:
    """Where the positives are once the dropped ids have left; looks up only the ids that matter."""
    found = [id for id in positives if id in ranks]
    places = [ranks[id] for id in found]
    hits = np.zeros(len(ranks), dtype=np.bool_)
    hits[places] = True
    overlaps = np.zeros(len(ranks))
    overlaps[places] = [overlap.get(id, 0.0) for id in found]
    gone = [ranks[id] for id in dropped if id in ranks]
    return _Outcome(np.delete(hits, gone), len(positives), np.delete(overlaps, gone))


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

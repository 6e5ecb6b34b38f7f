"""The queries that went best and worst: a RunResult in, plain values with ids, paths, boxes and signals out.

Queries are in the order of one metric, the first that tells them apart; equal ones in the order of the rank of their
first positive, then of their id.
"""

import math
from typing import Any

from resight.evaluate.results import Answered, JudgedQuery, RunResult

WORST, BEST = 6, 3


def list_examples(result: RunResult) -> dict[str, Any]:
    """{"metric", "worst": [query, …], "best": […]}; nothing where no query was judged."""
    metric = _choose_metric(result)
    known = [query for query in result.judged if not math.isnan(query.values.get(metric, math.nan)) and query.trace]
    ordered = sorted(known, key=lambda query: (query.values[metric], -_first(query), query.query_id))
    worst = ordered[:WORST]
    best = [query for query in reversed(ordered) if query not in worst][:BEST]
    return {
        "metric": metric,
        "worst": [_describe(query, metric) for query in worst],
        "best": [_describe(query, metric) for query in best],
    }


def _choose_metric(result: RunResult) -> str:
    """Average precision tells more queries apart than being right at rank 1 does: the metric with most values."""
    counts = {
        name: len(set(result.values(name))) for name in result.metrics if all(name in q.values for q in result.judged)
    }
    return max(counts, key=lambda name: counts[name], default="")


def _first(query: JudgedQuery) -> float:
    found = query.trace.first if query.trace else None
    return math.inf if found is None else found


def _describe(query: JudgedQuery, metric: str) -> dict[str, Any]:
    return {
        "id": query.query_id,
        "path": None if query.path is None else str(query.path),
        "box": query.box,
        "value": query.values[metric],
        "first_positive": query.trace.first if query.trace else None,
        "positives": len(query.trace.places) if query.trace else 0,
        "answers": [_describe_answer(answer) for answer in query.answers],
    }


def _describe_answer(answer: Answered) -> dict[str, Any]:
    return {
        "id": answer.id,
        "path": None if answer.path is None else str(answer.path),
        "rank": answer.rank,
        "positive": answer.positive,
        "probability": answer.probability,
        "box": answer.box,
        "true_box": answer.true_box,
        "signals": {name: float(value) for name, value in answer.signals.items()},
    }

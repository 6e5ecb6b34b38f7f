"""For which positives are the figures good, and for which bad? Judged queries in, one Breakdown a property out.

The positives (pairs of a query and a positive image) are cut into bins of about equal count by a property, or by its
value where that is a word. To judge a bin, the positives outside it leave the ranking, as ignored images do; a query
without a positive in the bin is left out of it. Equal values always share a bin, the one of their middle rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.evaluate import metrics
from resight.evaluate.judging import number_ranks
from resight.evaluate.metrics import Metric, RunMetric
from resight.evaluate.protocols import narrow, split
from resight.evaluate.results import Bin, Breakdown, JudgedQuery, Trace
from resight.types import Judgement

MOST_WORDS = 24  # values of a word that a table and a chart can still show
Value = float | str


@dataclass(frozen=True)
class Property:
    """A name, what it means, and what it is for each positive of each query: query → positive → value."""

    name: str
    convention: str
    values: Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True)
class Cut:
    """Bins and who is in them: query → positive → number of its bin."""

    labels: tuple[str, ...]
    numbers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def break_down(
    queries: Sequence[JudgedQuery], properties: Sequence[Property], names: Sequence[str], bins: int = 5
) -> tuple[Breakdown, ...]:
    """The metrics of `names` in every bin of every property; those of a whole run have no bins."""
    built = {name: metric for name in names if not isinstance(metric := metrics.build(name), RunMetric)}
    traces = {query.query_id: query.trace for query in queries if query.trace is not None}
    return tuple(_break_down(traces, part, built, bins) for part in properties)


def cut(part: Property, bins: int) -> Cut:
    """Numbers into at most `bins` bins of about equal count; words into one bin a word."""
    if bins < 1:
        raise InputError("no bins to put positives in", expected="1 or more", actual=str(bins), fix="use 5")
    pairs = [(query, id, value) for query, ids in part.values.items() for id, value in ids.items()]
    if any(isinstance(value, str) for _, _, value in pairs):
        return _cut_words(part.name, [(query, id, str(value)) for query, id, value in pairs])
    values = np.array([value for _, _, value in pairs], np.float64)
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    of_level = (2 * np.cumsum(counts) - counts) * bins // (2 * len(values)) if len(values) else counts
    distinct, numbers = np.unique(of_level[level], return_inverse=True)
    labels = tuple(_say_range(values[numbers == number]) for number in range(len(distinct)))
    return Cut(labels, _by_query([(query, id) for query, id, _ in pairs], numbers.tolist()))


def judge_part(trace: Trace, wanted: frozenset[str], built: Mapping[str, Metric]) -> dict[str, float]:
    """Each metric of the ranking, with the positives outside `wanted` taken out of it; at least one is inside."""
    return {name: _judge_metric(trace, wanted, name, metric) for name, metric in built.items()}


def _break_down(traces: Mapping[str, Trace], part: Property, built: Mapping[str, Metric], bins: int) -> Breakdown:
    whole = cut(part, bins)
    members: list[dict[str, frozenset[str]]] = [{} for _ in whole.labels]
    for query, numbers in whole.numbers.items():
        if query not in traces:
            continue
        for number in set(numbers.values()):
            members[number][query] = frozenset(id for id, other in numbers.items() if other == number)
    known = sum(len(ids) for ids in part.values.values())
    return Breakdown(
        part.name,
        part.convention,
        tuple(
            Bin(
                label,
                sum(map(len, chosen.values())),
                {query: judge_part(traces[query], ids, built) for query, ids in chosen.items()},
            )
            for label, chosen in zip(whole.labels, members, strict=True)
        ),
        sum(len(trace.places) for trace in traces.values()) - known,
    )


def _judge_metric(trace: Trace, wanted: frozenset[str], name: str, metric: Metric) -> float:
    counted = narrow(Judgement(trace.grades), split(name)[0]).grades
    kept = {id for id in wanted if id in counted and (not metric.localises or id in trace.overlaps)}
    if not kept:
        return float("nan")
    places = {id: place for id, place in trace.places.items() if place is not None}
    found = sorted(kept & places.keys(), key=places.__getitem__)
    gone = [*trace.gone, *(place for id, place in places.items() if id not in kept)]
    ranks = number_ranks([places[id] for id in found], gone)
    return metric.score(ranks, len(kept), np.array([trace.overlaps.get(id, 0.0) for id in found]))


def _cut_words(name: str, pairs: Sequence[tuple[str, str, str]]) -> Cut:
    words = sorted({value for _, _, value in pairs})
    if len(words) > MOST_WORDS:
        raise InputError(
            f"{name!r} has too many values to show a figure for each",
            expected=f"numbers, or at most {MOST_WORDS} different words",
            actual=f"{len(words):,}, such as {', '.join(map(repr, words[:3]))}",
            fix="choose another attribute",
        )
    numbers = [words.index(value) for _, _, value in pairs]
    return Cut(tuple(words), _by_query([(query, id) for query, id, _ in pairs], numbers))


def _by_query(pairs: Sequence[tuple[str, str]], numbers: Sequence[int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (query, id), number in zip(pairs, numbers, strict=True):
        found.setdefault(query, {})[id] = number
    return found


def _say_range(values: NDArray[np.float64]) -> str:
    """Lowest and highest with as few digits as tell them apart."""
    low, high = float(values.min()), float(values.max())
    digits = next((count for count in (2, 3, 4) if f"{low:.{count}g}" != f"{high:.{count}g}"), 3)
    return f"{low:.{digits}g}" if low == high else f"{low:.{digits}g}–{high:.{digits}g}"

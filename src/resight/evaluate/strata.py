"""Figures by strata: for which positives are they good, and for which bad?

In: judged queries and Properties of their positives. Out: a Breakdown per property. The positives (pairs of a query and
a positive image) are split into bins of about equal count by a property, or by its value if that is a word. To judge a
bin, the positives outside it leave the ranking, as ignored images do; a bin leaves out queries without a positive in
it. Equal values always share a bin, the one of their middle rank.

A split file (CSV with the columns id and split, such as the overlap.csv of `resight audit`) divides the queries into
parts that are judged apart, such as those that overlap with a training set and the others (CiDeR, Table A13).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.data.truth_tables import read_table
from resight.errors import InputError, ManifestError
from resight.evaluate import metrics
from resight.evaluate.judge_query import count_ranks
from resight.evaluate.metrics import Metric, RunMetric
from resight.evaluate.properties import Property
from resight.evaluate.protocols import apply_protocol, split_name
from resight.evaluate.results import Bin, Breakdown, JudgedQuery, PositiveRanks
from resight.types import Judgement

MOST_WORDS = 24  # different words that a table and a chart can show
FIX = "name the columns id (of a query) and split in the first line, as `resight audit` does in overlap.csv"


@dataclass(frozen=True)
class Bins:
    """Labels of bins, and their members: query → positive → number of its bin."""

    labels: tuple[str, ...]
    numbers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def break_down(
    queries: Sequence[JudgedQuery], properties: Sequence[Property], names: Sequence[str], bins: int = 5
) -> tuple[Breakdown, ...]:
    """The metrics of `names` in every bin of every property; metrics of a whole run are left out."""
    built = {name: metric for name in names if not isinstance(metric := metrics.build(name), RunMetric)}
    ranks = {query.query_id: query.positive_ranks for query in queries if query.positive_ranks is not None}
    return tuple(_break_down(ranks, part, built, bins) for part in properties)


def split_into_bins(part: Property, bins: int) -> Bins:
    """Numbers into at most `bins` bins of about equal count; words into one bin per word."""
    if bins < 1:
        raise InputError("no bins for the positives", expected="1 or more", actual=str(bins), fix="use 5")
    pairs = [(query, id, value) for query, ids in part.values.items() for id, value in ids.items()]
    if any(isinstance(value, str) for _, _, value in pairs):
        return _split_words(part.name, [(query, id, str(value)) for query, id, value in pairs])
    values = np.array([value for _, _, value in pairs], np.float64)
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    of_level = (2 * np.cumsum(counts) - counts) * bins // (2 * len(values)) if len(values) else counts
    distinct, numbers = np.unique(of_level[level], return_inverse=True)
    labels = tuple(_format_range(values[numbers == number]) for number in range(len(distinct)))
    return Bins(labels, _by_query([(query, id) for query, id, _ in pairs], numbers.tolist()))


def judge_part(ranks: PositiveRanks, wanted: frozenset[str], built: Mapping[str, Metric]) -> dict[str, float]:
    """Each metric of the ranking without the positives outside `wanted`; at least one is inside."""
    return {name: _judge_metric(ranks, wanted, name, metric) for name, metric in built.items()}


def read_split(path: Path) -> Mapping[str, str]:
    """Query → its part."""
    parts: dict[str, str] = {}
    for line, row in read_table(path, ("id", "split"), FIX):
        if parts.setdefault(row["id"], row["split"]) != row["split"]:
            raise ManifestError(
                f"{path}, line {line}: the query {row['id']!r} is in two parts",
                expected="each query in one part",
                actual=f"{parts[row['id']]} and {row['split']}",
                fix="remove one of the lines",
            )
    return parts


def check_split(parts: Mapping[str, str], queries: Sequence[str]) -> None:
    """Refuses a split of other queries, which would leave every part empty without a word."""
    if not any(query in parts for query in queries):
        raise InputError(
            "the split names none of the queries",
            expected=f"ids such as {', '.join(map(repr, queries[:3]))}",
            actual=", ".join(map(repr, list(parts)[:3])) or "nothing",
            fix="give the split of this data set",
        )


def _break_down(
    ranks: Mapping[str, PositiveRanks], part: Property, built: Mapping[str, Metric], bins: int
) -> Breakdown:
    whole = split_into_bins(part, bins)
    members: list[dict[str, frozenset[str]]] = [{} for _ in whole.labels]
    for query, numbers in whole.numbers.items():
        if query not in ranks:
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
                {query: judge_part(ranks[query], ids, built) for query, ids in chosen.items()},
            )
            for label, chosen in zip(whole.labels, members, strict=True)
        ),
        sum(len(part.positions) for part in ranks.values()) - known,
    )


def _judge_metric(ranks: PositiveRanks, wanted: frozenset[str], name: str, metric: Metric) -> float:
    counted = apply_protocol(Judgement(ranks.grades), split_name(name)[0]).grades
    judged = {id for id in wanted if id in counted and (not metric.localises or id in ranks.overlaps)}
    if not judged:
        return float("nan")
    positions = {id: position for id, position in ranks.positions.items() if position is not None}
    found = sorted(judged & positions.keys(), key=positions.__getitem__)
    removed = [*ranks.ignored, *(position for id, position in positions.items() if id not in judged)]
    overlaps = np.array([ranks.overlaps.get(id, 0.0) for id in found])
    return metric.score(count_ranks([positions[id] for id in found], removed), len(judged), overlaps)


def _split_words(name: str, pairs: Sequence[tuple[str, str, str]]) -> Bins:
    words = sorted({value for _, _, value in pairs})
    if len(words) > MOST_WORDS:
        raise InputError(
            f"{name!r} has too many values to show a figure for each",
            expected=f"numbers, or at most {MOST_WORDS} different words",
            actual=f"{len(words):,}, such as {', '.join(map(repr, words[:3]))}",
            fix="choose another attribute",
        )
    numbers = [words.index(value) for _, _, value in pairs]
    return Bins(tuple(words), _by_query([(query, id) for query, id, _ in pairs], numbers))


def _by_query(pairs: Sequence[tuple[str, str]], numbers: Sequence[int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (query, id), number in zip(pairs, numbers, strict=True):
        found.setdefault(query, {})[id] = number
    return found


def _format_range(values: NDArray[np.float64]) -> str:
    """Lowest and highest value, with as few digits as distinguish them."""
    low, high = float(values.min()), float(values.max())
    digits = next((count for count in (2, 3, 4) if f"{low:.{count}g}" != f"{high:.{count}g}"), 3)
    return f"{low:.{digits}g}" if low == high else f"{low:.{digits}g}–{high:.{digits}g}"

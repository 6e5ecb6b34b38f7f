"""The figures of one run: means with intervals, breakdowns, examples, and where they came from.

In: a RunResult. Out: a Summary, the one source of tables, pages and JSON files (summary_file.py writes and reads it).
Every mean has a 95 % interval by a bootstrap over the queries (1,000 samples, seed 0), computed once, here.
"""

import math
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from resight import recipe as recipes
from resight.evaluate.results import LOCATE, AnsweredImage, Bin, EmbeddingMap, GeoPosition, JudgedQuery, RunResult
from resight.evaluate.statistics.reliability import auc
from resight.evaluate.statistics.tests import bootstrap_interval
from resight.types import Box

SEED = 0
WORST, BEST = 6, 3  # example queries
INTERVAL_NOTE = "±: half the 95 % interval of a bootstrap over the queries (1,000 samples, seed 0)."
ALWAYS = ("resight", "numpy", "onnxruntime", "faiss-cpu", "pylance", "opencv-python-headless")
IF_LOADED = {"torch": "torch", "timm": "timm", "transformers": "transformers"}  # module → distribution


@dataclass(frozen=True)
class Figure:
    """A mean over queries and its interval; NaN if no query has a value."""

    mean: float
    low: float
    high: float
    convention: str = ""

    def __str__(self) -> str:
        """Mean and half the interval; a dash if no query has a value."""
        return "–" if math.isnan(self.mean) else f"{self.mean:.4f} ±{(self.high - self.low) / 2:.3f}"


@dataclass(frozen=True)
class QuerySummary:
    id: str
    stratum: str
    best: str  # the first answer
    probability: float | None  # of the first answer
    seconds: float
    encode_seconds: float
    stages: Mapping[str, float]
    first_positive: int | None  # its rank, from 1
    judged: bool  # whether the query has a positive
    values: Mapping[str, float]  # metric → value

    @property
    def rank_seconds(self) -> float:
        """Until the order of the images is known."""
        return self.seconds - self.stages.get(LOCATE, 0.0)


@dataclass(frozen=True)
class StratumSummary:
    """The queries with one value of the attribute that figures are broken down by."""

    queries: int
    figures: Mapping[str, Figure]


@dataclass(frozen=True)
class BinSummary:
    label: str
    positives: int
    queries: int
    figures: Mapping[str, Figure]


@dataclass(frozen=True)
class BreakdownSummary:
    name: str
    convention: str
    left_out: int  # positives whose value is unknown
    bins: tuple[BinSummary, ...]


@dataclass(frozen=True)
class Example:
    """One query with its answers."""

    id: str
    path: Path | None
    box: Box | None
    value: float
    first_positive: int | None
    positives: int
    answers: tuple[AnsweredImage, ...]


@dataclass(frozen=True)
class Examples:
    """The worst and best queries by one metric, the one with most distinct values."""

    metric: str = ""
    worst: tuple[Example, ...] = ()
    best: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Versions, machine and seeds."""

    made_by: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] | str = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    recipe: Mapping[str, Any]  # as a recipe file has it
    dataset: str
    database: int
    figures: Mapping[str, Figure]  # metric → its mean over the queries with positives
    queries: tuple[QuerySummary, ...]
    unreadable: tuple[str, ...] = ()
    strata: Mapping[str, StratumSummary] = field(default_factory=dict)
    breakdowns: tuple[BreakdownSummary, ...] = ()
    examples: Examples = field(default_factory=Examples)
    map: EmbeddingMap | None = None
    query_positions: Mapping[str, GeoPosition] = field(default_factory=dict)
    image_positions: Mapping[str, GeoPosition] = field(default_factory=dict)
    auc: float | None = None  # of the first answer's probability, queries with positives against those without
    index_seconds: float | None = None
    cached: int = 0  # images whose features came from the cache
    provenance: Provenance = field(default_factory=Provenance)

    @cached_property
    def judged(self) -> tuple[QuerySummary, ...]:
        """The queries that have values."""
        return tuple(query for query in self.queries if query.values)

    def values(self, metric: str) -> dict[str, float]:
        """Query → value of the metric."""
        return {query.id: query.values[metric] for query in self.judged if metric in query.values}

    @property
    def rank_seconds(self) -> float:
        """Median time until the images are in order: locating boxes takes the same time however fast the search was."""
        return _median([query.rank_seconds for query in self.queries])

    @property
    def search_seconds(self) -> float:
        return _median([query.seconds for query in self.queries])

    @property
    def encode_seconds(self) -> float:
        return _median([query.encode_seconds for query in self.queries])

    @property
    def total_seconds(self) -> float:
        """Median of encoding and searching a query."""
        return _median([query.encode_seconds + query.seconds for query in self.queries])


def summarise(result: RunResult) -> Summary:
    judged = result.judged
    groups = {
        name: [query for query in judged if query.stratum == name]
        for name in sorted({query.stratum for query in judged} - {""})
    }
    return Summary(
        recipe=recipes.to_table(result.recipe),
        dataset=result.dataset,
        database=result.database,
        figures={name: make_figure(result.values(name), result.conventions[name]) for name in result.metrics},
        queries=tuple(_summarise_query(query) for query in result.queries),
        unreadable=result.unreadable,
        strata={
            name: StratumSummary(
                len(queries),
                {metric: make_figure([query.values[metric] for query in queries]) for metric in result.metrics},
            )
            for name, queries in groups.items()
        },
        breakdowns=tuple(
            BreakdownSummary(part.name, part.convention, part.left_out, tuple(map(_summarise_bin, part.bins)))
            for part in result.strata
        ),
        examples=choose_examples(result),
        map=result.map,
        query_positions=result.query_positions,
        image_positions=result.image_positions,
        auc=_find_auc(result),
        index_seconds=result.index_seconds,
        cached=result.cached,
        provenance=Provenance(
            f"resight {metadata.version('resight')}",
            list_versions(),
            describe_machine(),
            {"bootstrap": SEED, "map": 0},
        ),
    )


def make_figure(values: Sequence[float], convention: str = "") -> Figure:
    low, high = bootstrap_interval(np.array(values), np.random.default_rng(SEED))
    return Figure(average(values), low, high, convention)


def average(values: Sequence[float]) -> float:
    """The mean without NaN; NaN if nothing is left."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def describe_metrics(summary: Summary) -> list[str]:
    """Notes on the meaning of each metric, and on queries and images that are left out."""
    notes = [f"{name}: {figure.convention}" for name, figure in summary.figures.items()]
    without = len(summary.queries) - len(summary.judged)
    if without:
        notes.append(f"{without} queries have no positive in the database; the figures above leave them out.")
        if summary.auc is not None:
            known = len(summary.judged)
            notes.append(
                f"AUC of the first answer's probability, {known} queries with positives against {without} without: "
                f"{summary.auc:.4f}"
            )
    if summary.unreadable:
        notes.append(f"{len(summary.unreadable)} database images could not be read")
    return notes


def describe_cache(summaries: Sequence[Summary]) -> list[str]:
    found = max(summary.cached for summary in summaries)
    if not found:
        return []
    return [f"up to {found:,} images came from the cache of features: encoding times are not those of the networks"]


def choose_examples(result: RunResult) -> Examples:
    """The worst and best queries; equal ones ordered by the rank of their first positive, then by id."""
    metric = _choose_metric(result)
    known = [q for q in result.judged if not math.isnan(q.values.get(metric, math.nan)) and q.positive_ranks]
    ordered = sorted(known, key=lambda query: (query.values[metric], -_first_rank(query), query.query_id))
    worst = ordered[:WORST]
    best = [query for query in reversed(ordered) if query not in worst][:BEST]
    return Examples(
        metric,
        tuple(_make_example(query, metric) for query in worst),
        tuple(_make_example(query, metric) for query in best),
    )


def list_versions() -> dict[str, str]:
    """Distribution → version; libraries of networks only if this process has loaded them."""
    names = [*ALWAYS, *(name for module, name in IF_LOADED.items() if module in sys.modules)]
    found = {name: _find_version(name) for name in names}
    return {"python": platform.python_version()} | {name: version for name, version in found.items() if version}


def describe_machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _find_cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": _find_memory(),
    }


def _summarise_query(query: JudgedQuery) -> QuerySummary:
    return QuerySummary(
        query.query_id,
        query.stratum,
        query.best_id,
        query.best_probability,
        query.seconds,
        query.encode_seconds,
        query.stages,
        query.positive_ranks.first if query.positive_ranks else None,
        query.positive_ranks is not None,
        query.values,
    )


def _summarise_bin(part: Bin) -> BinSummary:
    names = list(next(iter(part.values.values()), {}))
    figures = {name: make_figure([values[name] for values in part.values.values()]) for name in names}
    return BinSummary(part.label, part.positives, len(part.values), figures)


def _choose_metric(result: RunResult) -> str:
    """The metric with most distinct values: average precision separates more queries than recall@1 does."""
    counts = {
        name: len(set(result.values(name))) for name in result.metrics if all(name in q.values for q in result.judged)
    }
    return max(counts, key=lambda name: counts[name], default="")


def _first_rank(query: JudgedQuery) -> float:
    found = query.positive_ranks.first if query.positive_ranks else None
    return math.inf if found is None else found


def _make_example(query: JudgedQuery, metric: str) -> Example:
    ranks = query.positive_ranks
    return Example(
        query.query_id,
        query.path,
        query.box,
        query.values[metric],
        ranks.first if ranks else None,
        len(ranks.positions) if ranks else 0,
        query.answers,
    )


def _find_auc(result: RunResult) -> float | None:
    known = [query.best_probability for query in result.judged if query.best_probability is not None]
    unknown = [q.best_probability for q in result.queries if not q.values and q.best_probability is not None]
    return auc(known, unknown) if known and unknown else None


def _median(seconds: Sequence[float]) -> float:
    return float(np.median(seconds)) if seconds else math.nan


def _find_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _find_cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _find_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system answers
        return None

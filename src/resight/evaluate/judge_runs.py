"""Judge the rankings of a whole run, and compare runs by paired tests.

In: rankings of many queries from any system, read one query at a time. Out: a JudgedRun: one figure per metric with
its interval; and of several judged runs, their differences to one of them (`compare_runs`).

Queries that cannot be judged are counted in the answer:

- A query of the run without a judgement is left out (`unjudged`).
- A query without positives is in no figure of single queries (`without_positives`), but in uap and calibration_error.
- A run that lacks a query with positives is refused; with `missing="zero"` the query counts as an empty ranking, with
  `missing="leave"` it is left out.
- A query without a positive under a protocol is left out of that protocol's figures (`RunFigure.left_out`).
- A ranking with an id that the database lacks is refused, if `known` gives the ids of the database.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.evaluate.judge_query import count_ranks, judge_positions, list_positives, list_relevant, plan_metrics
from resight.evaluate.metrics import Pairs, RunMetric, build
from resight.evaluate.presentable import Presentable
from resight.evaluate.protocols import apply_protocol, split_name
from resight.evaluate.rank_positions import Ids, find_positions
from resight.evaluate.statistics.tests import TESTS, Compared, bootstrap_interval, compare_many, correct
from resight.evaluate.table import Table
from resight.frames import make_frame
from resight.types import Judgement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ScoredRanking = tuple[str, Ids, ArrayLike | None]  # query id, ids best first, their scores if there are any
Missing = Literal["refuse", "zero", "leave"]
LEVEL = 0.95
NOTE = "±: half the 95 % interval of a bootstrap over the queries (1,000 samples)."
SAMPLES = 1000
MOST_CELLS = 20_000_000  # limit of samples × positives for the interval of a figure of the whole run
NAMED = 3  # ids in a message


@dataclass(frozen=True)
class RunFigure:
    """A figure of a run with its 95 % interval, a bootstrap over the queries.

    Attributes:
        value: A mean over the queries, or one value of all of them.
        low: Lower end of the interval.
        high: Upper end of the interval.
        queries: Number of queries with a value.
        left_out: Number of judged queries without a value.
        convention: How the metric is defined.
    """

    value: float
    low: float
    high: float
    queries: int
    left_out: int
    convention: str

    def __str__(self) -> str:
        """Value and half the interval; a dash without a value."""
        return "–" if np.isnan(self.value) else f"{self.value:.4f} ±{(self.high - self.low) / 2:.3f}"


@dataclass(frozen=True)
class JudgedRun(Presentable):
    """The figures of a run; `resight.judge` returns it.

    Attributes:
        values: Query → metric → value, of the metrics of one query.
        figures: Metric → its figure.
        unjudged: Queries of the run without a judgement.
        without_positives: Queries without positives.
        missing: Queries with positives that the run lacks.
        not_found: Number of positives that are not in their rankings.
    """

    values: Mapping[str, Mapping[str, float]]
    figures: Mapping[str, RunFigure]
    unjudged: tuple[str, ...]
    without_positives: tuple[str, ...]
    missing: tuple[str, ...]
    not_found: int

    @property
    def table(self) -> Table:
        """One row per metric, and what each means."""
        rows = [(name, str(one), str(one.queries)) for name, one in self.figures.items()]
        notes = [f"{name}: {one.convention}" for name, one in self.figures.items()]
        return Table(f"{len(self.values):,} queries", ("metric", "value", "queries"), tuple(rows), (NOTE, *notes))

    def to_frame(self, per_query: bool = False) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Args:
            per_query: One row per query, with its values, rather than one per metric.

        Returns:
            Columns metric, value, low, high and queries; per query: query, then each metric.
        """
        if per_query:
            names = {name: [values[name] for values in self.values.values()] for name in _list_metrics(self)}
            return make_frame({"query": list(self.values), **names})
        columns = ("value", "low", "high", "queries")
        found = {name: [getattr(one, name) for one in self.figures.values()] for name in columns}
        return make_frame({"metric": list(self.figures), **found})

    def plot(self, metrics: Sequence[str] = ()) -> "Figure":
        """Draw the figures with their intervals by matplotlib.

        Args:
            metrics: The metrics to draw; default: all.

        Returns:
            A figure of matplotlib. A notebook shows it; `savefig` writes a file.
        """
        from resight.evaluate.plots import plot_figures

        return plot_figures({"": {name: (one.value, one.low, one.high) for name, one in self.figures.items()}}, metrics)

    def compare(self, others: Mapping[str, "JudgedRun"], correction: str = "holm") -> dict[str, tuple[Compared, ...]]:
        """Compare other runs with this one by paired tests.

        Args:
            others: Name → run, judged by the same truth.
            correction: For the number of comparisons: holm, benjamini_hochberg or none.

        Returns:
            Metric → the difference of each to this run, with its interval and p-values.
        """
        return compare_runs(self, others, np.random.default_rng(0), correction=correction)


def judge_rankings(
    rankings: Iterable[ScoredRanking],
    judgements: Mapping[str, Judgement],
    names: Sequence[str],
    generator: np.random.Generator,
    *,
    known: Container[str] | None = None,
    missing: Missing = "refuse",
) -> JudgedRun:
    """Judge the rankings of a whole run, from any system.

    A ranking is judged in the given order; only metrics of a whole run look at scores.

    Args:
        rankings: Per query its id, the ids of its answers, best first, and their scores or None. Metrics of a whole
            run (uap, calibration_error) iterate over them again.
        judgements: Query → its ground truth.
        names: Metrics, as for `judge`, and those of a whole run.
        generator: Source of randomness for the intervals.
        known: The ids of the database; a ranking with another id is refused.
        missing: What to do about a query with positives that the run lacks: "refuse", "zero" (it counts as an empty
            ranking) or "leave" (it is left out).

    Returns:
        Figures with intervals, values per query, and which queries were left out.

    Raises:
        InputError: The run lacks a query, names an unknown id, or can be read only once.
        RecipeError: A metric is unknown.

    Examples:
        >>> import numpy as np
        >>> from resight.evaluate.judge_runs import judge_rankings
        >>> from resight.types import Judgement
        >>> run = [("q1", ["a", "b"], None), ("q2", ["a", "b"], None)]
        >>> truth = {"q1": Judgement({"a": 1}), "q2": Judgement({"b": 1})}
        >>> judge_rankings(run, truth, ["ap"], np.random.default_rng(0)).figures["ap"].value
        0.75
    """
    metrics = {name: build(name) for name in names}
    single = [name for name, metric in metrics.items() if not isinstance(metric, RunMetric)]
    if len(single) < len(names) and iter(rankings) is rankings:
        raise InputError(
            "these rankings can be read only once",
            expected=f"rankings that can be read again, for {', '.join(name for name in names if name not in single)}",
            actual=type(rankings).__name__,
            fix="pass a list, or an object that can be iterated repeatedly, as a RunFile does",
        )
    run = _read(rankings, judgements, single, known, missing)
    seed = int(generator.integers(2**63))
    figures = {
        name: _measure_run(metric, _pair_all(rankings, judgements, run, name), judgements, run, seed)
        if isinstance(metric, RunMetric)
        else _average([values[name] for values in run.values.values()], metric.convention, seed)
        for name, metric in metrics.items()
    }
    return JudgedRun(run.values, figures, run.unjudged, run.without_positives, run.missing, run.not_found)


def compare_runs(
    reference: JudgedRun,
    others: Mapping[str, JudgedRun],
    generator: np.random.Generator,
    tests: Sequence[str] = TESTS,
    correction: str = "holm",
) -> dict[str, tuple[Compared, ...]]:
    """Metric of one query → each of the others against the reference, over the queries that both have.

    The correction covers all comparisons made here, every run by every metric, one test at a time.
    """
    queries = list(reference.values)
    seed = int(generator.integers(2**63))
    found = {
        name: compare_many(
            _list_values(reference, queries, name),
            {label: _list_values(other, queries, name) for label, other in others.items()},
            np.random.default_rng(seed),
            tests,
            correction="none",
        )
        for name in _list_metrics(reference)
    }
    flat = [(name, number) for name, compared in found.items() for number in range(len(compared))]
    corrected = {
        test: dict(zip(flat, correct([found[name][n].p[test] for name, n in flat], correction).tolist(), strict=True))
        for test in tests
    }
    return {
        name: tuple(
            replace(one, corrected={test: corrected[test][name, number] for test in tests})
            for number, one in enumerate(compared)
        )
        for name, compared in found.items()
    }


@dataclass(frozen=True)
class _Run:
    values: dict[str, dict[str, float]]
    unjudged: tuple[str, ...]
    without_positives: tuple[str, ...]
    missing: tuple[str, ...]
    not_found: int
    empty: tuple[str, ...]  # those of `missing` that count as empty rankings


def _read(
    rankings: Iterable[ScoredRanking],
    judgements: Mapping[str, Judgement],
    names: Sequence[str],
    known: Container[str] | None,
    missing: Missing,
) -> _Run:
    plan = plan_metrics(names)
    values: dict[str, dict[str, float]] = {}
    unjudged, without, seen, not_found = [], [], set(), 0
    for query, ids, _ in rankings:
        if query in seen:
            raise InputError(
                f"the query {query!r} is ranked twice",
                expected="one ranking for each query",
                fix="keep one of them",
            )
        seen.add(query)
        if known is not None:
            _refuse_unknown(query, ids, known)
        if query not in judgements:
            unjudged.append(query)
        elif not list_positives(judgements[query]):
            without.append(query)
        else:
            positions = find_positions(ids, list_relevant(judgements[query]))
            values[query] = judge_positions(plan, positions, judgements[query], None)
            not_found += sum(id not in positions for id in list_positives(judgements[query]))
    absent = tuple(query for query in judgements if query not in seen and list_positives(judgements[query]))
    _require_queries(values, unjudged, without, judgements)
    if absent and missing == "refuse":
        raise InputError(
            f"the run lacks {_name(absent)}",
            expected=f"a ranking for each of the {len(values) + len(absent):,} queries with positives",
            actual=f"{len(values):,}",
            fix='rank them too, or choose missing="zero" or "leave" (on the command line: --missing)',
        )
    empty = absent if missing == "zero" else ()
    for query in empty:
        values[query] = judge_positions(plan, {}, judgements[query], None)
        not_found += len(list_positives(judgements[query]))
    return _Run(values, tuple(unjudged), tuple(without), absent, not_found, empty)


def _pair_all(
    rankings: Iterable[ScoredRanking], judgements: Mapping[str, Judgement], run: _Run, name: str
) -> Iterable[Pairs]:
    return _PairsOfRun(rankings, judgements, run.empty, split_name(name)[0], name)


@dataclass(frozen=True)
class _PairsOfRun:
    """Each judged query as Pairs, computed again on each iteration."""

    rankings: Iterable[ScoredRanking]
    judgements: Mapping[str, Judgement]
    empty: Sequence[str]
    protocol: str | None
    metric: str

    def __iter__(self) -> Iterator[Pairs]:
        for query, ids, scores in self.rankings:
            if query in self.judgements:
                yield pair(query, ids, scores, apply_protocol(self.judgements[query], self.protocol), self.metric)
        for query in self.empty:
            yield pair(query, (), (), apply_protocol(self.judgements[query], self.protocol), self.metric)


def pair(query: str, ids: Ids, scores: ArrayLike | None, judgement: Judgement, metric: str = "uap") -> Pairs:
    """One query as metrics of a whole run take it."""
    array = _read_scores(query, ids, scores, metric)
    positives = list_positives(judgement)
    positions = find_positions(ids, list_relevant(judgement))
    removed = [positions[id] for id in judgement.ignored if id in positions]
    hits = count_ranks(sorted(positions[id] for id in positives if id in positions), removed) - 1
    return Pairs(np.delete(array, removed) if removed else array, hits, len(positives))


def _read_scores(query: str, ids: Ids, scores: ArrayLike | None, metric: str) -> NDArray[np.float64]:
    if scores is None:
        raise InputError(
            f"{metric} needs scores", expected=f"a score for each image of {query!r}", actual="None", fix="pass them"
        )
    array = np.asarray(scores, dtype=np.float64)
    if array.shape != (len(ids),) or not np.isfinite(array).all() or (array[1:] > array[:-1]).any():
        raise InputError(
            f"the scores of the query {query!r} cannot be used",
            expected=f"{len(ids):,} finite numbers, best first",
            actual=f"shape {array.shape}, {int((~np.isfinite(array)).sum())} not finite, "
            f"{int((array[1:] > array[:-1]).sum())} above the one before",
            fix="give one score for each id, not increasing",
        )
    return array


def _average(values: Sequence[float], convention: str, seed: int) -> RunFigure:
    array = np.array(values, dtype=np.float64)
    known = array[~np.isnan(array)]
    low, high = bootstrap_interval(known, np.random.default_rng(seed), LEVEL, SAMPLES)
    mean = float(known.mean()) if len(known) else float("nan")
    return RunFigure(mean, low, high, len(known), len(array) - len(known), convention)


def _measure_run(
    metric: RunMetric, queries: Iterable[Pairs], judgements: Mapping[str, Judgement], run: _Run, seed: int
) -> RunFigure:
    number = len(run.values) + len(run.without_positives)
    positives = sum(len(list_positives(judgements[query])) for query in run.values)
    samples = int(np.clip(MOST_CELLS // max(positives, 1), 100, SAMPLES))
    drawn = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), size=samples)
    value, *others = metric.score_run(queries, np.vstack([np.ones((1, number), dtype=np.int64), drawn]))
    low, high = np.nanquantile(others, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if np.isfinite(value) else (np.nan, np.nan)
    return RunFigure(float(value), float(low), float(high), number, 0, metric.convention)


def _require_queries(
    values: Mapping[str, object], unjudged: Sequence[str], without: Sequence[str], judgements: Mapping[str, Judgement]
) -> None:
    if not values:
        judged = [query for query, judgement in judgements.items() if list_positives(judgement)]
        raise InputError(
            "no query of the run can be judged",
            expected=f"queries such as {_name(judged)}" if judged else "judgements with positives",
            actual=f"{_name([*unjudged, *without])}" if unjudged or without else "no queries",
            fix="use the query ids of the judgements",
        )


def _refuse_unknown(query: str, ids: Ids, known: Container[str]) -> None:
    unknown = [str(id) for id in ids if id not in known]
    if unknown:
        raise InputError(
            f"the ranking of {query!r} has images that the database lacks",
            expected="ids of the database",
            actual=_name(unknown),
            fix="correct the ids; `resight search … --json` prints the ids of the database",
        )


def _name(ids: Sequence[str]) -> str:
    """ "'a', 'b', 'c' and 4 more"."""
    more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    return ", ".join(map(repr, ids[:NAMED])) + more


def _list_metrics(run: JudgedRun) -> list[str]:
    return list(next(iter(run.values.values()), {}))


def _list_values(run: JudgedRun, queries: Sequence[str], name: str) -> list[float]:
    return [run.values[query][name] if query in run.values else float("nan") for query in queries]

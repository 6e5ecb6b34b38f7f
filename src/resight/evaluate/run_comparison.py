"""Judged runs of the same queries in, their differences to one of them out, with paired tests."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from resight.evaluate.rankings import JudgedRun
from resight.evaluate.statistics.corrections import correct
from resight.evaluate.statistics.significance import TESTS, Compared, compare_many


def compare_runs(
    reference: JudgedRun,
    others: Mapping[str, JudgedRun],
    generator: np.random.Generator,
    tests: Sequence[str] = TESTS,
    correction: str = "holm",
) -> dict[str, tuple[Compared, ...]]:
    """Metric of one query → each of the others against the reference, over the queries that both have.

    The correction allows for all comparisons that are made here: of every run by every metric, one test at a time.
    """
    queries = list(reference.values)
    seed = int(generator.integers(2**63))
    found = {
        name: compare_many(
            _line_up(reference, queries, name),
            {label: _line_up(other, queries, name) for label, other in others.items()},
            np.random.default_rng(seed),
            tests,
            correction="none",
        )
        for name in _list_metrics(reference)
    }
    flat = [(name, number) for name, compared in found.items() for number in range(len(compared))]
    allowed = {
        test: dict(zip(flat, correct([found[name][n].p[test] for name, n in flat], correction).tolist(), strict=True))
        for test in tests
    }
    return {
        name: tuple(
            replace(one, corrected={test: allowed[test][name, number] for test in tests})
            for number, one in enumerate(compared)
        )
        for name, compared in found.items()
    }


def _list_metrics(run: JudgedRun) -> list[str]:
    return list(next(iter(run.values.values()), {}))


def _line_up(run: JudgedRun, queries: Sequence[str], name: str) -> list[float]:
    return [run.values[query][name] if query in run.values else float("nan") for query in queries]

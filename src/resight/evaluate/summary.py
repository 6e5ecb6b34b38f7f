"""Where figures came from: versions of what took part, and the machine, as plain values. Nothing is loaded for it.

A RunResult → a Table for people and plain values for programs. Every figure carries its convention.
"""

import dataclasses
import math
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from resight import recipe as recipes
from resight.evaluate.pages.query_examples import list_examples
from resight.evaluate.records import SCHEMA
from resight.evaluate.results import Bin, RunResult
from resight.evaluate.statistics.reliability import auc
from resight.evaluate.statistics.tests import bootstrap_interval
from resight.evaluate.table import Table

ALWAYS = ("resight", "numpy", "onnxruntime", "faiss-cpu", "pylance", "opencv-python-headless")
IF_LOADED = {"torch": "torch", "timm": "timm", "transformers": "transformers"}  # module → distribution


def list_versions() -> dict[str, str]:
    """Distribution → version; the networks' libraries only where this process has loaded them."""
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
    except (AttributeError, OSError, ValueError):  # not every system tells
        return None


SEED = 0


def tabulate(result: RunResult) -> Table:
    """One row for all queries and one for each stratum; a figure with its 95 % interval."""
    groups = {"all": list(result.judged)}
    for name in sorted({query.stratum for query in result.judged} - {""}):
        groups[name] = [query for query in result.judged if query.stratum == name]
    rows = [
        (
            name,
            str(len(queries)),
            *(say_figure([query.values[metric] for query in queries]) for metric in result.metrics),
        )
        for name, queries in groups.items()
    ]
    title = f"{result.recipe.name}: {result.dataset}, {result.database:,} images"
    encoding, searching = _median_seconds(result)
    notes = (
        describe_interval(),
        *describe_metrics(result),
        f"indexing {result.index_seconds:.1f} s; a query, median: encoding {encoding:.3f} s, search {searching:.3f} s",
        *describe_cache([result]),
    )
    return Table(title, ("queries", "n", *result.metrics), tuple(rows), notes)


def describe_cache(results: Sequence[RunResult]) -> list[str]:
    found = max(result.cached for result in results)
    if not found:
        return []
    return [f"up to {found:,} pictures came from the cache of features: times to encode are not those of the networks"]


def summarise(result: RunResult) -> dict[str, Any]:
    """Everything, as plain values."""
    judged = result.judged
    encoding, searching = _median_seconds(result)
    return {
        "schema": SCHEMA,
        "recipe": recipes.to_table(result.recipe),
        "dataset": result.dataset,
        "database": result.database,
        "queries": len(judged),
        "queries_without_positives": len(result.queries) - len(judged),
        "unreadable": list(result.unreadable),
        "metrics": {
            name: _interval(result.values(name)) | {"convention": result.conventions[name]} for name in result.metrics
        },
        "strata": {
            stratum: {
                name: float(np.nanmean([query.values[name] for query in judged if query.stratum == stratum]))
                for name in result.metrics
            }
            for stratum in sorted({query.stratum for query in judged} - {""})
        },
        "breakdowns": [
            {
                "name": part.name,
                "convention": part.convention,
                "positives_left_out": part.left_out,
                "bins": [_summarise_bin(one) for one in part.bins],
            }
            for part in result.strata
        ],
        "examples": list_examples(result),
        "map": None if result.map is None else dataclasses.asdict(result.map),
        "positions": {
            "queries": {id: dataclasses.asdict(spot) for id, spot in result.query_spots.items()},
            "database": {id: dataclasses.asdict(spot) for id, spot in result.spots.items()},
        },
        "auc_known_against_unknown": _auc(result),
        "index_seconds": result.index_seconds,
        "pictures_from_cache": result.cached,
        "seconds_a_query": float(np.median([query.encode_seconds + query.seconds for query in result.queries])),
        "encode_seconds_a_query": encoding,
        "search_seconds_a_query": searching,
        "per_query": [
            {
                "id": query.query_id,
                "stratum": query.stratum,
                "best": query.best_id,
                "probability": query.best_probability,
                "seconds": query.seconds,
                "encode_seconds": query.encode_seconds,
                "stages": dict(query.stages),
                "first_positive": query.trace.first if query.trace else None,
                "judged": query.trace is not None,
                **query.values,
            }
            for query in result.queries
        ],
        "made_by": f"resight {metadata.version('resight')}",
        "versions": list_versions(),
        "machine": describe_machine(),
        "seeds": {"bootstrap": SEED, "map": 0},
    }


def say_figure(values: Sequence[float]) -> str:
    """Mean and half of the interval; a dash where no query has a value."""
    if all(math.isnan(value) for value in values):
        return "–"
    interval = _interval(values)
    return f"{interval['mean']:.4f} ±{(interval['high'] - interval['low']) / 2:.3f}"


def describe_interval() -> str:
    return "± is half of the 95 % interval of a bootstrap over the queries (1,000 samples, seed 0)."


def describe_metrics(result: RunResult) -> list[str]:
    """What each metric means, and which queries and images are left out."""
    notes = [f"{name}: {result.conventions[name]}" for name in result.metrics]
    without = len(result.queries) - len(result.judged)
    if without:
        notes.append(f"{without} queries have no positive in the data base; they are in no figure above.")
        area = _auc(result)
        if area is not None:
            known = len(result.judged)
            notes.append(f"AUC of the best answer's probability, {known} known against {without} unknown: {area:.4f}")
    if result.unreadable:
        notes.append(f"{len(result.unreadable)} database images could not be read")
    return notes


def _summarise_bin(one: Bin) -> dict[str, Any]:
    names = list(next(iter(one.values.values()), {}))
    return {
        "label": one.label,
        "positives": one.positives,
        "queries": len(one.values),
        "metrics": {name: _interval([values[name] for values in one.values.values()]) for name in names},
    }


def _median_seconds(result: RunResult) -> tuple[float, float]:
    """Of encoding and of searching a query."""
    encoding = np.median([query.encode_seconds for query in result.queries])
    return float(encoding), float(np.median([query.seconds for query in result.queries]))


def _auc(result: RunResult) -> float | None:
    known = [query.best_probability for query in result.judged if query.best_probability is not None]
    unknown = [q.best_probability for q in result.queries if not q.values and q.best_probability is not None]
    return auc(known, unknown) if known and unknown else None


def _interval(values: Sequence[float]) -> dict[str, float]:
    low, high = bootstrap_interval(np.array(values), np.random.default_rng(SEED))
    known = [value for value in values if not math.isnan(value)]
    return {"mean": float(np.mean(known)) if known else math.nan, "low": low, "high": high}

"""A RunResult → a table for the terminal, JSON, HTML and LaTeX. Every figure carries its convention."""

import html
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from resight import recipe as recipes
from resight.evaluate.calibration import auc
from resight.evaluate.run import JudgedQuery, RunResult
from resight.evaluate.significance import bootstrap_interval

SEED = 0


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def tabulate(result: RunResult) -> Table:
    """One row for all queries and one for each stratum; a figure with its 95 % interval."""
    judged = [query for query in result.queries if query.values]
    groups = {"all": judged}
    for name in sorted({query.stratum for query in judged} - {""}):
        groups[name] = [query for query in judged if query.stratum == name]
    rows = [
        (name, str(len(queries)), *(_figure([query.values[metric] for query in queries]) for metric in result.metrics))
        for name, queries in groups.items()
    ]
    title = f"{result.recipe.name}: {result.dataset}, {result.database:,} images"
    return Table(title, ("queries", "n", *result.metrics), tuple(rows), tuple(_notes(result, judged)))


def summarise(result: RunResult) -> dict[str, Any]:
    """Everything, as plain values."""
    judged = [query for query in result.queries if query.values]
    return {
        "recipe": recipes.to_table(result.recipe),
        "dataset": result.dataset,
        "database": result.database,
        "queries": len(judged),
        "queries_without_positives": len(result.queries) - len(judged),
        "unreadable": list(result.unreadable),
        "metrics": {
            name: _interval([query.values[name] for query in judged]) | {"convention": result.conventions[name]}
            for name in result.metrics
        },
        "strata": {
            stratum: {
                name: float(np.nanmean([query.values[name] for query in judged if query.stratum == stratum]))
                for name in result.metrics
            }
            for stratum in sorted({query.stratum for query in judged} - {""})
        },
        "auc_known_against_unknown": _auc(result, judged),
        "index_seconds": result.index_seconds,
        "seconds_a_query": float(np.median([query.seconds for query in result.queries])),
        "per_query": [
            {
                "id": query.query_id,
                "stratum": query.stratum,
                "best": query.best_id,
                "probability": query.best_probability,
                "seconds": query.seconds,
                **query.values,
            }
            for query in result.queries
        ],
        "made_by": f"resight {metadata.version('resight')}",
        "machine": f"{platform.machine()} {platform.system()}, Python {platform.python_version()}",
        "bootstrap_seed": SEED,
    }


def to_json(result: RunResult) -> str:
    return json.dumps(summarise(result), indent=1, ensure_ascii=False, default=str) + "\n"


def to_html(result: RunResult) -> str:
    table = tabulate(result)
    head = "".join(f"<th scope=col>{html.escape(column)}</th>" for column in table.columns)
    body = "".join(
        f"<tr><th scope=row>{html.escape(row[0])}</th>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(table.title)}</title>"
        "<meta name=viewport content='width=device-width'><style>:root{color-scheme:light dark}"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
        "div{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
        "th,td{padding:.35rem .9rem;text-align:right;border-bottom:1px solid #8886}"
        "tr>:first-child{text-align:left}</style>"
        f"<h1>{html.escape(table.title)}</h1><div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"<h2>What the figures mean</h2><ul>{notes}</ul></html>\n"
    )


def to_latex(result: RunResult) -> str:
    table = tabulate(result)
    lines = [
        f"% {table.title}",
        *(f"% {note}" for note in table.notes),
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule",
        _latex_row(table.columns),
        r"\midrule",
        *(_latex_row(row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _notes(result: RunResult, judged: list[JudgedQuery]) -> list[str]:
    notes = [f"{name}: {result.conventions[name]}" for name in result.metrics]
    notes.append("± is half of the 95 % interval of a bootstrap over the queries (1,000 samples, seed 0).")
    without = len(result.queries) - len(judged)
    if without:
        notes.append(f"{without} queries have no positive in the data base; they are in no figure above.")
        area = _auc(result, judged)
        if area is not None:
            notes.append(
                f"AUC of the best answer's probability, {len(judged)} known against {without} unknown: {area:.4f}"
            )
    if result.unreadable:
        notes.append(f"{len(result.unreadable)} database images could not be read")
    notes.append(
        f"indexing {result.index_seconds:.1f} s, median search {np.median([q.seconds for q in result.queries]):.3f} s"
    )
    return notes


def _auc(result: RunResult, judged: list[JudgedQuery]) -> float | None:
    known = [query.best_probability for query in judged if query.best_probability is not None]
    unknown = [q.best_probability for q in result.queries if not q.values and q.best_probability is not None]
    return auc(known, unknown) if known and unknown else None


def _interval(values: Sequence[float]) -> dict[str, float]:
    low, high = bootstrap_interval(np.array(values), np.random.default_rng(SEED))
    return {"mean": float(np.nanmean(values)), "low": low, "high": high}


def _figure(values: Sequence[float]) -> str:
    if all(math.isnan(value) for value in values):
        return "–"
    interval = _interval(values)
    return f"{interval['mean']:.4f} ±{(interval['high'] - interval['low']) / 2:.3f}"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cell.replace("_", r"\_").replace("%", r"\%").replace("±", r"$\pm$") for cell in cells) + r" \\"

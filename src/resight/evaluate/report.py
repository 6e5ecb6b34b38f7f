"""A RunResult → a Table and plain values; these → the text of a JSON, HTML or LaTeX file.

Every figure carries its convention.
"""

import html
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from resight import recipe as recipes
from resight.evaluate.calibration import auc
from resight.evaluate.chart import STYLE as CHART_STYLE
from resight.evaluate.chart import Chart, draw
from resight.evaluate.results import RunResult
from resight.evaluate.significance import bootstrap_interval

SEED = 0
STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c1d20;--soft:#5d6068;--line:#d9dbe0;--mark:#e8f1fb}
@media(prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e6e7ea;--soft:#a2a6af;--line:#363a41;--mark:#1d2b3b}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;max-width:78rem;margin:0 auto;padding:1.5rem 1rem 3rem;
 background:var(--paper);color:var(--ink)}
h1{font-size:1.4rem;line-height:1.25;text-wrap:balance;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin-top:2rem}
.answer{font-size:1.1rem;max-width:60rem;padding:.75rem 1rem;background:var(--mark);border-radius:.4rem}
.table{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.35rem .5rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
thead th{color:var(--soft);font-weight:600;vertical-align:bottom;white-space:normal}
tr>:first-child{text-align:left;position:sticky;left:0;background:var(--paper)}
tr.chosen>*{background:var(--mark)}
li{color:var(--soft);font-size:.92rem;max-width:60rem}
"""


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    answer: str = ""  # what the table says, in one sentence
    charts: tuple[Chart, ...] = ()
    chosen: int | None = None  # the row that the answer is about


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
    )
    return Table(title, ("queries", "n", *result.metrics), tuple(rows), notes)


def summarise(result: RunResult) -> dict[str, Any]:
    """Everything, as plain values."""
    judged = result.judged
    encoding, searching = _median_seconds(result)
    return {
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
        "auc_known_against_unknown": _auc(result),
        "index_seconds": result.index_seconds,
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
                **query.values,
            }
            for query in result.queries
        ],
        "made_by": f"resight {metadata.version('resight')}",
        "machine": f"{platform.machine()} {platform.system()}, Python {platform.python_version()}",
        "bootstrap_seed": SEED,
    }


def to_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False, default=str) + "\n"


def to_html(table: Table) -> str:
    """A page that stands alone: no script, nothing asked of any server."""
    head = "".join(f"<th scope=col>{html.escape(column)}</th>" for column in table.columns)
    body = "".join(_html_row(row, number == table.chosen) for number, row in enumerate(table.rows))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    answer = f"<p class=answer>{html.escape(table.answer)}</p>" if table.answer else ""
    charts = f"<div class=charts>{''.join(map(draw, table.charts))}</div>" if table.charts else ""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(table.title)}</title>"
        f"<meta name=viewport content='width=device-width'><style>{STYLE}{CHART_STYLE if charts else ''}</style>"
        f"<h1>{html.escape(table.title)}</h1>{answer}{charts}"
        f"<div class=table tabindex=0><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"<h2>What the figures mean</h2><ul>{notes}</ul></html>\n"
    )


def to_latex(table: Table) -> str:
    lines = [
        f"% {table.title}",
        *(f"% {note}" for note in (table.answer, *table.notes) if note),
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule",
        _latex_row(table.columns),
        r"\midrule",
        *(_latex_row(row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


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
    return {"mean": float(np.nanmean(values)), "low": low, "high": high}


def _html_row(row: Sequence[str], chosen: bool) -> str:
    cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
    return f"<tr{' class=chosen' if chosen else ''}><th scope=row>{html.escape(row[0])}</th>{cells}</tr>"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(_latex(cell) for cell in cells) + r" \\"


def _latex(text: str) -> str:
    for letter, code in (("_", r"\_"), ("%", r"\%"), ("&", r"\&"), ("#", r"\#"), ("±", r"$\pm$"), ("×", r"$\times$")):
        text = text.replace(letter, code)
    return text

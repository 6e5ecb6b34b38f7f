"""A Table of figures, and its text as a page (HTML) or as LaTeX; plain values → the text of a JSON file.

The best figure of a column is bold and the second best underlined, where the table says which these are; what stands
beside a figure, such as its interval, is not. Rows without figures stand in their place, with the reason below.
"""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from resight.evaluate.chart import STYLE as CHART_STYLE
from resight.evaluate.chart import Chart, draw

Mark = Literal["best", "second"]
LEGEND = "bold: the best of its column; underlined: the second best"
NOT_MEASURED = "Not measured"
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
MARKED_STYLE = """
tbody th{font-weight:400}
tbody tr:hover>*{background:var(--mark)}
strong{font-weight:750}
u{text-decoration-thickness:1.5px;text-underline-offset:3px}
td small{font-size:.85em;color:var(--soft)}
tr.absent>*{color:var(--soft)}
@media screen{.table{max-height:calc(100vh - 1rem);overflow-y:auto}}
thead th{position:sticky;top:0;z-index:1;background:var(--paper);box-shadow:inset 0 -1px var(--line)}
thead th:first-child{z-index:2}
@media(max-width:40rem){tbody th{white-space:normal;max-width:42vw;overflow-wrap:anywhere}}
.legend{margin:.6rem 0;font-size:.92rem;color:var(--soft)}
.legend strong,.legend u{color:var(--ink)}
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
    marks: Mapping[tuple[int, int], Mark] = field(default_factory=dict)  # row and column → how the figure is marked
    absent: Mapping[str, str] = field(default_factory=dict)  # label of a row without figures → why it has none


def to_html(table: Table) -> str:
    """A page that stands alone: no script, nothing asked of any server."""
    head = "".join(f"<th scope=col>{html.escape(column)}</th>" for column in table.columns)
    body = "".join(_html_row(table, number) for number in range(len(table.rows)))
    answer = f"<p class=answer>{html.escape(table.answer)}</p>" if table.answer else ""
    charts = f"<div class=charts>{''.join(map(draw, table.charts))}</div>" if table.charts else ""
    legend = "<p class=legend><strong>bold</strong>: the best of its column; <u>underlined</u>: the second best</p>"
    absent = f"<h2>{NOT_MEASURED}</h2>{_html_list(explain_absent(table))}" if table.absent else ""
    style = STYLE + (MARKED_STYLE if table.marks or table.absent else "") + (CHART_STYLE if charts else "")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(table.title)}</title>"
        f"<meta name=viewport content='width=device-width'><style>{style}</style>"
        f"<h1>{html.escape(table.title)}</h1>{answer}{charts}{legend if table.marks else ''}"
        f"<div class=table tabindex=0><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"{absent}<h2>What the figures mean</h2>{_html_list(table.notes)}</html>\n"
    )


def to_latex(table: Table) -> str:
    legend = [LEGEND] if table.marks else []
    absent = [f"{NOT_MEASURED}: {line}" for line in explain_absent(table)]
    lines = [
        f"% {table.title}",
        *(f"% {' '.join(note.split())}" for note in (table.answer, *legend, *absent, *table.notes) if note),
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule",
        _latex_row([_latex(column) for column in table.columns]),
        r"\midrule",
        *(_latex_row(_latex_cells(table, number)) for number in range(len(table.rows))),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def to_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False, default=str) + "\n"


def explain_absent(table: Table) -> list[str]:
    """Why rows have no figures ("problem; fix"): rows with one problem share a line, problems with one fix share it."""
    fixes: dict[str, dict[str, list[str]]] = {}
    for label, reason in table.absent.items():
        problem, _, fix = reason.partition("; ")
        fixes.setdefault(fix, {}).setdefault(problem, []).append(label)
    lines = []
    for fix, problems in fixes.items():
        told = [f"{'; '.join(labels)}: {problem}" for problem, labels in problems.items()]
        if not fix:
            lines += told
        elif len(told) == 1:
            lines.append(f"{told[0]}; {fix}")
        else:
            lines += [*told, f"what to do about these {len(told)}: {fix}"]
    return lines


def split_figure(cell: str) -> tuple[str, str]:
    """The figure that a mark is for, and what stands beside it."""
    figure, space, beside = cell.partition(" ")
    return figure, space + beside


def _html_row(table: Table, number: int) -> str:
    row = table.rows[number]
    cells = "".join(
        f"<td>{_html_cell(cell, table.marks.get((number, column)), bool(table.marks))}</td>"
        for column, cell in enumerate(row[1:], start=1)
    )
    reason = table.absent.get(row[0], "")
    kind = " class=chosen" if number == table.chosen else ""
    kind = f' class=absent title="{html.escape(reason)}"' if reason else kind
    return f"<tr{kind}><th scope=row>{html.escape(row[0])}</th>{cells}</tr>"


def _html_cell(cell: str, mark: Mark | None, quiet: bool) -> str:
    """Marks show better where what stands beside the figures is quiet."""
    figure, beside = (html.escape(part) for part in split_figure(cell))
    tag = {"best": "strong", "second": "u", None: ""}[mark]
    marked = f"<{tag}>{figure}</{tag}>" if tag else figure
    return f"{marked}<small>{beside}</small>" if quiet and beside else f"{marked}{beside}"


def _html_list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"


def _latex_cells(table: Table, number: int) -> list[str]:
    cells = []
    for column, cell in enumerate(table.rows[number]):
        mark = table.marks.get((number, column))
        figure, beside = split_figure(cell) if mark else (cell, "")
        command = {"best": r"\textbf{%s}", "second": r"\underline{%s}", None: "%s"}[mark]
        cells.append(command % _latex(figure) + _latex(beside))
    return cells


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex(text: str) -> str:
    codes = {"\\": r"\textbackslash{}", "±": r"$\pm$", "×": r"$\times$", "→": r"$\to$", "–": "--"}
    codes |= {"^": r"\^{}", "~": r"\~{}"} | {letter: f"\\{letter}" for letter in "_%&#${}"}
    return "".join(codes.get(letter, letter) for letter in text)

"""A Table of figures, and its text as LaTeX or Markdown; plain values → the text of a JSON file. page.py makes pages.

The best figure of a column is bold and the second best underlined, where the table says which these are; what stands
beside a figure, such as its interval, is not. Rows without figures stand in their place, with the reason below.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from resight.evaluate.pages.charts import Chart

Mark = Literal["best", "second"]
LEGEND = "bold: the best of its column; underlined: the second best"
NOT_MEASURED = "Not measured"


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
    groups: tuple[tuple[str, int], ...] = ()  # what stands over columns after the first: words, and over how many


def to_latex(table: Table) -> str:
    legend = [LEGEND] if table.marks else []
    absent = [f"{NOT_MEASURED}: {line}" for line in explain_absent(table)]
    lines = [
        f"% {table.title}",
        *(f"% {' '.join(note.split())}" for note in (table.answer, *legend, *absent, *table.notes) if note),
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule",
        *_latex_groups(table),
        _latex_row([_latex(column) for column in table.columns]),
        r"\midrule",
        *(_latex_row(_latex_cells(table, number)) for number in range(len(table.rows))),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def to_markdown(table: Table) -> str:
    """A pipe table below its title; groups of columns stand before the names of their columns."""
    heads = name_columns(table)
    legend = [LEGEND] if table.marks else []
    absent = [f"{NOT_MEASURED}: {line}" for line in explain_absent(table)]
    notes = [f"- {_markdown(' '.join(note.split()))}" for note in (*legend, *absent, *table.notes)]
    lines = [
        f"**{_markdown(table.title)}**",
        "",
        *([_markdown(table.answer), ""] if table.answer else []),
        _markdown_row([_markdown(head) for head in heads]),
        _markdown_row(["---", *["---:"] * (len(heads) - 1)]),
        *(_markdown_row(_markdown_cells(table, number)) for number in range(len(table.rows))),
        "",
        *notes,
    ]
    return "\n".join(lines).rstrip() + "\n"


def name_columns(table: Table) -> list[str]:
    """Names of the columns with their group's before them, where there is but one line for both."""
    over = ["", *(words for words, count in table.groups for _ in range(count))]
    return [
        f"{over[number]}: {name}" if number < len(over) and over[number] else name
        for number, name in enumerate(table.columns)
    ]


def to_json(values: Mapping[str, Any]) -> str:
    """Values that are not a number are null: JSON has no word for them."""
    return json.dumps(_clean(values), indent=1, ensure_ascii=False, default=str, allow_nan=False) + "\n"


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


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _clean(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _markdown_cells(table: Table, number: int) -> list[str]:
    cells = []
    for column, cell in enumerate(table.rows[number]):
        mark = table.marks.get((number, column))
        figure, beside = split_figure(cell) if mark else (cell, "")
        pattern = {"best": "**%s**", "second": "<u>%s</u>", None: "%s"}[mark]
        cells.append(pattern % _markdown(figure) + _markdown(beside))
    return cells


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    escaped = "".join(f"\\{letter}" if letter in "\\`*_|<>[]" else letter for letter in text)
    return " ".join(escaped.splitlines())


def _latex_groups(table: Table) -> list[str]:
    if not table.groups:
        return []
    cells, rules, first = [""], [], 2
    for words, count in table.groups:
        cells.append(rf"\multicolumn{{{count}}}{{c}}{{{_latex(words)}}}")
        rules += [rf"\cmidrule(lr){{{first}-{first + count - 1}}}"] if words else []
        first += count
    return [_latex_row(cells), "".join(rules)]


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

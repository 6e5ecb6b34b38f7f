"""Tables of figures with their charts, as LaTeX and Markdown.

In: a Table, made by an evaluation or a comparison. Out: text. The best figure of a column is bold and the second best
underlined, if the table marks them; the interval beside a figure is plain. Rows that could not be measured have
dashes, with the reason below the table. pages/ draws the same Table and its Charts as HTML.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Mark = Literal["best", "second"]
LEGEND = "bold: the best of its column; underlined: the second best"
NOT_MEASURED = "Not measured"
MOST_LINES = 4  # lines that a reader can distinguish in a chart


@dataclass(frozen=True)
class Line:
    name: str
    values: tuple[float, ...]  # one per x position; NaN leaves a gap
    intervals: tuple[tuple[float, float], ...] = ()  # of each value, drawn as an upright stroke; empty: no strokes


@dataclass(frozen=True)
class Chart:
    title: str
    x_label: str
    positions: tuple[float, ...]  # on the x axis, increasing
    ticks: tuple[str, ...]  # the label below each position
    lines: tuple[Line, ...]
    chosen: int | None = None  # the marked position
    floor: tuple[float, str] | None = None  # a value, and its name
    from_zero: bool = False
    inset: bool = False  # whether to leave room beside the first and last position, for names rather than numbers


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    answer: str = ""  # the conclusion, in one sentence
    charts: tuple[Chart, ...] = ()
    chosen: int | None = None  # the row that the answer is about
    marks: Mapping[tuple[int, int], Mark] = field(default_factory=dict)  # row and column → how the figure is marked
    absent: Mapping[str, str] = field(default_factory=dict)  # label of a row without figures → the reason
    groups: tuple[tuple[str, int], ...] = ()  # headings over the columns after the first: words, and number of columns


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
    """A pipe table below its title; a group's heading precedes the name of each of its columns."""
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
    """Names of the columns, each with its group's heading before it, for tables with one heading line."""
    over = ["", *(words for words, count in table.groups for _ in range(count))]
    return [
        f"{over[number]}: {name}" if number < len(over) and over[number] else name
        for number, name in enumerate(table.columns)
    ]


def explain_absent(table: Table) -> list[str]:
    """Why rows have no figures ("problem; fix"): rows with the same problem share a line, problems share their fix."""
    fixes: dict[str, dict[str, list[str]]] = {}
    for label, reason in table.absent.items():
        problem, _, fix = reason.partition("; ")
        fixes.setdefault(fix, {}).setdefault(problem, []).append(label)
    lines = []
    for fix, problems in fixes.items():
        reasons = [f"{'; '.join(labels)}: {problem}" for problem, labels in problems.items()]
        if not fix:
            lines += reasons
        elif len(reasons) == 1:
            lines.append(f"{reasons[0]}; {fix}")
        else:
            lines += [*reasons, f"to fix these {len(reasons)}: {fix}"]
    return lines


def split_figure(cell: str) -> tuple[str, str]:
    """The figure that a mark is for, and the text beside it."""
    figure, space, beside = cell.partition(" ")
    return figure, space + beside


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

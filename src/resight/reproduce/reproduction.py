"""A measured table: our cells beside the paper's, as a Table for people and as values for JSON.

In: a PaperTable, the rows that were chosen and their cells. Out: a Reproduction. A Table has the verdict beside the
name of each row, then one column per column of the paper ("ours ±half of the interval (paper's)") for a terminal, or
three for files: ours, the paper's, and the difference with our interval.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from resight.evaluate.table import Table
from resight.reproduce.experiments import FACTS
from resight.reproduce.paper_table import Column, PaperRow, PaperTable, Published
from resight.reproduce.run import Cell, Measured, NotRun
from resight.reproduce.verdict import Cells, Verdict, convert, count_digits, explain_rule, judge

STATEMENT = "statement"
VERDICT = "verdict"  # name of the column beside the rows' names
DASH = "–"
DIGITS = {"fraction": 3, "percent": 1, "": 2}  # where the paper prints no figure
DOUBT = "?"
NAMED = 3  # cells that a note names


@dataclass(frozen=True)
class Reproduction:
    table: PaperTable
    rows: tuple[PaperRow, ...]
    cells: Cells
    like: PaperTable | None = None
    overrides: tuple[str, ...] = ()  # of the user (--set), which the published table does not have

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        """By the name of the row; empty for a statement."""
        if self.table.kind == STATEMENT:
            return {}
        return judge(self.table, self.rows, self.cells, self.like)

    @property
    def answer(self) -> str:
        """How many rows have which verdict."""
        words = [verdict.word for verdict in self.verdicts.values()]
        return "; ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))

    def tabulate(self, wide: bool = False) -> Table:
        """`wide`: three columns per column of the paper."""
        columns = list(zip(self.table.columns, zip(*(row.published for row in self.rows), strict=True), strict=True))
        if not self.rows:
            columns = [(column, ()) for column in self.table.columns]
        parts = [_Part(column, wide, self.table.kind == STATEMENT, printed) for column, printed in columns]
        has_verdicts = bool(self.verdicts)
        lines: list[tuple[str, ...]] = []
        heading = ""
        width = sum(len(part.names) for part in parts) + has_verdicts
        for row in self.rows:
            if row.group != heading:
                heading = row.group
                lines += [(heading, *[""] * width)] if heading else []
            cells = [
                text
                for part, published in zip(parts, row.published, strict=True)
                for text in part.format(self.cells.get((row.name, part.column.name)), published)
            ]
            lines.append((row.name, *([self.verdicts[row.name].word] if has_verdicts else []), *cells))
        return Table(
            title=f"{self.table.name}: {self.table.title}",
            columns=("row", *([VERDICT] if has_verdicts else []), *(name for part in parts for name in part.names)),
            rows=tuple(lines),
            notes=tuple(self._list_notes(wide)),
            answer=self.answer,
            absent={
                row.name: self.verdicts[row.name].detail
                for row in self.rows
                if has_verdicts and self.verdicts[row.name].word == "not run"
            },
            groups=(*([("", 1)] if has_verdicts else []), *(part.group for part in parts)) if wide and parts else (),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, in the paper's units."""
        return {
            "name": self.table.name,
            "title": self.table.title,
            "source": self.table.source,
            "kind": self.table.kind,
            "like": self.table.like,
            "baseline": self.table.baseline,
            "answer": self.answer,
            "columns": [
                {"name": column.name, "metric": column.metric, "unit": column.unit, "text": column.text}
                for column in self.table.columns
            ],
            "rows": [self._row_to_dict(row) for row in self.rows],
            "overrides": list(self.overrides),
            "notes": list(self._list_notes(wide=True)),
        }

    def _row_to_dict(self, row: PaperRow) -> dict[str, Any]:
        verdict = self.verdicts.get(row.name)
        cells = {}
        for column, published in zip(self.table.columns, row.published, strict=True):
            cells[column.name] = _cell_to_dict(self.cells.get((row.name, column.name)), column, published)
        found = {"name": row.name, "group": row.group, "cells": cells}
        return found | ({"verdict": verdict.word, "detail": verdict.detail} if verdict else {})

    def _list_notes(self, wide: bool) -> list[str]:
        notes = [f"Source: {self.table.source}", *self.table.notes]
        notes += [f"Measured with --set {' --set '.join(self.overrides)}"] if self.overrides else []
        if self.verdicts:
            legend = "ours ±: half our 95 % interval" if wide else "ours ± half our 95 % interval (the paper's)"
            if self.like:
                legend = "±: half our 95 % interval"
            notes += [f"{legend}; {DASH}: no figure", explain_rule(self.table)]
        doubts = {
            (row.name, column.name): f"{DOUBT} {published.doubt}"
            for row in self.rows
            for column, published in zip(self.table.columns, row.published, strict=True)
            if published.doubt
        }
        measured = {cell: part.note for cell, part in self.cells.items() if isinstance(part, Measured) and part.note}
        details = [
            f"{name}, {verdict.word}: {verdict.detail}"
            for name, verdict in self.verdicts.items()
            if verdict.detail and verdict.word != "not run"
        ]
        return [*notes, *_gather(doubts), *details, *_gather(measured)]


def _gather(notes: Mapping[tuple[str, str], str]) -> list[str]:
    """Notes of cells, each text once, with the first of its cells."""
    cells: dict[str, list[str]] = {}
    for (row, column), text in notes.items():
        cells.setdefault(text, []).append(f"{row}, {column}")
    return [
        f"{text}: {'; '.join(names[:NAMED])}{f' and {len(names) - NAMED} more' if len(names) > NAMED else ''}"
        for text, names in cells.items()
    ]


class _Part:
    """The columns of a Table that show one column of the paper."""

    def __init__(self, column: Column, wide: bool, statement: bool, printed: Sequence[Published]) -> None:
        self.column = column
        self._alone = column.text or statement
        self._wide = wide
        digits = [count for published in printed if (count := count_digits(published)) is not None]
        self._digits = max(digits, default=0 if column.metric in FACTS else DIGITS[column.unit])
        self._printed = bool(digits)

    @property
    def names(self) -> tuple[str, ...]:
        if self._alone or not self._wide:
            return (self.column.name,)
        return ("ours", "paper", "difference") if self._printed else ("ours",)

    @property
    def group(self) -> tuple[str, int]:
        """The heading over these columns, and their number."""
        return "" if self._alone else self.column.name, len(self.names)

    def format(self, cell: Cell | None, published: Published) -> tuple[str, ...]:
        paper = published.text + (DOUBT if published.doubt and published.text != DOUBT else "")
        if self._alone:
            return (paper,)
        ours = convert(cell, self.column) if isinstance(cell, Measured) else None
        shown = self._format_ours(ours)
        if not self._wide:
            return (f"{shown} ({paper})" if published.value is not None or published.doubt else shown,)
        if not self._printed:
            return (shown,)
        return shown, paper, self._format_difference(ours, published)

    def _format_ours(self, ours: Measured | None) -> str:
        if ours is None:
            return DASH
        value = f"{ours.value:.{self._digits}f}"
        if ours.low is None or ours.high is None:
            return value
        return f"{value} ±{(ours.high - ours.low) / 2:.{self._digits}f}"

    def _format_difference(self, ours: Measured | None, published: Published) -> str:
        if ours is None or published.value is None:
            return DASH
        difference = f"{ours.value - published.value:+.{self._digits}f}"
        if ours.low is None or ours.high is None:
            return difference
        low, high = (f"{bound - published.value:+.{self._digits}f}" for bound in (ours.low, ours.high))
        return f"{difference} [{low}, {high}]"


def _cell_to_dict(cell: Cell | None, column: Column, published: Published) -> dict[str, Any]:
    found: dict[str, Any] = {"paper": published.text if column.text else published.value}
    if published.doubt:
        found["doubt"] = published.doubt
    if isinstance(cell, NotRun):
        return found | {"not_run": cell.reason}
    if cell is None:
        return found
    ours = convert(cell, column)
    found |= {"ours": _plain(ours.value), "low": _plain(ours.low), "high": _plain(ours.high)}
    if published.value is not None:
        found["difference"] = _plain(ours.value - published.value)
    return found | ({"note": ours.note} if ours.note else {})


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value

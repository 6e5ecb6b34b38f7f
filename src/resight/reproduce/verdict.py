"""Is a row reproduced? The cells of a table in, a Verdict per row out.

Against published figures (RULE), over the cells that the paper prints without a doubt and that we measured:

    inside the interval   every figure of the paper lies in our 95 % interval, give or take its rounding
    direction kept        not all do, but each differs from the baseline row in the same direction as in the paper
    not reproduced        neither
    nothing to compare    the paper prints no figure for this row
    not run               no cell could be measured; the reason is beside it

Against the directions of another table (`like`, LIKE_RULE), over the columns that both have:

    confirmed             the 95 % interval of our difference to the baseline row lies on the paper's side of 0
    refuted               it lies on the other side
    unclear               it holds 0

Where the paper prints the same figure twice, the difference is confirmed if its interval lies within ±SAME, and refuted
if it lies outside. Differences are paired over the queries, or, without common queries, the bounds of both intervals
are subtracted. A row is confirmed if every column is, and refuted if any column is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from resight.evaluate.statistics.tests import paired_interval
from resight.reproduce.experiments import FACTS
from resight.reproduce.paper_table import Column, PaperRow, PaperTable, Published
from resight.reproduce.run import Cell, Measured, NotRun

Word = Literal[
    "inside the interval",
    "direction kept",
    "not reproduced",
    "nothing to compare",
    "not run",
    "confirmed",
    "refuted",
    "unclear",
]
SAME = 0.01  # of a metric: differences up to this are none
SEED = 0
PERCENT = 100.0
RULE = (
    "Verdict of a row: inside the interval = every figure of the paper lies in our 95 % interval (its rounding "
    "allowed for); direction kept = not all do, but each differs from the baseline row ({baseline}) in the paper's "
    "direction; not reproduced = neither. Doubtful figures of the paper (?) do not count."
)
LIKE_RULE = (
    "Verdict of a row: confirmed = our difference to the baseline row ({baseline}) has the direction of {like} in "
    "every column, with a 95 % interval (paired over the queries) that excludes 0; refuted = the interval of some "
    "column lies on the other side; unclear = otherwise. Where the paper prints equal figures: within ±"
    f"{SAME:g} or not."
)
Cells = Mapping[tuple[str, str], Cell]  # row and column name → cell


@dataclass(frozen=True)
class Verdict:
    word: Word
    detail: str = ""  # the reason, or what the word leaves out

    def __str__(self) -> str:
        return f"{self.word}: {self.detail}" if self.word == "not run" and self.detail else self.word


def judge(
    table: PaperTable, rows: Sequence[PaperRow], cells: Cells, like: PaperTable | None = None
) -> dict[str, Verdict]:
    """The verdict of each row; `like` is the table whose directions are compared instead of figures."""
    return {row.name: _judge_row(table, row, cells, like) for row in rows}


def explain_rule(table: PaperTable) -> str:
    rule = LIKE_RULE if table.like else RULE
    return rule.format(baseline=table.baseline, like=table.like)


def convert(cell: Measured, column: Column) -> Measured:
    """A cell in the unit that the paper prints; facts have a unit of their own."""
    if column.unit != "percent" or column.metric in FACTS:
        return cell
    low, high = (None if bound is None else PERCENT * bound for bound in (cell.low, cell.high))
    return replace(cell, value=PERCENT * cell.value, low=low, high=high)


def count_digits(published: Published) -> int | None:
    """Digits after the point, as printed; None without a figure."""
    return None if published.value is None else len(published.text.partition(".")[2])


def _judge_row(table: PaperTable, row: PaperRow, cells: Cells, like: PaperTable | None) -> Verdict:
    found = {column.name: cells.get((row.name, column.name), NotRun("not chosen")) for column in table.measured}
    failed = [cell.reason for cell in found.values() if isinstance(cell, NotRun)]
    if len(failed) == len(found):
        return Verdict("not run", failed[0]) if failed else Verdict("nothing to compare")
    verdict = _compare_directions(table, row, cells, like) if like else _compare_figures(table, row, cells)
    if not failed:
        return verdict
    lacking = f"{len(failed)} of {len(found)} cells not run: {failed[0]}"
    return replace(verdict, detail="; ".join(part for part in (verdict.detail, lacking) if part))


def _compare_figures(table: PaperTable, row: PaperRow, cells: Cells) -> Verdict:
    compared = list(_list_compared(table, row, cells))
    if not compared:
        return Verdict("nothing to compare")
    outside = [column.name for column, ours, paper in compared if not _is_inside(ours, paper)]
    if not outside:
        return Verdict("inside the interval")
    detail = f"outside: {', '.join(outside)}"
    if row.name == table.baseline:
        return Verdict("not reproduced", f"{detail}; this row is the baseline of directions")
    base = next((each for each in table.rows if each.name == table.baseline), None)
    known = {column.name: (ours, paper) for column, ours, paper in _list_compared(table, base, cells)} if base else {}
    pairs = [(ours, paper, *known[column.name]) for column, ours, paper in compared if column.name in known]
    if not pairs:
        return Verdict("not reproduced", f"{detail}; the baseline row was not measured, so directions are unknown")
    return Verdict("direction kept" if all(_agree(*pair) for pair in pairs) else "not reproduced", detail)


def _list_compared(table: PaperTable, row: PaperRow, cells: Cells) -> Iterator[tuple[Column, Measured, Published]]:
    """The columns of a row that have a figure of ours and an undoubted one of the paper."""
    for column, published in zip(table.columns, row.published, strict=True):
        cell = cells.get((row.name, column.name))
        if isinstance(cell, Measured) and published.value is not None and not published.doubt:
            yield column, convert(cell, column), published


def _is_inside(ours: Measured, published: Published) -> bool:
    assert published.value is not None
    low = ours.value if ours.low is None else ours.low
    high = ours.value if ours.high is None else ours.high
    slack = _rounding(published) + 1e-9
    return low - slack <= published.value <= high + slack


def _agree(ours: Measured, paper: Published, base: Measured, base_paper: Published) -> bool:
    """Whether a row differs from the baseline in the paper's direction."""
    assert paper.value is not None and base_paper.value is not None
    printed, measured = paper.value - base_paper.value, ours.value - base.value
    if math.isclose(printed, 0.0, abs_tol=1e-9):
        return abs(measured) <= _rounding(paper) + _rounding(base_paper)
    return measured * printed > 0


def _rounding(published: Published) -> float:
    """Half a unit of the last digit that the paper prints."""
    return 0.5 * 10.0 ** -(count_digits(published) or 0)


def _compare_directions(table: PaperTable, row: PaperRow, cells: Cells, like: PaperTable) -> Verdict:
    if row.name == table.baseline:
        return Verdict("nothing to compare", "the baseline of directions")
    base = next((each for each in table.rows if each.name == table.baseline), None)
    if base is None:
        return Verdict("nothing to compare", "the baseline row was not chosen")
    words: list[Word] = []
    details: list[str] = []
    for column in table.measured:
        paper = [_find_published(like, each, column) for each in (row, base)]
        first, second = (cells.get((each.name, column.name)) for each in (row, base))
        values = [part.value for part in paper if part is not None and part.value is not None and not part.doubt]
        if len(values) < len(paper) or not (isinstance(first, Measured) and isinstance(second, Measured)):
            continue
        low, high = find_difference(first, second)
        words.append(judge_difference(values[0] - values[1], low, high))
        ours = f"{first.value - second.value:+.4g} [{low:+.4g}, {high:+.4g}]"
        details.append(f"{column.name} {ours} (paper {values[0] - values[1]:+.4g}) {words[-1]}")
    if not words:
        return Verdict("nothing to compare")
    together: Word = "refuted" if "refuted" in words else "confirmed" if set(words) == {"confirmed"} else "unclear"
    return Verdict(together, "; ".join(details))


def judge_difference(paper: float, low: float, high: float) -> Word:
    """The paper's difference, and the interval of ours, a fraction."""
    if math.isclose(paper, 0.0, abs_tol=1e-9):
        if low >= -SAME and high <= SAME:
            return "confirmed"
        return "refuted" if low > SAME or high < -SAME else "unclear"
    if low > 0 or high < 0:
        return "confirmed" if (low > 0) == (paper > 0) else "refuted"
    return "unclear"


def find_difference(first: Measured, second: Measured) -> tuple[float, float]:
    """The 95 % interval of first − second: paired over common queries, or by the bounds of both."""
    common = [name for name in first.queries if name in second.queries]
    if common and len(common) == len(first.queries) == len(second.queries):
        values = [[part.queries[name] for name in common] for part in (first, second)]
        return paired_interval(values[0], values[1], np.random.default_rng(SEED))
    (low, high), (other_low, other_high) = (
        (part.value if part.low is None else part.low, part.value if part.high is None else part.high)
        for part in (first, second)
    )
    return low - other_high, high - other_low


def _find_published(like: PaperTable, row: PaperRow, column: Column) -> Published | None:
    """The cell of the other table that a cell stands for: by its `like`, or by the same names."""
    row_name, column_name = (str(part.settings.get("like", part.name)) for part in (row, column))
    for other in like.rows:
        if other.name == row_name:
            for part, published in zip(like.columns, other.published, strict=True):
                if part.name == column_name:
                    return published
    return None

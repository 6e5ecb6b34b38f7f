"""A table or figure with nothing to measure: a drawing, or properties of earlier work. Its notes say so.

In: any table. Out: every cell as NotRun.
"""

from collections.abc import Iterator, Sequence

from resight.errors import RecipeError
from resight.reproduce.kinds import Requirements
from resight.reproduce.paper_table import PaperRow, PaperTable
from resight.reproduce.run import Cell, NotRun, Run

REASON = "nothing to measure: see the notes"


def check(table: PaperTable) -> None:
    if not table.notes:
        raise RecipeError(
            "a statement without notes",
            expected="notes that say why nothing is measured",
            actual="no notes",
            fix='add notes = ["…"]',
        )


def requirements(table: PaperTable) -> Requirements:  # noqa: ARG001 - every kind is given its table
    return Requirements()


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:  # noqa: ARG001
    for row in rows:
        for column in table.measured:
            yield row.name, column.name, NotRun(row.skip or REASON)

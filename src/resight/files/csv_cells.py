"""CSV that a spreadsheet opens without running it: rows in, a file without formulas out, and cells back as they were.

A spreadsheet takes a cell that begins with = + - @, a tab or a carriage return for a formula, even in quotes, and a
formula can start programs or send data away. Ids and labels come from files, so `make_writer` puts an apostrophe before
such a cell, as spreadsheets themselves do for text. A number stays as it is. `restore` takes the apostrophe off again:
every reader of resight's own files calls it.
"""

import csv
import re
from collections.abc import Iterable
from typing import Any, Protocol

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # apostrophes included, so that `restore` gives back every text
PROTECTED = re.compile(r"'+[=+\-@\t\r]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class TextFile(Protocol):
    def write(self, text: str, /) -> object: ...


class Writer:
    def __init__(self, file: TextFile, line_end: str) -> None:
        self._writer = csv.writer(file, lineterminator=line_end)

    def writerow(self, cells: Iterable[Any]) -> None:
        self._writer.writerow([protect(cell) for cell in cells])

    def writerows(self, rows: Iterable[Iterable[Any]]) -> None:
        for cells in rows:
            self.writerow(cells)


def make_writer(file: TextFile, line_end: str = "\r\n") -> Writer:
    return Writer(file, line_end)


def protect(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(cell, str) and FORMULA.match(cell) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def restore(cell: str) -> str:
    """The text that `protect` was given."""
    return cell[1:] if PROTECTED.match(cell) else cell

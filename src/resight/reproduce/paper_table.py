"""Tables and figures of papers as data: a name in, a validated PaperTable out.

A file holds what the paper prints and how to measure it: title, source, kind (the module of `kinds/` that measures
it), data sets, the shared `[recipe]`, `[[columns]]` and `[[rows]]`. docs/papers/index.md describes every key. The files
that come with the package lie in recipes/papers/<paper>/<table>.toml; such a table is called "<paper>/<table>".

    load_table("craterbench/table_9")      one table; also the path of a .toml file
    load_paper("craterbench")              every table of a paper
    list_tables()                          the names of all tables
"""

import functools
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from resight.errors import InputError, did_you_mean
from resight.reproduce.table_file import TableReader
from resight.reproduce.table_types import Best, Column, PaperRow, PaperTable, Published

__all__ = [
    "Best",
    "Column",
    "PaperRow",
    "PaperTable",
    "Published",
    "list_papers",
    "list_tables",
    "load_paper",
    "load_table",
]


def load_table(source: str | Path) -> PaperTable:
    """A table by its name ("craterbench/table_9") or the path of its file, validated."""
    path = Path(source)
    if path.suffix == ".toml" and path.is_file():
        return TableReader(path, f"{path.parent.name}/{path.stem}").read()
    return _read(_find(str(source)), str(source))


def load_paper(paper: str) -> list[PaperTable]:
    """Every table of a paper, by the number in its name."""
    known = list_papers()
    if paper not in known:
        raise _refuse_name(paper, [*known, *list_tables()])
    folder = _folder()
    return [_read(folder / f"{name}.toml", name) for name in list_tables(paper)]


def list_papers() -> list[str]:
    return sorted({name.partition("/")[0] for name in list_tables()})


def list_tables(paper: str = "") -> list[str]:
    """Names of the tables that come with the package, of all papers or of one."""
    folder = _folder()
    found = [path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml")]
    return sorted((name for name in found if not paper or name.startswith(f"{paper}/")), key=_by_number)


@functools.cache
def _read(path: Path, name: str) -> PaperTable:
    """A table of the package, read once: tables refer to each other."""
    return TableReader(path, name).read()


def _by_number(name: str) -> tuple[str | int, ...]:
    """table_9 comes before table_10; texts and numbers alternate, so that any two names compare."""
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name))


def _find(name: str) -> Path:
    known = list_tables()
    if name not in known:  # which also keeps every name inside the folder
        raise _refuse_name(name, [*list_papers(), *known])
    return _folder() / f"{name}.toml"


def _folder() -> Path:
    return Path(str(resources.files("resight") / "recipes" / "papers"))


def _refuse_name(name: str, known: Sequence[str]) -> InputError:
    return InputError(
        f"there is no table {name!r}",
        expected="the name of a paper or a table, such as craterbench or craterbench/table_9, or the path of a file",
        actual=name,
        fix=did_you_mean(name, known, "`resight reproduce list` names all"),
    )

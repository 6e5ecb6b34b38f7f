"""Tables and figures of papers, measured: their names and data sets in, our figures beside the published ones out.

    from resight.reproduce import reproduce
    (table,) = reproduce("craterbench/table_9", "data/craterbench", rows=["K = 16"])
    table.verdicts["K = 16"].word

`resight reproduce` calls the same function. Each experiment runs in a process of its own or with others that share its
encoder (kinds/retrieval.py), and its answer is remembered below `out`, so that a run continues where it stopped.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resight.reproduce.paper_table import PaperTable
    from resight.reproduce.reproduction import Reproduction
    from resight.reproduce.run import Run

RUNS = "runs"  # folder of the answers, below `out`
CACHE_BYTES = 4 * 10**9


def reproduce(
    names: str | Sequence[str],
    data: str | Path | Mapping[str, str | Path] | None = None,
    *,
    rows: Sequence[str] = (),
    skip: Sequence[str] = (),
    overrides: Sequence[str] = (),
    out: str | Path = "reproduce",
    cache: Path | None = None,
    cache_bytes: int = CACHE_BYTES,
    report: Callable[[str], None] | None = None,
    done: Callable[["Reproduction"], None] | None = None,
) -> list["Reproduction"]:
    """Measure tables or whole papers.

    Args:
        names: Tables ("craterbench/table_9"), papers ("craterbench") or files of tables.
        data: The folder of the data set, or one with a folder per data set, or a mapping of names to folders.
        rows: Patterns of the rows to measure; default: all.
        skip: Patterns of rows to leave out.
        overrides: Changes of every experiment's recipe, as "key=value".
        out: The folder for answers and files.
        cache: A folder to cache features in.
        cache_bytes: The limit of that cache.
        report: Called with lines of progress.
        done: Called with each table when it has been measured.

    Returns:
        The measured tables, in order. The folder `out` has them as a page, Markdown, LaTeX and JSON.

    Raises:
        InputError: A name, a pattern or a table's file does not fit. A failing row raises nothing: it is "not run".
    """
    from resight.reproduce.paper_page import write_files
    from resight.reproduce.run import Run
    from resight.reproduce.selection import choose_tables, find_data

    tables = choose_tables([names] if isinstance(names, str) else list(names), rows, skip)
    folders = find_data(data, tables)
    found: list[Reproduction] = []
    for table in tables:
        run = Run(
            Path(out) / RUNS / Path(table.name),
            folders,
            overrides=tuple(overrides),
            cache_folder=cache,
            cache_bytes=cache_bytes,
            report=report,
        )
        found.append(_measure(table, run))
        write_files(found, Path(out))
        if done:
            done(found[-1])
    return found


def _measure(table: "PaperTable", run: "Run") -> "Reproduction":
    """Every cell of a table; whatever its kind raises costs the cells that are still missing, and no other table."""
    from resight.reproduce import kinds, worker
    from resight.reproduce.paper_table import load_table
    from resight.reproduce.reproduction import Reproduction
    from resight.reproduce.run import Cell, NotRun

    run.report(f"{table.name}: {table.title}")
    cells: dict[tuple[str, str], Cell] = {}
    reason = "its kind gave no answer"
    try:
        for row, column, cell in kinds.find(table.kind).measure(table, table.rows, run):
            cells[row, column] = cell
    except Exception as error:
        reason = worker.describe(error)
    for each in table.rows:
        for part in table.measured:
            cells.setdefault((each.name, part.name), NotRun(each.skip or reason))
    return Reproduction(table, table.rows, cells, load_table(table.like) if table.like else None, run.overrides)

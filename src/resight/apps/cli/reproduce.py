"""`resight reproduce`: tables and figures of papers, listed and measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from resight.apps import terminal
from resight.apps.cli.options import CACHE_SIZE, GIGABYTE, Cache, CacheSize, Json, Set

if TYPE_CHECKING:
    from resight.reproduce.paper_table import PaperTable

Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="ROOT|NAME=PATH",
        help="Folder of the data set, or of all; or NAME=PATH for each.",
    ),
]
Names = Annotated[
    list[str], typer.Argument(metavar="NAME", help="Tables (craterbench/table_9), papers (craterbench), or files.")
]


class RunByDefault(TyperGroup):
    """`resight reproduce NAME` is `resight reproduce run NAME`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=RunByDefault,
    rich_markup_mode=None,
    help="Measure the tables of papers, beside the published figures.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("list")
def list_papers_tables(
    papers: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Papers or tables to list; default: all.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the tables, what each needs, and whether it can run here."""
    from resight.reproduce.availability import list_entries
    from resight.reproduce.paper_table import list_papers
    from resight.reproduce.selection import choose_tables, find_data, read_data

    tables = choose_tables(papers or list_papers())
    found = list(list_entries(tables, find_data(read_data(data), tables) if data else None))
    if json:
        return terminal.print_json(found)
    rows = [
        [
            entry.name,
            entry.title,
            entry.kind,
            ", ".join(entry.data) or "–",
            ", ".join(entry.weights[:2]) + (f" and {len(entry.weights) - 2} more" if len(entry.weights) > 2 else "")
            or "–",
            "–" if entry.hours is None else f"{entry.hours:g}",
            "yes" if entry.ready else "no",
        ]
        for entry in found
    ]
    columns = ("name", "title", "kind", "data", "weights", "hours", "ready")
    terminal.print_table("Tables and figures of papers", columns, rows, right=(5,))
    terminal.echo("  hours: rough estimate for the whole table on two CPU cores")
    if not data:
        terminal.echo("  ready: packages and weights are here; with --data, the data sets are looked for, too")
    for reason in dict.fromkeys(reason for entry in found for reason in entry.missing) if papers else ():
        terminal.echo(f"  missing: {terminal.clean(reason)}")
    if not papers and any(not entry.ready for entry in found):
        terminal.echo("  not ready: `resight reproduce list NAME` shows what is missing")
    return None


@app.command("run")
def run_tables(
    names: Names,
    data: Data = None,
    rows: Annotated[
        list[str] | None, typer.Option("--rows", metavar="PATTERN", help="Only rows like this, e.g. 'DINO*'.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="PATTERN", help="No rows like this, e.g. '*7B*'.")
    ] = None,
    settings: Set = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="For answers, page, Markdown, LaTeX and JSON; default: reproduce/PAPER."),
    ] = None,
    cache: Cache = None,
    cache_size: CacheSize = CACHE_SIZE,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write all figures to this file.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the experiments; run none.")] = False,
) -> None:
    """Measure tables; the default command.

    A row that fails states its reason, and the others run. Run the same command again to continue.
    """
    from resight.apps.cli.report import print_table
    from resight.encode.feature_cache import find_folder
    from resight.reproduce import reproduce
    from resight.reproduce.paper_page import list_files, to_json
    from resight.reproduce.selection import choose_tables, read_data

    tables = choose_tables(names, rows or (), skip or ())
    if dry_run:
        return _print_experiments(tables, settings or [])
    papers = {table.paper for table in tables}
    folder = out or (Path("reproduce") / papers.pop() if len(papers) == 1 else Path("reproduce"))
    with terminal.progress("reproducing") as bar:
        count = 0

        def step(_: object) -> None:
            nonlocal count
            count += 1
            bar(count, len(tables))

        bar(0, len(tables))
        found = reproduce(
            names,
            read_data(data or ()),
            rows=rows or (),
            skip=skip or (),
            overrides=settings or (),
            out=folder,
            cache=cache or find_folder(),
            cache_bytes=int(cache_size * GIGABYTE),
            report=bar.rename,
            done=step,
        )
    for each in found:
        print_table(each.tabulate())
        terminal.echo()
    if json is not None:
        terminal.write_text(json, to_json(found))
    for path in [*list_files(found, folder), *([json] if json else [])]:
        terminal.echo(f"wrote {path}")
    return None


def _print_experiments(tables: "list[PaperTable]", overrides: list[str]) -> None:
    from json import dumps

    from resight.reproduce.experiments import list_experiments

    for table in tables:
        terminal.echo(f"{table.name}: {table.title} ({table.kind}, {len(table.rows)} rows)")
        if table.kind != "retrieval":
            for row in table.rows:
                terminal.echo(f"  {row.name}" + (f": not run: {row.skip}" if row.skip else ""))
            continue
        experiments = list_experiments(table, table.rows, overrides)
        for number, each in enumerate(experiments, start=1):
            cell = ", ".join(each.cells[0])
            more = f" and {len(each.cells) - 1} more cells" if len(each.cells) > 1 else ""
            problem = f": {each.problem.problem}" if each.problem else ""
            terminal.echo(f"  {number} of {len(experiments)}: {cell}{more}{problem}")
            terminal.echo(f"      {dumps(each.table, ensure_ascii=False, default=str)}")

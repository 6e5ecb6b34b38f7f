"""`resight report`, and the tables and files that `resight eval` and `resight tune` write too."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Attribution, TilesOption, read_tiles

if TYPE_CHECKING:
    from resight.evaluate.comparison import Comparison
    from resight.evaluate.evaluation import Evaluation
    from resight.evaluate.table import Table
    from resight.explain.tiles import Tiles

STYLES = {"best": "bold", "second": "underline"}


def report(
    files: Annotated[
        list[str],
        typer.Argument(metavar="[LABEL=]FILE", help="Files of `resight eval --json`; LABEL= renames the row."),
    ],
    metric: Annotated[
        str, typer.Option(help="The metric of differences and plots; default: the first.", show_default=False)
    ] = "",
    metrics: Annotated[
        str, typer.Option(metavar="NAMES", help="The metrics to show, separated by commas.", show_default=False)
    ] = "",
    title: Annotated[str, typer.Option(help="Title of the report.", show_default=False)] = "",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page: tables, plots, pictures of queries, a map.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as LaTeX.")] = None,
    tiles: TilesOption = "",
    attribution: Attribution = "",
) -> None:
    """Compare evaluations in one table.

    The table has a row per configuration and a group of columns per data set.
    """
    import resight

    tile_server = read_tiles(tiles, attribution)
    shown = [name.strip() for name in metrics.split(",") if name.strip()]
    comparison = resight.compare(files, metric=metric, metrics=shown, title=title)
    tables = [comparison.table, *comparison.strata_tables]
    for table in tables:
        print_table(table)
    write(tables, comparison, html=html, markdown=markdown, latex=latex, tiles=tile_server)


def write(
    tables: Sequence["Table"],
    comparison: "Comparison",
    *,
    html: Path | None,
    markdown: Path | None,
    latex: Path | None,
    evaluation: "Evaluation | None" = None,
    json: Path | None = None,
    tiles: "Tiles | None" = None,
) -> None:
    """Writes the files whose paths are given; the JSON file holds `evaluation`."""
    from resight.evaluate import table as texts
    from resight.evaluate.pages.evaluation_page import render
    from resight.evaluate.summary_file import to_json

    formats: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (json, lambda: to_json(evaluation.to_dict() if evaluation else {})),
        (html, lambda: render(tables[0], comparison, tiles=tiles)),
        (markdown, lambda: "\n".join(map(texts.to_markdown, tables))),
        (latex, lambda: "\n".join(map(texts.to_latex, tables))),
    )
    for path, text in formats:
        if path is not None:
            terminal.write_text(path, text())
            terminal.echo(f"wrote {path}")


def print_table(table: "Table") -> None:
    """The table, its conclusion and its notes; marks and their legend only on a terminal."""
    from resight.evaluate.table import LEGEND, NOT_MEASURED, explain_absent, name_columns, split_figure

    styles = {
        (row, column): (len(split_figure(table.rows[row][column])[0]), STYLES[mark])
        for (row, column), mark in table.marks.items()
    }
    heads = name_columns(table)
    terminal.print_table(table.title, heads, table.rows, range(1, len(heads)), styles)
    if table.answer:
        terminal.echo(f"\n{table.answer}\n")
    if table.absent:
        terminal.echo(f"\n{NOT_MEASURED}:")
    for line in explain_absent(table):
        terminal.echo(f"  {terminal.clean(line)}")
    if table.absent:
        terminal.echo()
    legend = [LEGEND] if table.marks and terminal.console().is_terminal else []
    for note in (*legend, *table.notes):
        terminal.echo(f"  {note}")

"""`resight eval`."""

from pathlib import Path
from typing import Annotated

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Set


def evaluate(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of a shipped recipe.")],
    data: Annotated[Path, typer.Option("--data", help="The folder that holds the data set.")],
    settings: Set = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the collection here, so that a second run starts from it.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Also show the figures for each value of this attribute of the queries.")
    ] = "set",
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write figures, recipe and every query.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as a page.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as LaTeX.")] = None,
) -> None:
    """Measure a recipe on a data set with known truth."""
    from resight import recipe as recipes
    from resight.evaluate import report
    from resight.evaluate.run import run

    with terminal.progress("evaluating") as report_progress:
        result = run(recipes.load(recipe, settings or ()), data, keep=keep, by=by, progress=report_progress)
    table = report.tabulate(result)
    terminal.print_table(table.title, table.columns, table.rows, right=range(1, len(table.columns)))
    for note in table.notes:
        print(f"  {note}")
    for path, text in ((json, report.to_json), (html, report.to_html), (latex, report.to_latex)):
        if path is not None:
            terminal.write_text(path, text(result))
            print(f"wrote {path}")

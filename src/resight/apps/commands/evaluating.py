"""`resight eval`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Set

if TYPE_CHECKING:
    from resight.evaluate.report import Table


def evaluate(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of a shipped recipe.")],
    data: Annotated[Path, typer.Option("--data", help="The folder that holds the data set.")],
    encoder: Annotated[
        str | None,
        typer.Option(metavar="PRESET", help="Encode and search as this recipe does, on the data of the other."),
    ] = None,
    settings: Set = None,
    curve: Annotated[
        str | None, typer.Option(metavar="NAME", help="What saving loses: shortlist, or compression.")
    ] = None,
    steps: Annotated[
        str | None, typer.Option(help="Points of the curve, e.g. 10,50,100 or 5%,10% or fp32,int8,pq52x8.")
    ] = None,
    loss: Annotated[float | None, typer.Option(help="The share that may be lost, e.g. 0.06.")] = None,
    metric: Annotated[
        str, typer.Option(help="The metric of loss and differences; else the recipe's first.", show_default=False)
    ] = "",
    keep: Annotated[
        Path | None, typer.Option(help="Keep the collection here, so that a second run starts from it.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Also show the figures for each value of this attribute of the queries.")
    ] = "set",
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write figures, recipe and every query.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write tables and charts as a page.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as LaTeX.")] = None,
) -> None:
    """Measure a recipe on a data set with known truth; of a recipe with alternatives, all of them."""
    from resight.evaluate import report

    with terminal.progress("evaluating") as progress:
        table, values = _measure(
            recipe, encoder, data, settings or [], curve, steps, loss, metric, keep=keep, by=by, progress=progress
        )
    terminal.print_table(table.title, table.columns, table.rows, right=range(1, len(table.columns)))
    if table.answer:
        print(f"\n{table.answer}\n")
    for note in table.notes:
        print(f"  {note}")
    texts: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (json, lambda: report.to_json(values)),
        (html, lambda: report.to_html(table)),
        (latex, lambda: report.to_latex(table)),
    )
    for path, text in texts:
        if path is not None:
            terminal.write_text(path, text())
            print(f"wrote {path}")


def _measure(
    recipe: str,
    preset: str | None,
    data: Path,
    settings: list[str],
    curve: str | None,
    steps: str | None,
    loss: float | None,
    metric: str,
    **how: Any,
) -> tuple["Table", dict[str, Any]]:
    """The table for people and the values for programs: of a curve, of alternatives, or of one recipe."""
    from resight import recipe as recipes
    from resight.errors import InputError
    from resight.evaluate import comparison, curves, report, variants
    from resight.evaluate.run import run

    if curve is not None:
        chosen = [step for step in (steps or "").split(",") if step.strip()]
        drawn = curves.build(curve, steps=chosen, loss=loss, metric=metric).draw(
            recipes.load(recipe, settings, preset), data, **how
        )
        return comparison.tabulate(drawn), comparison.summarise_all(drawn)
    if steps is not None or loss is not None:
        raise InputError(
            "--steps and --loss belong to a curve", expected="--curve shortlist or --curve compression", fix="add it"
        )
    found = recipes.load_all(recipe, settings, preset)
    if len(found) > 1:
        compared = variants.compare(found, data, metric=metric, **how)
        return comparison.tabulate(compared), comparison.summarise_all(compared)
    result = run(found[0], data, **how)
    return report.tabulate(result), report.summarise(result)

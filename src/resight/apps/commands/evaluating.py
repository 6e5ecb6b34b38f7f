"""`resight eval`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.commands.adding import GIGABYTE, USUAL_CACHE, Cache, CacheSize, Set

if TYPE_CHECKING:
    from resight.evaluate.table import Table
    from resight.types import Recipe

STYLES = {"best": "bold", "second": "underline"}
NAMED = 3  # recipes that a title names


def evaluate(
    recipes: Annotated[
        list[str],
        typer.Argument(metavar="RECIPE", help="Recipe files, or names of shipped recipes."),
    ],
    data: Annotated[Path, typer.Option("--data", help="The folder that holds the data set.")],
    encoders: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            metavar="PRESET",
            help="Encode and search as this recipe does, on the data of the other; again for more rows.",
        ),
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
    cache: Cache = None,
    cache_size: CacheSize = USUAL_CACHE,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither keep what the networks see nor look for it.")
    ] = False,
    by: Annotated[
        str, typer.Option(help="Also show the figures for each value of this attribute of the queries.")
    ] = "set",
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write figures, recipe and every query.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write tables and charts as a page.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as LaTeX.")] = None,
) -> None:
    """Measure recipes on a data set with known truth: every row and every alternative that they hold, in one table."""
    from resight.encode.feature_cache import FeatureCache, find_folder
    from resight.evaluate import table as tables

    with terminal.progress("evaluating") as progress:
        table, values = _measure(
            recipes,
            encoders or [],
            data,
            settings or [],
            curve,
            steps,
            loss,
            metric,
            progress,
            keep=keep,
            cache=None if no_cache else FeatureCache(cache or find_folder(), int(cache_size * GIGABYTE)),
            by=by,
        )
    _print(table)
    texts: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (json, lambda: tables.to_json(values)),
        (html, lambda: tables.to_html(table)),
        (latex, lambda: tables.to_latex(table)),
    )
    for path, text in texts:
        if path is not None:
            terminal.write_text(path, text())
            print(f"wrote {path}")


def _measure(
    sources: Sequence[str],
    presets: Sequence[str],
    data: Path,
    settings: list[str],
    curve: str | None,
    steps: str | None,
    loss: float | None,
    metric: str,
    progress: terminal.Bar,
    **how: Any,
) -> tuple["Table", dict[str, Any]]:
    """The table for people and the values for programs: of a curve, of many recipes, or of one."""
    from resight import recipe as recipes
    from resight.errors import InputError
    from resight.evaluate import comparison, curves, report, variants
    from resight.evaluate.run import run

    if curve is not None:
        chosen = [step for step in (steps or "").split(",") if step.strip()]
        drawn = curves.build(curve, steps=chosen, loss=loss, metric=metric).draw(
            _load_one(sources, presets, settings), data, progress=progress, **how
        )
        return comparison.tabulate(drawn), comparison.summarise_all(drawn)
    if steps is not None or loss is not None:
        raise InputError(
            "--steps and --loss belong to a curve", expected="--curve shortlist or --curve compression", fix="add it"
        )
    found = recipes.load_many(sources, settings, presets)
    if len(found) > 1:
        compared = variants.compare(
            found, data, name=_name(sources, presets), metric=metric, progress=progress, tell=progress.tell, **how
        )
        return comparison.tabulate(compared), comparison.summarise_all(compared)
    result = run(found[0], data, progress=progress, **how)
    return report.tabulate(result), report.summarise(result)


def _load_one(sources: Sequence[str], presets: Sequence[str], settings: list[str]) -> "Recipe":
    from resight import recipe as recipes
    from resight.errors import InputError

    if len(sources) > 1 or len(presets) > 1:
        raise InputError(
            "a curve is drawn of one recipe",
            expected="one RECIPE, and at most one --encoder",
            actual=", ".join([*sources, *presets]),
            fix="draw a curve of each",
        )
    return recipes.load(sources[0], settings, *presets)


def _name(sources: Sequence[str], presets: Sequence[str]) -> str:
    """What many recipes are called together; one has a name of its own."""

    def list_names(names: Sequence[str]) -> str:
        shown = [Path(name).stem if name.endswith(".toml") else name for name in names[:NAMED]]
        return ", ".join([*shown, *([f"{len(names) - NAMED} more"] if len(names) > NAMED else [])])

    if len(presets) > 1:
        return f"{list_names(sources)} with {list_names(presets)}"
    return list_names(sources) if len(sources) > 1 else ""


def _print(table: "Table") -> None:
    """The table, what it says, and what its figures mean; marks and their legend on a terminal alone."""
    from resight.evaluate.table import LEGEND, NOT_MEASURED, explain_absent, split_figure

    styles = {
        (row, column): (len(split_figure(table.rows[row][column])[0]), STYLES[mark])
        for (row, column), mark in table.marks.items()
    }
    terminal.print_table(table.title, table.columns, table.rows, range(1, len(table.columns)), styles)
    if table.answer:
        print(f"\n{table.answer}\n")
    if table.absent:
        print(f"\n{NOT_MEASURED}:")
    for line in explain_absent(table):
        print(f"  {terminal.clean(line)}")
    if table.absent:
        print()
    legend = [LEGEND] if table.marks and terminal.console().is_terminal else []
    for note in (*legend, *table.notes):
        print(f"  {note}")

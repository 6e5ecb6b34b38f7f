"""`resight eval`: recipes measured on a data set with ground truth."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.options import CACHE_SIZE, Attribution, Cache, CacheSize, Set, TilesOption, open_cache, read_tiles

if TYPE_CHECKING:
    from resight.evaluate.evaluate import Extras
    from resight.evaluate.records import Record
    from resight.evaluate.table import Table
    from resight.types import Recipe

NAMED = 3  # recipes to name in a title


def evaluate(
    recipes: Annotated[
        list[str],
        typer.Argument(metavar="RECIPE", help="Recipe files, or names of shipped recipes."),
    ],
    data: Annotated[Path, typer.Option("--data", help="Folder of the data set.")],
    encoders: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            metavar="PRESET",
            help="Encode and search like this preset, on the data of RECIPE; repeat for more rows.",
        ),
    ] = None,
    settings: Set = None,
    curve: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Plot quality against: shortlist (its size), or compression."),
    ] = None,
    steps: Annotated[
        str | None, typer.Option(help="Points of the curve, e.g. 10,50,100 or 5%,10% or fp32,int8,pq52x8.")
    ] = None,
    loss: Annotated[float | None, typer.Option(help="The share of quality that may be lost, e.g. 0.06.")] = None,
    metric: Annotated[
        str, typer.Option(help="The metric of loss and differences; default: the recipe's first.", show_default=False)
    ] = "",
    keep: Annotated[Path | None, typer.Option(help="Store the collection here and reuse it in the next run.")] = None,
    cache: Cache = None,
    cache_size: CacheSize = CACHE_SIZE,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not use the feature cache.")] = False,
    by: Annotated[str, typer.Option(help="Also show figures per value of this query attribute.")] = "set",
    split: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also show figures per part of the queries (CSV: id, split)."),
    ] = None,
    strata: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Also show figures by these properties of the positives: size,centre,brightness,clutter, or "
            "any attribute.",
            show_default=False,
        ),
    ] = "",
    bins: Annotated[int, typer.Option(min=1, help="Bins of about equal count for --strata.")] = 5,
    distances: Annotated[
        bool,
        typer.Option("--distances", help="Also show distances of queries to database and answers."),
    ] = False,
    relight: Annotated[
        str,
        typer.Option(
            metavar="FACTORS",
            help="Also measure with the lightness (L) of every image multiplied, e.g. 0.2,0.6,1.0,1.4,1.8.",
            show_default=False,
        ),
    ] = "",
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write figures, recipe and results per query.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page: tables, charts, pictures of queries, a map.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as LaTeX.")] = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the rankings as a TREC run file; for several rows, a folder of them."),
    ] = None,
    tiles: TilesOption = "",
    attribution: Attribution = "",
) -> None:
    """Measure recipes on a data set with ground truth.

    Prints one table, with a row per recipe and alternative.
    """
    from resight.apps.cli.report import list_strata, print_table, write
    from resight.encode.feature_cache import find_folder
    from resight.evaluate.evaluate import Extras
    from resight.evaluate.records import parse
    from resight.evaluate.strata import read_split
    from resight.evaluate.trec import DEPTH, Recorder

    recorder = Recorder() if run else None
    layer = read_tiles(tiles, attribution)
    layers = tuple(name.strip() for name in strata.split(",") if name.strip())
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
            relight,
            progress,
            extras=Extras(
                layers,
                bins,
                html is not None,
                recorder.add if recorder else None,
                read_split(split) if split else None,
            ),
            keep=keep,
            cache=None if no_cache else open_cache(cache or find_folder(), cache_size),
            by=by,
        )
    records = parse(values)
    tables = [table, *list_strata(records, metric)]
    if distances:
        tables.append(_measure_distances(recipes, encoders or [], data, settings or [], records))
    for part in tables:
        print_table(part)
    write(tables, records, values, metric, json=json, html=html, markdown=markdown, latex=latex, tiles=layer)
    if recorder and run:
        for path in recorder.write(run):
            print(f"wrote {path} (the first {DEPTH:,} answers of each query)")


def _measure(
    sources: Sequence[str],
    presets: Sequence[str],
    data: Path,
    settings: list[str],
    curve: str | None,
    steps: str | None,
    loss: float | None,
    metric: str,
    light: str,
    progress: terminal.Bar,
    extras: "Extras",
    **how: Any,
) -> tuple["Table", dict[str, Any]]:
    """The table for people and the values for programs: of a curve, of many recipes, or of one."""
    from resight import recipe as recipes
    from resight.errors import InputError
    from resight.evaluate import comparison, curves, summary, variants
    from resight.evaluate.brightness import relight
    from resight.evaluate.evaluate import load_dataset, prepare, run

    if light:
        _refuse_together(curve, how.pop("keep"))
        relit = relight(
            _load_one(sources, presets, settings),
            data,
            _read_factors(light),
            metric=metric,
            progress=progress,
            tell=progress.restart,
            extras=extras,
            **how,
        )
        return comparison.tabulate(relit), comparison.summarise_all(relit)
    if curve is not None:
        if extras.strata or extras.split is not None:
            raise InputError(
                "a curve has no strata", expected="--curve, --strata or --split", fix="leave out the others"
            )
        chosen = [step for step in (steps or "").split(",") if step.strip()]
        one, by = _load_one(sources, presets, settings), how.pop("by")
        drawn = curves.build(curve, steps=chosen, loss=loss, metric=metric).draw(
            one, lambda: prepare(one, load_dataset(one, data), progress=progress, **how), by, progress
        )
        return comparison.tabulate(drawn), comparison.summarise_all(drawn)
    if steps is not None or loss is not None:
        raise InputError(
            "--steps and --loss belong to a curve", expected="--curve shortlist or --curve compression", fix="add it"
        )
    found = recipes.load_many(sources, settings, presets)
    if len(found) > 1:
        compared = variants.compare(
            found,
            data,
            name=_name(sources, presets),
            metric=metric,
            progress=progress,
            tell=progress.restart,
            extras=extras,
            **how,
        )
        return comparison.tabulate(compared), comparison.summarise_all(compared)
    result = run(found[0], data, progress=progress, extras=extras, **how)
    return summary.tabulate(result), summary.summarise(result)


def _measure_distances(
    sources: Sequence[str], presets: Sequence[str], data: Path, settings: list[str], records: Sequence["Record"]
) -> "Table":
    from resight import recipe as recipes
    from resight.evaluate.distances import tabulate_distances
    from resight.evaluate.evaluate import load_dataset

    return tabulate_distances(load_dataset(recipes.load_many(sources, settings, presets)[0], data), records)


def _load_one(sources: Sequence[str], presets: Sequence[str], settings: list[str]) -> "Recipe":
    from resight import recipe as recipes
    from resight.errors import InputError

    if len(sources) > 1 or len(presets) > 1:
        raise InputError(
            "a curve shows one recipe",
            expected="one RECIPE, and at most one --encoder",
            actual=", ".join([*sources, *presets]),
            fix="draw one curve per recipe",
        )
    return recipes.load(sources[0], settings, *presets)


def _name(sources: Sequence[str], presets: Sequence[str]) -> str:
    """A title for several recipes; empty for one, which has its own name."""

    def list_names(names: Sequence[str]) -> str:
        shown = [Path(name).stem if name.endswith(".toml") else name for name in names[:NAMED]]
        return ", ".join([*shown, *([f"{len(names) - NAMED} more"] if len(names) > NAMED else [])])

    if len(presets) > 1:
        return f"{list_names(sources)} with {list_names(presets)}"
    return list_names(sources) if len(sources) > 1 else ""


def _read_factors(words: str) -> list[float]:
    from resight.errors import InputError

    try:
        return [float(word) for word in words.split(",") if word.strip()]
    except ValueError as error:
        raise InputError(
            "--relight takes numbers", expected="e.g. 0.2,0.6,1.0,1.4,1.8", actual=words, fix="give a list like this"
        ) from error


def _refuse_together(curve: str | None, keep: Path | None) -> None:
    from resight.errors import InputError

    if curve is not None or keep is not None:
        raise InputError(
            "--relight changes the images of the data set",
            expected="neither --curve nor --keep with it",
            actual="--curve" if curve is not None else "--keep",
            fix="leave it out",
        )

"""`resight eval`: recipes measured on a data set with ground truth."""

from pathlib import Path
from typing import Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import (
    CACHE_SIZE,
    Attribution,
    Cache,
    CacheSize,
    Set,
    TilesOption,
    complete,
    open_cache,
    read_tiles,
)


def evaluate(
    recipes: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE", help="Recipe files, or names of shipped recipes.", autocompletion=complete("recipes")
        ),
    ],
    data: Annotated[Path, typer.Option("--data", help="Folder of the data set.")],
    encoders: Annotated[
        list[str] | None,
        typer.Option(
            "--preset",
            "--encoder",
            metavar="NAME",
            help="Encode and search like this preset, on the data of RECIPE; repeat for more rows.",
            autocompletion=complete("presets"),
        ),
    ] = None,
    settings: Set = None,
    curve: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Plot quality against shortlist size (shortlist) or compression."),
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
    import resight
    from resight.apps.cli.report import print_table, write
    from resight.encode.feature_cache import find_folder
    from resight.evaluate.trec import DEPTH

    tile_server = read_tiles(tiles, attribution)
    with terminal.progress("evaluating") as progress:
        evaluation = resight.evaluate(
            recipes,
            data,
            encoders=encoders or [],
            overrides=settings or [],
            metric=metric,
            keep=keep,
            cache=None if no_cache else open_cache(cache or find_folder(), cache_size),
            by=by,
            split=split,
            strata=_split(strata),
            bins=bins,
            map=html is not None,
            distances=distances,
            curve=curve,
            steps=_split(steps or ""),
            loss=loss,
            brightness=_read_factors(relight) if relight else None,
            run_file=run,
            progress=progress,
            report=progress.restart,
        )
    comparison = resight.compare([evaluation], metric=metric)
    tables = [evaluation.table, *comparison.strata_tables, *evaluation.more_tables]
    for table in tables:
        print_table(table)
    write(
        tables,
        comparison,
        evaluation=evaluation,
        json=json,
        html=html,
        markdown=markdown,
        latex=latex,
        tiles=tile_server,
    )
    for file in evaluation.run_files:
        terminal.echo(f"wrote {file} (the first {DEPTH:,} answers of each query)")


def _split(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


def _read_factors(words: str) -> list[float]:
    from resight.errors import InputError

    try:
        return [float(word) for word in _split(words)]
    except ValueError as error:
        raise InputError(
            "--relight takes numbers", expected="e.g. 0.2,0.6,1.0,1.4,1.8", actual=words, fix="give a list like this"
        ) from error

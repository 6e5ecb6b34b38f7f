"""`resight identity`.

`resight tune`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.index import GIGABYTE, USUAL_CACHE, Cache, CacheSize, Json, Set
from resight.apps.cli.search import open_to_search

if TYPE_CHECKING:
    from resight.evaluate.comparison import Comparison


def identity(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    queries: Annotated[
        list[Path] | None,
        typer.Option(help="Images, folders or manifests to ask with; without any, images of the collection itself."),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers have to agree.")] = 10,
    sample: Annotated[int, typer.Option(min=1, help="How many images of the collection ask.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of their choice.")] = 0,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Measure how often the unproven answer is the exact one, and how much faster it is, on your own images.

    For collections with the index "maxsim". What is unproven: a cascade (--set index.cascade=true), or the codes alone.
    """
    from resight.evaluate.exactness import measure_identity

    opened = open_to_search(collection, settings)
    with terminal.progress("asking both ways") as report_progress:
        found = measure_identity(opened, queries or (), k, sample=sample, seed=seed, progress=report_progress)
    if json:
        return terminal.print_json(found)
    terminal.print_skipped(found.skipped)
    rows = [
        [
            str(part.rank),
            f"{part.same:,} of {found.queries:,}",
            f"{part.rate:.1%}",
            f"{part.low:.1%} to {part.high:.1%}",
        ]
        for part in found.ranks
    ]
    title = f"{collection}: {found.way} against the proven answer, {found.images:,} images"
    terminal.print_table(title, ("first", "the same", "share", "95 % interval"), rows, right=(0, 1, 2, 3))
    ratio = found.proven_seconds / max(found.unproven_seconds, 1e-9)
    print(
        f"a shortlist of {found.depth}: {1000 * found.proven_seconds:.2f} ms proven, "
        f"{1000 * found.unproven_seconds:.2f} ms unproven ({ratio:.1f} × as fast), medians"
    )
    print(
        f"the proof scored {found.rescored:,.0f} of {found.images:,} images in full (median), "
        f"{found.most_rescored:,} at most"
    )
    return None


AXES = "The grid"


def tune(
    source: Annotated[str, typer.Argument(metavar="RECIPE|COLLECTION", help="A recipe with --data, or a collection.")],
    queries: Annotated[
        list[Path] | None, typer.Argument(help="Images to ask a collection with; else images of its own.")
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="The folder that holds the recipe's data set.")] = None,
    m: Annotated[
        str,
        typer.Option(help="Parts of a row; else divisors of its dimensions.", show_default=False, rich_help_panel=AXES),
    ] = "",
    dimensions: Annotated[
        str,
        typer.Option(
            help="Whiten rows to so many dimensions first; 0: as they are.", show_default=False, rich_help_panel=AXES
        ),
    ] = "",
    nlist: Annotated[str, typer.Option(help="Lists; 0: from the number of rows.", rich_help_panel=AXES)] = "0",
    nbits: Annotated[str, typer.Option(help="Bits of a part.", rich_help_panel=AXES)] = "8",
    nprobe: Annotated[str, typer.Option(help="Lists that a search looks into.", rich_help_panel=AXES)] = "8,32,128",
    rotation: Annotated[
        bool, typer.Option("--rotation", help="Also with a learnt rotation (OPQ).", rich_help_panel=AXES)
    ] = False,
    fast: Annotated[bool, typer.Option("--fast", help="Also by 4-bit fast scan.", rich_help_panel=AXES)] = False,
    train_on: Annotated[
        str,
        typer.Option(
            help="What the codes learn from: all, L0 to L3, or the number of a branch.",
            show_default=False,
            rich_help_panel=AXES,
        ),
    ] = "",
    kept: Annotated[
        str,
        typer.Option(
            "--rows",
            help="Rows that stay on disk to refine answers: none, fp16.",
            show_default=False,
            rich_help_panel=AXES,
        ),
    ] = "",
    branch: Annotated[
        int | None, typer.Option(help="The branch to tune, counted from 0, where there are several.")
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, help="Images of an answer: 100 with --data, else 10.", show_default=False),
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="How many images of a collection ask.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of their choice.")] = 0,
    metric: Annotated[
        str, typer.Option(help="The metric of quality; else the recipe's first.", show_default=False)
    ] = "",
    loss: Annotated[float, typer.Option(min=0, max=1, help="The share of the best that may be lost.")] = 0.05,
    settings: Set = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the collection here, so that a second run starts from it.")
    ] = None,
    cache: Cache = None,
    cache_size: CacheSize = USUAL_CACHE,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write figures, recipes and every query.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with plots.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as LaTeX.")] = None,
) -> None:
    """Measure a grid of IVFPQ indexes: quality, bytes and time of each, and which are worth it.

    With --data on a data set with known truth; a collection by how much of the exact answer is found.
    """
    from resight import recipe as recipes
    from resight.apps.cli.report import print_table, write
    from resight.apps.cli.search import open_to_search
    from resight.encode.feature_cache import FeatureCache, find_folder
    from resight.evaluate import comparison, tune_index
    from resight.evaluate.index_grid import Grid
    from resight.evaluate.records import parse

    grid = Grid(
        m=_read_numbers(m, "m"),
        dimensions=_read_numbers(dimensions, "dimensions"),
        nlist=_read_numbers(nlist, "nlist"),
        nbits=_read_numbers(nbits, "nbits"),
        nprobe=_read_numbers(nprobe, "nprobe"),
        train_on=_split(train_on),
        keep=_split(kept),
        rotation=rotation,
        fast=fast,
    )
    _refuse_together(data, queries or (), metric, keep)
    found: Comparison
    with terminal.progress("tuning") as bar:
        if data is not None:
            found = tune_index.tune(
                recipes.load(source, settings or []),
                data,
                grid,
                branch=branch,
                depth=k or tune_index.DEPTH,
                metric=metric,
                loss=loss,
                keep=keep,
                cache=FeatureCache(cache or find_folder(), int(cache_size * GIGABYTE)),
                progress=bar,
                tell=bar.tell,
            )
        else:
            found = tune_index.tune_collection(
                open_to_search(Path(source), settings),
                queries or (),
                grid,
                branch=branch,
                k=k or 10,
                sample=sample,
                seed=seed,
                loss=loss,
                progress=bar,
                tell=bar.tell,
            )
    table, values = comparison.tabulate(found), comparison.summarise_all(found)
    print_table(table)
    write([table], parse(values), values, metric, json=json, html=html, markdown=markdown, latex=latex)
    if values["line"]:
        print(f"\n{values['line']}")


def _split(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _read_numbers(words: str, name: str) -> tuple[int, ...]:
    from resight.errors import InputError

    try:
        return tuple(map(int, _split(words)))
    except ValueError as error:
        raise InputError(
            f"--{name} takes whole numbers", expected="e.g. 16,32,64", actual=words, fix="give such a list"
        ) from error


def _refuse_together(data: Path | None, queries: Sequence[Path], metric: str, keep: Path | None) -> None:
    from resight.errors import InputError

    if data is not None and queries:
        raise InputError(
            "a data set has queries of its own",
            expected="RECIPE --data ROOT, or COLLECTION QUERIES…",
            actual=f"--data and {queries[0]}",
            fix="leave one of them out",
        )
    if data is None and (metric or keep):
        raise InputError(
            "a collection has no truth to measure by",
            expected="--metric and --keep with --data ROOT only",
            actual="--metric" if metric else "--keep",
            fix="leave it out: quality is the share of the exact answer that is found",
        )

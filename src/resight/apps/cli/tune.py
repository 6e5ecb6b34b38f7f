"""`resight exactness` and `resight tune`: what a faster index costs in quality, and which settings are worth it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import CACHE_SIZE, Cache, CacheSize, Json, Set, open_cache

if TYPE_CHECKING:
    from resight.evaluate.evaluation import Evaluation


def exactness(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    queries: Annotated[
        list[Path] | None,
        typer.Option(help="Images, folders or manifests as queries; default: images of the collection itself."),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of answers that have to agree.")] = 10,
    sample: Annotated[int, typer.Option(min=1, help="Number of images of the collection to use as queries.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of their random choice.")] = 0,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Measure how often the fast search matches the exact one.

    Also measures how much faster it is, on your own images. For collections with the index "maxsim". Fast are
    a cascade (--set index.cascade=true), or the codes alone.
    """
    from resight.apps.cli.search import open_to_search
    from resight.evaluate.exactness import measure_exactness

    opened = open_to_search(collection, settings)
    with terminal.progress("comparing") as bar:
        found = measure_exactness(opened, queries or (), k, sample=sample, seed=seed, progress=bar)
    if json:
        return terminal.print_json(found)
    terminal.print_skipped(found.skipped)
    rows = [
        [str(one.rank), f"{one.same:,} of {found.queries:,}", f"{one.rate:.1%}", f"{one.low:.1%} to {one.high:.1%}"]
        for one in found.ranks
    ]
    title = f"{collection}: {found.way} against the exact search, {found.images:,} images"
    terminal.print_table(title, ("first", "the same", "share", "95 % interval"), rows, right=(0, 1, 2, 3))
    ratio = found.proven_seconds / max(found.unproven_seconds, 1e-9)
    terminal.echo(
        f"a shortlist of {found.depth}: {1000 * found.proven_seconds:.2f} ms exact, "
        f"{1000 * found.unproven_seconds:.2f} ms fast ({ratio:.1f} × as fast), medians"
    )
    terminal.echo(
        f"the exact search scored {found.rescored:,.0f} of {found.images:,} images in full precision (median), "
        f"{found.most_rescored:,} at most"
    )
    return None


def tune(
    source: Annotated[str, typer.Argument(metavar="RECIPE|COLLECTION", help="A recipe with --data, or a collection.")],
    queries: Annotated[
        list[Path] | None, typer.Argument(help="Query images for a collection; default: its own images.")
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="The folder that holds the recipe's data set.")] = None,
    m: Annotated[
        str,
        typer.Option(help="Parts per row; default: divisors of its dimensions.", show_default=False),
    ] = "",
    dimensions: Annotated[
        str,
        typer.Option(help="Whiten rows to this many dimensions first; 0: as they are.", show_default=False),
    ] = "",
    nlist: Annotated[str, typer.Option(help="Number of lists; 0: chosen by the number of rows.")] = "0",
    nbits: Annotated[str, typer.Option(help="Bits per part.")] = "8",
    nprobe: Annotated[str, typer.Option(help="Lists that a search visits.")] = "8,32,128",
    rotation: Annotated[bool, typer.Option("--rotation", help="Also try a learnt rotation (OPQ).")] = False,
    fast: Annotated[bool, typer.Option("--fast", help="Also try 4-bit fast scan.")] = False,
    train_on: Annotated[
        str,
        typer.Option(
            help="Rows that the codes learn from: all, L0 to L3, or the number of a branch.", show_default=False
        ),
    ] = "",
    stored: Annotated[
        str,
        typer.Option("--rows", help="Rows to store on disk to refine answers: none, fp16.", show_default=False),
    ] = "",
    branch: Annotated[
        int | None, typer.Option(help="The branch to tune, counted from 0; needed if there are several.")
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, help="Images per answer: 100 with --data, else 10.", show_default=False),
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Number of images of a collection to use as queries.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of their random choice.")] = 0,
    metric: Annotated[
        str, typer.Option(help="The metric of quality; default: the recipe's first.", show_default=False)
    ] = "",
    loss: Annotated[float, typer.Option(min=0, max=1, help="The share of the best quality that may be lost.")] = 0.05,
    settings: Set = None,
    keep: Annotated[Path | None, typer.Option(help="Store the collection here and reuse it in the next run.")] = None,
    cache: Cache = None,
    cache_size: CacheSize = CACHE_SIZE,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write figures, recipes and results per query.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with plots.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as LaTeX.")] = None,
) -> None:
    """Measure a grid of IVFPQ indexes: quality, bytes and time.

    Marks the indexes that are worth it. Quality is measured on a data set with ground truth (--data), or
    as the share of the exact answer that is found.
    """
    from resight import recipe as recipes
    from resight.apps.cli.report import print_table, write
    from resight.apps.cli.search import open_to_search
    from resight.encode.feature_cache import find_folder
    from resight.evaluate import tune_index
    from resight.evaluate.comparison import compare
    from resight.evaluate.index_grid import Grid

    grid = Grid(
        m=_read_numbers(m, "m"),
        dimensions=_read_numbers(dimensions, "dimensions"),
        nlist=_read_numbers(nlist, "nlist"),
        nbits=_read_numbers(nbits, "nbits"),
        nprobe=_read_numbers(nprobe, "nprobe"),
        train_on=_split(train_on),
        keep=_split(stored),
        rotation=rotation,
        fast=fast,
    )
    _refuse_together(data, queries or (), metric, keep)
    evaluation: Evaluation
    with terminal.progress("tuning") as bar:
        if data is not None:
            evaluation = tune_index.tune(
                recipes.load(source, settings or []),
                data,
                grid,
                branch=branch,
                depth=k or tune_index.DEPTH,
                metric=metric,
                loss=loss,
                keep=keep,
                cache=open_cache(cache or find_folder(), cache_size),
                progress=bar,
                report=bar.restart,
            )
        else:
            evaluation = tune_index.tune_collection(
                open_to_search(Path(source), settings),
                queries or (),
                grid,
                branch=branch,
                k=k or 10,
                sample=sample,
                seed=seed,
                loss=loss,
                progress=bar,
                report=bar.restart,
            )
    print_table(evaluation.table)
    write(
        [evaluation.table],
        compare([evaluation], metric=metric),
        evaluation=evaluation,
        json=json,
        html=html,
        markdown=markdown,
        latex=latex,
    )
    if evaluation.settings["line"]:
        terminal.echo(f"\n{evaluation.settings['line']}")


def _split(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _read_numbers(words: str, name: str) -> tuple[int, ...]:
    from resight.errors import InputError

    try:
        return tuple(map(int, _split(words)))
    except ValueError as error:
        raise InputError(
            f"--{name} takes whole numbers", expected="e.g. 16,32,64", actual=words, fix="give a list like this"
        ) from error


def _refuse_together(data: Path | None, queries: Sequence[Path], metric: str, keep: Path | None) -> None:
    from resight.errors import InputError

    if data is not None and queries:
        raise InputError(
            "a data set has its own queries",
            expected="RECIPE --data ROOT, or COLLECTION QUERIES…",
            actual=f"--data and {queries[0]}",
            fix="leave one of them out",
        )
    if data is None and (metric or keep):
        raise InputError(
            "a collection has no ground truth",
            expected="--metric and --keep with --data ROOT only",
            actual="--metric" if metric else "--keep",
            fix="leave it out: quality is then the share of the exact answer that is found",
        )

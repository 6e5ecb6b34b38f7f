"""`resight identity`."""

from pathlib import Path
from typing import Annotated

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Json, Set
from resight.apps.commands.searching import open_to_search


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

    For collections with the index "late". What is unproven: a cascade (--set index.cascade=true), or the codes alone.
    """
    from resight.collection.identity import measure_identity

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

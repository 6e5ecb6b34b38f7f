"""`resight search`, and how every command opens a collection to search it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Attribution, Json, Set, TilesOption, read_tiles

if TYPE_CHECKING:
    from resight.collection import Collection
    from resight.types import Hit, Recipe


def search(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    image: Annotated[Path, typer.Argument(help="The image to look for.")],
    box: Annotated[str | None, typer.Option(metavar="X0,Y0,X1,Y1", help="Look only for this part of it.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of answers.")] = 10,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Only images with e.g. 'year>=1900' or 'city IN (Rome, Paris) OR label=gate'.",
        ),
    ] = None,
    near: Annotated[str | None, typer.Option(metavar="LAT,LON,METRES", help="Only images taken near a place.")] = None,
    settings: Set = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="Where to search: local, ray, ray://HOST:PORT, ray://auto, qdrant://HOST:PORT/NAME or qdrant:FOLDER.",
        ),
    ] = "local",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that shows the answers.")] = None,
    tiles: TilesOption = "",
    attribution: Attribution = "",
    json: Json = False,
) -> None:
    """Find the same object in a collection.

    Shows in which images it is, where in them, and how sure that is.
    """
    from resight.search.request import SearchRequest, parse_box, parse_near

    region = parse_box(box, "--box")
    circle = parse_near(near, "--near")
    request = SearchRequest.parse(image, k, box=region, where=where or (), near=circle)
    layer = read_tiles(tiles, attribution)
    if engine.startswith("qdrant:"):
        from resight.collection.qdrant.exported_search import ask_engine

        opened = open_to_search(collection, settings)
        answer = ask_engine(opened, engine, request)
    else:
        if engine == "local":
            from resight.store import skip_pandas

            skip_pandas()
        opened = open_to_search(collection, settings, engine)
        answer = opened.view().ask(request)
    if html:
        from resight.apps.answer_page import make_section
        from resight.explain.search_page import render_many

        section = make_section(answer, image)
        terminal.write_text(html, render_many(f"resight: {image.name}", [section], layer))
    if json:
        return terminal.print_json(
            {
                "query": str(image),
                "box": region,
                "hits": answer.hits,
                "seconds": answer.ranking.seconds,
                "proof": answer.ranking.proof,
            }
        )
    print_hits(f"{image.name} in {collection} ({len(opened):,} images)", answer.hits)
    if answer.hits and answer.ranking.proof:
        terminal.echo(f"shortlist: {answer.ranking.proof}")
    if html:
        terminal.echo(f"wrote {html}")
    return None


def open_to_search(path: Path, settings: list[str] | None, engine: str = "local") -> "Collection":
    """An existing collection, its recipe changed by `--set` for this run, searched by `engine`."""
    from resight import recipe as recipes
    from resight.collection import metadata, open_collection

    recipe = None
    if settings:
        from resight.recipe.overrides import apply

        table = recipes.to_table(metadata.read(path).recipe)
        for setting in settings:
            apply(table, setting)
        recipe = recipes.parse(table)
        recipes.refuse_idle_index(recipe, settings)
    opened = open_collection(path, recipe, must_exist=True, engine=engine)
    if engine != "local":
        report_local_indexes(opened.recipe, engine)
    return opened


def report_local_indexes(recipe: "Recipe", engine: str) -> None:
    """Names, on stderr, the indexes that this process searches although the user named an engine."""
    from resight.collection.engine import list_local

    for name in list_local(recipe, engine):
        terminal.echo(f"the index {name!r} stays on this machine: shards would change its answers", file=sys.stderr)


def _format_boxes(hit: "Hit") -> str:
    boxes = () if hit.box is None else (hit.box, *hit.other_boxes)
    return "\n".join(", ".join(f"{side:.0f}" for side in box) for box in boxes)


def print_hits(title: str, hits: tuple["Hit", ...]) -> None:
    if not hits:
        terminal.echo("nothing found: the collection is empty, or no image passes the filters")
        return
    rows = [
        [
            str(rank),
            hit.id,
            "–" if hit.probability is None else f"{hit.probability:.1%}",
            f"{hit.score:.2f}",
            f"{hit.stages.get('inliers', 0):.0f}",
            _format_boxes(hit),
        ]
        for rank, hit in enumerate(hits, start=1)
    ]
    columns = ("", "image", "same object", "score", "inliers", "box x0, y0, x1, y1")
    terminal.print_table(title, columns, rows, right=(0, 2, 3, 4))

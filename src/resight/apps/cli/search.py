"""`resight search`."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.index import Json, Set
from resight.apps.cli.options import Attribution, TilesOption, read_tiles
from resight.errors import BoxError, InputError
from resight.types import Box, Hit, Recipe

if TYPE_CHECKING:
    from resight.collection import Answer, Collection


def search(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    image: Annotated[Path, typer.Argument(help="The image to look for.")],
    box: Annotated[str | None, typer.Option(metavar="X0,Y0,X1,Y1", help="Look for this part of it only.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 10,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help='Only images with e.g. "label=crater" or "year>=1900".'),
    ] = None,
    near: Annotated[str | None, typer.Option(metavar="LAT,LON,METRES", help="Only images taken near a place.")] = None,
    settings: Set = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="Where: local, ray, ray://HOST:PORT, ray://auto, qdrant://HOST:PORT/NAME or qdrant:FOLDER.",
        ),
    ] = "local",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that shows the answers.")] = None,
    tiles: TilesOption = "",
    attribution: Attribution = "",
    json: Json = False,
) -> None:
    """Find the same thing in a collection: which images, where in them, and how sure."""
    region = parse_numbers(box, 4, "--box", BoxError)
    circle = parse_numbers(near, 3, "--near", InputError)
    layer = read_tiles(tiles, attribution)
    in_qdrant = engine.startswith("qdrant:")
    opened = open_to_search(collection, settings, "local" if in_qdrant else engine)
    ask = ask_in_qdrant(opened, engine) if in_qdrant else opened.ask
    answer = ask(image, k, box=region, where=where or (), near=circle)  # type: ignore[arg-type]
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
        print(f"shortlist: {answer.ranking.proof}")
    if html:
        print(f"wrote {html}")
    return None


def ask_in_qdrant(opened: "Collection", engine: str) -> Callable[..., "Answer"]:
    """`Collection.ask`, answered by an export."""
    from resight.collection.qdrant.exported_search import ask_engine

    return partial(ask_engine, opened, engine)


def open_to_search(path: Path, settings: list[str] | None, engine: str = "local") -> "Collection":
    """A collection that is there, with settings changed for this time, searched where `engine` says."""
    from resight import recipe as recipes
    from resight.collection import open_collection

    opened = open_collection(path, must_exist=True, engine=engine)
    tell_local(opened.recipe, engine)
    if not settings:
        return opened
    table = recipes.to_table(opened.recipe)
    for setting in settings:
        recipes.apply(table, setting)
    wanted = recipes.parse(table)
    recipes.refuse_idle_index(wanted, settings)
    return open_collection(path, wanted, must_exist=True, engine=engine)


def tell_local(recipe: Recipe, engine: str) -> None:
    """Which indexes an engine does not take over."""
    from resight.collection.build_pipeline import list_local

    for name in list_local(recipe, engine):
        print(f"the index {name!r} stays on this machine: in shards its answers would not be the same", file=sys.stderr)


def print_hits(title: str, hits: tuple[Hit, ...]) -> None:
    if not hits:
        print("nothing found: the collection is empty, or no image passes the filters")
        return
    rows = [
        [
            str(rank),
            hit.id,
            "–" if hit.probability is None else f"{hit.probability:.1%}",
            f"{hit.score:.2f}",
            f"{hit.stages.get('inliers', 0):.0f}",
            "" if hit.box is None else ", ".join(f"{side:.0f}" for side in hit.box),
        ]
        for rank, hit in enumerate(hits, start=1)
    ]
    columns = ("", "image", "same thing", "score", "inliers", "box x0, y0, x1, y1")
    terminal.print_table(title, columns, rows, right=(0, 2, 3, 4))


def parse_numbers(text: str | None, count: int, option: str, error: type[InputError]) -> Box | None:
    """Comma-separated numbers of an option; None when it was not given."""
    if text is None:
        return None
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != count:
        raise error(
            f"cannot read {option} {text!r}",
            expected=f"{count} numbers with commas between them",
            actual=text,
            fix=f"e.g. {option} {'10,20,200,300' if count == 4 else '48.8584,2.2945,500'}",
        )
    return numbers  # type: ignore[return-value]

"""`resight plan`."""

from pathlib import Path
from typing import Annotated

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Json, Set


def plan(
    path: Annotated[Path | None, typer.Argument(help="The folder or manifest that is to be indexed.")] = None,
    images: Annotated[int | None, typer.Option(min=1, help="Plan for so many images of that kind.")] = None,
    encoder: Annotated[str | None, typer.Option(help="A preset by name.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A recipe file of your own.")] = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Time, memory and disk that an index would take, from a probe of a few images. Writes nothing."""
    from resight import recipe as recipes
    from resight.collection import DEFAULT
    from resight.collection.planning import estimate

    found = estimate(recipes.load(recipe or encoder or DEFAULT, settings or ()), path, images)
    if json:
        return terminal.print_json(found)
    print(f"{found.images:,} images, judged by {found.probed} of {'this folder' if path else 'a generated kind'}:")
    print(f"time    {terminal.say_seconds(found.seconds)} ({1 / found.seconds_an_image:.1f} images a second)")
    print(f"memory  {terminal.say_bytes(found.memory_bytes)} at most while indexing")
    print(f"disk    {terminal.say_bytes(found.store_bytes)} store + {terminal.say_bytes(found.index_bytes)} index")
    if found.unreadable:
        print(
            f"{found.unreadable} of the images probed cannot be read; `resight data check folder PATH` names them all"
        )
    return None

"""The options of every command whose page has a map: whose tiles to lay under it."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from resight.explain.tiles import Tiles

TilesOption = Annotated[
    str,
    typer.Option(
        "--tiles",
        metavar="URL",
        help="Lay tiles of this server under maps of the page, e.g. https://tiles.example.org/{z}/{x}/{y}.png.",
        show_default=False,
    ),
]
Attribution = Annotated[
    str,
    typer.Option(
        "--attribution", metavar="TEXT", help="Whose tiles they are, to be said on the map.", show_default=False
    ),
]


def read_tiles(template: str, attribution: str) -> "Tiles | None":
    """None where no tiles were asked for."""
    from resight.explain.tiles import Tiles

    return Tiles(template, attribution) if template else None

"""Options that several commands share: their names, help texts and defaults."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.errors import InputError

if TYPE_CHECKING:
    from resight.encode.feature_cache import FeatureCache
    from resight.explain.tiles import Tiles

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe.")]

Cache = Annotated[Path | None, typer.Option("--cache", metavar="FOLDER", help="Cache features in this folder.")]
CacheSize = Annotated[
    float,
    typer.Option("--cache-size", min=0, metavar="GB", help="Size limit of the cache; the oldest entries go first."),
]
CACHE_SIZE = 4.0
GIGABYTE = 10**9

TilesOption = Annotated[
    str,
    typer.Option(
        "--tiles",
        metavar="URL",
        help="Show map tiles of this server on the page, e.g. https://tiles.example.org/{z}/{x}/{y}.png.",
        show_default=False,
    ),
]
Attribution = Annotated[
    str,
    typer.Option("--attribution", metavar="TEXT", help="Credit for the tiles, shown on the map.", show_default=False),
]


def check_source(source: str) -> None:
    """Refuse a path that leads nowhere; a data set (gldv2:ROOT) and a remote address are checked when they are read."""
    if Path(source).exists():
        return
    fix = "check the path"
    if ":" in source:
        from resight.data.set_source import parse_source, suggest_set
        from resight.files import remote

        fix = suggest_set(source) or fix
        if parse_source(source) or (remote.is_remote(source) and ("://" in source or not suggest_set(source))):
            return
    raise InputError(
        f"there is nothing at {source}",
        expected="a folder, an image, a manifest, or a data set and its folder (NAME:ROOT)",
        actual="no such file or folder",
        fix=fix,
    )


def open_cache(folder: Path | None, gigabytes: float) -> "FeatureCache | None":
    """None where the user named no folder."""
    if folder is None:
        return None
    from resight.encode.feature_cache import FeatureCache

    return FeatureCache(folder, int(gigabytes * GIGABYTE))


def read_tiles(template: str, attribution: str) -> "Tiles | None":
    """None where the user asked for no tiles."""
    if not template:
        return None
    from resight.explain.tiles import Tiles

    return Tiles(template, attribution)

"""Options that several commands share: their names, help texts and defaults."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from resight.encode.feature_cache import FeatureCache
    from resight.explain.tiles import Tiles


def complete(kind: str) -> Callable[[typer.Context, str], list[str]]:
    """The shell's completion of one kind of name; what finds the names is imported when a word is completed."""

    def list_matches(ctx: typer.Context, incomplete: str) -> list[str]:
        from resight.apps.cli.completion import list_names

        return list_names(kind, ctx.params, incomplete)

    return list_matches


PRESETS = "sift_tokens, sift, sift_vlad, tokens, regions, craters, large, or a network such as megaloc"
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset", "--encoder", metavar="NAME", help=f"A preset: {PRESETS}.", autocompletion=complete("presets")
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Only images with e.g. 'year>=1900' or 'city IN (Rome, Paris) OR label=gate'.",
        autocompletion=complete("attributes"),
    ),
]
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


def refuse_swapped(collection: Path, others: Sequence[str]) -> None:
    """InputError where the collection is none, and another argument is one."""
    if (collection / "collection.json").exists():
        return
    for other in others:
        if (Path(other) / "collection.json").exists():
            raise InputError(
                f"{collection} is no collection, but {other} is one: are the arguments swapped?",
                expected="the collection first",
                actual=f"{collection} {other}",
                fix=f"write {other} {collection}",
            )


def refuse_ids(missing: Sequence[str], known: Iterable[str]) -> InputError:
    """The error for ids that the collection does not hold."""
    return InputError(
        f"{len(missing):,} of the ids are not in the collection",
        expected="ids of its images",
        actual=", ".join(missing[:5]) + (", …" if len(missing) > 5 else ""),
        fix=did_you_mean(missing[0], known, "`resight ls COLLECTION` lists them"),
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

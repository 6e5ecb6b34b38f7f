"""`resight index`, `resight delete` and `resight export`: images into a collection, out of it, and on to Qdrant."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from resight.apps import terminal
from resight.apps.cli.options import (
    CACHE_SIZE,
    Cache,
    CacheSize,
    Json,
    Preset,
    Set,
    check_source,
    complete,
    open_cache,
    refuse_ids,
    refuse_swapped,
)
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.collection.add import AddReport

QDRANT_URL = "RESIGHT_QDRANT_URL"


def index(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="PATHS...",
            help="Folders, image files, manifests (.csv, .jsonl) or data sets (gldv2:ROOT); also s3://….",
        ),
    ],
    into: Annotated[Path, typer.Option("--into", help="The collection; created if missing.")],
    preset: Preset = None,
    recipe: Annotated[Path | None, typer.Option(help="Your own recipe file.")] = None,
    settings: Set = None,
    cache: Cache = None,
    cache_size: CacheSize = CACHE_SIZE,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="ENGINE", help="Where to encode: local, ray, ray://HOST:PORT or ray://auto."),
    ] = "local",
    prune: Annotated[
        bool, typer.Option("--prune", help="Also remove images whose file has vanished from these folders.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Let --prune remove more than half of them.")] = False,
    json: Json = False,
) -> None:
    """Add new and changed images to a collection. Run it again to continue after a stop.

    A file that was moved keeps its id and is not encoded again.
    """
    from resight import recipe as recipes
    from resight.collection import DEFAULT, open_collection
    from resight.collection.fit.fit_codebook import open_learning
    from resight.collection.image_list import list_images

    if preset and recipe:
        raise InputError("--preset and --recipe exclude each other", fix="give one of them")
    _check_engine(engine, cache)
    chosen = recipes.load(recipe or preset or DEFAULT, settings or ()) if preset or recipe or settings else None
    for source in sources:
        check_source(source)
    lists = list_images(sources)  # fails without images, before a collection is made
    features = open_cache(cache, cache_size)
    with terminal.progress("indexing") as bar:
        collection = (
            open_learning(into, chosen, lists, cache=features, progress=bar)
            if chosen
            else open_collection(into, cache=features)
        )
        report = collection.add(*lists, progress=bar, engine=engine)
    removed = collection.prune(*sources, most=1.0 if yes else 0.5) if prune else ()
    if json:
        answer = {"collection": into, "images": len(collection), **terminal.plain(report)}
        terminal.print_json({**answer, **({"removed": removed} if prune else {})})
    else:
        _print_report(into, len(collection), report)
        if prune:
            terminal.echo(f"removed {len(removed):,} images whose files are gone")
    _refuse_nothing(report)


def _print_report(into: Path, images: int, report: "AddReport") -> None:
    terminal.print_skipped(report.skipped)
    terminal.echo(
        f"{into}: {images:,} images ({report.added:,} added, {report.updated:,} updated, "
        f"{report.unchanged:,} unchanged, {len(report.skipped):,} skipped)"
    )
    if report.moved:
        terminal.echo(f"{report.moved:,} of the unchanged images were moved: they keep their ids and have new paths")
    if report.not_images:
        terminal.echo(f"left out {report.not_images:,} files that are not images")


def _refuse_nothing(report: "AddReport") -> None:
    """A run that found images, and could use none of them, ends as an error."""
    if report.skipped and not report.added + report.updated + report.unchanged:
        raise InputError(
            f"none of the {len(report.skipped):,} files can be used",
            expected="images that can be decoded",
            actual=f"e.g. {report.skipped[0].path}: {report.skipped[0].reason}",
            fix="see the reasons above; `resight data check folder PATH` lists them all",
        )


def _check_engine(engine: str, cache: Path | None) -> None:
    """Fails before anything is created if the engine cannot encode or does not answer."""
    if engine == "local":
        return
    from resight import ray_cluster

    if cache is not None:
        raise InputError(
            "--cache and --engine exclude each other",
            expected="one of them: a cache serves one machine",
            actual=f"--cache {cache} --engine {engine}",
            fix="leave out one of them",
        )
    ray_cluster.connect(engine)


def relink(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    folders: Annotated[
        list[str],
        typer.Argument(metavar="[OLD] NEW", help="The folder that holds the files now; before it, the old one."),
    ],
    json: Json = False,
) -> None:
    """Give images of moved files their new paths; encodes nothing.

    With OLD and NEW, the paths below OLD are changed. With NEW alone, files with the same content are found there.
    """
    from resight.collection import open_collection

    if len(folders) > 2:
        raise InputError(
            "too many folders", expected="[OLD] NEW", actual=f"{len(folders)} folders", fix="leave some out"
        )
    opened = open_collection(collection, must_exist=True)
    report = opened.relink(folders[-1], old=folders[0] if len(folders) == 2 else None)
    if json:
        return terminal.print_json({"collection": collection, **terminal.plain(report)})
    terminal.echo(f"{collection}: {report.moved:,} images have new paths")
    for ids, what in ((report.missing, "have no file"), (report.changed, "have other content now: index them again")):
        if ids:
            terminal.echo(f"{len(ids):,} images {what}: {', '.join(ids[:5])}{' …' if len(ids) > 5 else ''}")
    return None


def delete(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    ids: Annotated[
        list[str], typer.Argument(help="Ids of images to remove; the files stay.", autocompletion=complete("ids"))
    ],
    json: Json = False,
) -> None:
    """Remove images from a collection, never the files themselves."""
    from resight.collection import open_collection

    refuse_swapped(collection, ids)
    opened = open_collection(collection, must_exist=True)
    known = opened.view().stamps
    missing = [id for id in dict.fromkeys(ids) if id not in known]
    removed = opened.delete(ids)
    if json:
        answer = {"collection": collection, "removed": removed, "missing": missing, "images": len(opened)}
        terminal.print_json(answer)
    else:
        terminal.echo(f"{collection}: {removed} of {len(ids)} removed, {len(opened):,} images left")
    if missing:
        raise refuse_ids(missing, known)


def export(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    to: Annotated[Literal["qdrant"], typer.Option(help="The target system.")] = "qdrant",
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"A Qdrant server; default: {QDRANT_URL}, unless --folder is given."),
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="A folder instead of a server.")] = None,
    edge: Annotated[bool, typer.Option("--edge", help="In that folder, write a Qdrant Edge shard.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the Qdrant collection.")] = None,
    shortlist: Annotated[
        int | None, typer.Option(min=1, help="How many answers of the global vector the tokens rerank.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a collection to Qdrant, or update an earlier export. Run it again to continue after a stop."""
    from resight.collection import open_collection
    from resight.collection.qdrant.connect import name_export, open_folder, open_server
    from resight.collection.qdrant.sync import export as upload

    server = url or (None if folder else os.environ.get(QDRANT_URL))
    if (server is None) == (folder is None) or (edge and folder is None):
        raise InputError(
            f"it is not clear where to put the {to} collection",
            expected="--url URL, or --folder FOLDER with or without --edge",
            actual="both" if url and folder else "--edge without --folder" if edge else "neither",
            fix=f"e.g. resight export {collection} --to {to} --folder photos.qdrant",
        )
    opened = open_collection(collection, must_exist=True)
    called = name or name_export(collection)
    target = open_folder(folder, called, edge=edge) if folder else open_server(server or "", called)
    try:
        with terminal.progress("exporting") as bar:
            report = upload(opened, target, shortlist, bar)
    finally:
        target.close()
    if json:
        return terminal.print_json(report)
    vectors = ", ".join(f"{part} ({size} dimensions)" for part, size in report.vectors.items())
    terminal.echo(f"{report.images:,} images in {report.where}: {report.sent:,} sent, {report.removed:,} removed")
    terminal.echo(f"vectors: {vectors}; global is {report.meaning}; tokens rerank the first {report.shortlist:,}")
    return None

"""`resight index` and `resight delete`.

`resight export`.
"""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from resight.apps import terminal
from resight.errors import InputError
from resight.files import remote

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe.")]

Cache = Annotated[
    Path | None,
    typer.Option("--cache", metavar="FOLDER", help="Keep what the networks see here, and look there first."),
]
CacheSize = Annotated[
    float, typer.Option("--cache-size", min=0, metavar="GB", help="What the cache may hold; the oldest goes first.")
]
Engine = Annotated[
    str,
    typer.Option("--engine", metavar="ENGINE", help="Where to encode: local, ray, ray://HOST:PORT or ray://auto."),
]
GIGABYTE = 10**9
USUAL_CACHE = 4.0


def index(
    paths: Annotated[list[Path], typer.Argument(help="Folders, image files or manifests (.csv, .jsonl); also s3://….")],
    into: Annotated[Path, typer.Option("--into", help="The collection; made when missing.")],
    encoder: Annotated[str | None, typer.Option(help="A preset by name, e.g. sift or sift_vlad.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A recipe file of your own.")] = None,
    settings: Set = None,
    cache: Cache = None,
    cache_size: CacheSize = USUAL_CACHE,
    engine: Engine = "local",
    json: Json = False,
) -> None:
    """Add images to a collection. Run it again to go on after a stop, or to take in what is new or has changed."""
    from resight import recipe as recipes
    from resight.collection import DEFAULT, open_collection
    from resight.collection.add import count_images
    from resight.collection.fit.fit_codebook import open_learning
    from resight.encode.feature_cache import FeatureCache

    if encoder and recipe:
        raise InputError("--encoder and --recipe exclude each other", fix="give one of them")
    _check_engine(engine, cache)
    chosen = recipes.load(recipe or encoder or DEFAULT, settings or ()) if encoder or recipe or settings else None
    for path in paths:
        if not (remote.is_remote(path) or path.exists()):
            raise InputError(
                f"there is nothing at {path}",
                expected="a folder, an image or a manifest",
                actual="no such file or folder",
                fix="check the path",
            )
    count_images(paths)  # before a collection is made for nothing
    features = FeatureCache(cache, int(cache_size * GIGABYTE)) if cache else None
    with terminal.progress("indexing") as report_progress:
        collection = (
            open_learning(into, chosen, paths, cache=features, progress=report_progress)
            if chosen
            else open_collection(into, cache=features)
        )
        report = collection.add(*paths, progress=report_progress, engine=engine)
    if json:
        return terminal.print_json({"collection": into, "images": len(collection), **terminal.plain(report)})
    terminal.print_skipped(report.skipped)
    print(
        f"{into}: {len(collection):,} images ({report.added:,} added, {report.updated:,} updated, "
        f"{report.unchanged:,} unchanged, {len(report.skipped):,} skipped)"
    )
    return None


def _check_engine(engine: str, cache: Path | None) -> None:
    """Before anything is made: that the engine can encode, and answers."""
    if engine == "local":
        return
    from resight import ray_cluster

    if cache is not None:
        raise InputError(
            "--cache and --engine exclude each other",
            expected="one of them: the cache is of one machine",
            actual=f"--cache {cache} --engine {engine}",
            fix="leave out one of them",
        )
    ray_cluster.connect(engine)


def delete(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    ids: Annotated[list[str], typer.Argument(help="Ids of images to remove; the files stay.")],
    json: Json = False,
) -> None:
    """Remove images from a collection (never the files themselves)."""
    from resight.collection import open_collection

    opened = open_collection(collection, must_exist=True)
    removed = opened.delete(ids)
    if json:
        return terminal.print_json({"collection": collection, "removed": removed, "images": len(opened)})
    print(f"{collection}: {removed} of {len(ids)} removed, {len(opened):,} images left")
    return None


URL = "RESIGHT_QDRANT_URL"


def export(
    collection: Annotated[Path, typer.Argument(help="The collection.")],
    to: Annotated[Literal["qdrant"], typer.Option(help="What it is exported to.")] = "qdrant",
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"A Qdrant server; {URL} where neither this nor --folder is given."),
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="A folder instead of a server.")] = None,
    edge: Annotated[bool, typer.Option("--edge", help="In that folder, a Qdrant Edge shard.")] = False,
    name: Annotated[str | None, typer.Option(help="What the Qdrant collection is called.")] = None,
    shortlist: Annotated[
        int | None, typer.Option(min=1, help="How many answers by one vector are put in order by tokens.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a collection into Qdrant, or bring what was written up to date. Run it again to go on after a stop."""
    from resight.collection import open_collection
    from resight.collection.qdrant.connect import name_export, open_folder, open_server
    from resight.collection.qdrant.sync import export as upload

    server = url or (None if folder else os.environ.get(URL))
    if (server is None) == (folder is None) or (edge and folder is None):
        raise InputError(
            f"where should the {to} collection lie?",
            expected="--url URL, or --folder FOLDER, which --edge may stand beside",
            actual="both" if url and folder else "--edge without --folder" if edge else "neither",
            fix=f"e.g. resight export {collection} --to {to} --folder photos.qdrant",
        )
    opened = open_collection(collection, must_exist=True)
    called = name or name_export(collection)
    place = open_folder(folder, called, edge=edge) if folder else open_server(server or "", called)
    try:
        with terminal.progress("exporting") as bar:
            report = upload(opened, place, shortlist, bar)
    finally:
        place.close()
    if json:
        return terminal.print_json(report)
    vectors = ", ".join(f"{part} ({size} dimensions)" for part, size in report.vectors.items())
    print(f"{report.images:,} images in {report.where}: {report.sent:,} sent, {report.removed:,} removed")
    print(f"vectors: {vectors}; global is {report.meaning}; the first {report.shortlist:,} are put in order by tokens")
    return None

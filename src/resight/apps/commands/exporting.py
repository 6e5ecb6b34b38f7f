"""`resight export`."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from resight.apps import terminal
from resight.apps.commands.adding import Json
from resight.errors import InputError

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
    from resight.collection.exporting.opening import name_export, open_folder, open_server
    from resight.collection.exporting.upload import export as upload

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

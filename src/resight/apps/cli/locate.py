"""`resight locate`: where photos were taken, by a collection whose images have positions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, Set, refuse_swapped

if TYPE_CHECKING:
    from resight.geodesy import PositionEstimate
    from resight.tasks.locate import Located

SUPPORTING = 3  # supporting images to name


def locate(
    collection: Annotated[Path, typer.Argument(help="A collection whose images have positions (EXIF or manifest).")],
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE…", help="Photos, or folders of photos.")],
    sequence: Annotated[
        bool,
        typer.Option(
            "--sequence", help="The photos are frames of one video, in the given order; within a folder, by name."
        ),
    ] = False,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Find where photos were taken.

    Gives latitude, longitude and a radius in metres, or "don't know".
    """
    import resight
    from resight.apps.cli.search import open_to_search

    refuse_swapped(collection, list(map(str, images)))
    opened = open_to_search(collection, settings)
    located = resight.locate(opened, images, sequence=sequence, progress=terminal.progress)
    if json:
        return terminal.print_json([_summarise(one, located.by_order) for one in located])
    if located.by_order:
        cells = [[Path(one.image).name, one.found, f"{one.score:.2f}"] for one in located]
        terminal.print_table(
            "the collection has no positions: matching images, by their order", ("photo", "image", "score"), cells
        )
        return None
    answers = [one.position for one in located]
    rows = [_format_row(Path(one.image), one.position) for one in located]
    columns = ("photo", "latitude", "longitude", "± m", "probability", "supported by")
    terminal.print_table(f"located by {collection} ({len(opened):,} images)", columns, rows, right=(1, 2, 3, 4))
    coverage = next((found.coverage for found in answers if found), None)
    if coverage is not None:
        terminal.echo(
            f"± m: radius that contains the true position in {coverage:.0%} of cases, if the collection shows the place"
        )
    return None


def _summarise(one: "Located", by_order: bool) -> dict[str, Any]:
    known = {"image": one.image, "position": one.position}
    return known | ({"found": one.found, "score": one.score} if by_order else {})


def _format_row(path: Path, found: "PositionEstimate | None") -> list[str]:
    if found is None:
        return [path.name, "don't know", "", "", "–", ""]
    names = ", ".join(found.support[:SUPPORTING]) + (" …" if len(found.support) > SUPPORTING else "")
    chance = f"{found.probability:.1%}"
    if not found.known:
        return [path.name, "don't know", "", "", chance, f"best guess {found.lat:.5f}, {found.lon:.5f}: {names}"]
    return [path.name, f"{found.lat:.6f}", f"{found.lon:.6f}", f"{found.metres:.0f}", chance, names]

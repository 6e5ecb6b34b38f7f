"""`resight locate`: where photos were taken, by a collection whose images have positions."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, Set
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.collection import Collection
    from resight.types import PositionEstimate

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
    from resight.apps.cli.search import open_to_search

    opened = open_to_search(collection, settings)
    frames = list(list_images(images))
    with terminal.progress("locating") as progress:
        if not len(opened.view().positions()) and sequence:
            return _print_images(_find_images(opened, frames, progress), json)
        _require_positions(opened, collection)
        answers = list(_find_positions(opened, frames, sequence, progress))
    if json:
        return terminal.print_json(
            [{"image": str(path), "position": found} for path, found in zip(frames, answers, strict=True)]
        )
    rows = [_format_row(path, found) for path, found in zip(frames, answers, strict=True)]
    columns = ("photo", "latitude", "longitude", "± m", "probability", "supported by")
    terminal.print_table(f"located by {collection} ({len(opened):,} images)", columns, rows, right=(1, 2, 3, 4))
    coverage = next((found.coverage for found in answers if found), None)
    if coverage is not None:
        terminal.echo(
            f"± m: radius that contains the true position in {coverage:.0%} of cases, if the collection shows the place"
        )
    return None


def list_images(paths: Sequence[Path]) -> Iterator[Path]:
    """Files in the given order; the images of a folder by name."""
    from resight.data.folder_walk import walk
    from resight.types import ImageRef

    for path in paths:
        if path.is_dir():
            yield from sorted(found.path for found in walk(path) if isinstance(found, ImageRef))
        else:
            yield path


def _find_positions(
    opened: "Collection", frames: Sequence[Path], sequence: bool, progress: terminal.Bar
) -> Iterator["PositionEstimate | None"]:
    from resight.collection.geo import follow_positions

    found = follow_positions(opened, frames) if sequence else (opened.ask(frame, 1).position for frame in frames)
    for done, position in enumerate(found, start=1):
        progress(done, len(frames))
        yield position


def _find_images(opened: "Collection", frames: Sequence[Path], progress: terminal.Bar) -> list[dict[str, Any]]:
    """The matching image of each frame: without positions, the order of a sequence still helps."""
    from resight.collection.geo import follow_order

    rows = []
    for done, (frame, ranking) in enumerate(zip(frames, follow_order(opened, frames), strict=True), start=1):
        progress(done, len(frames))
        rows.append({"image": str(frame), "position": None, "found": ranking.ids[0], "score": float(ranking.scores[0])})
    return rows


def _print_images(rows: Sequence[dict[str, Any]], json: bool) -> None:
    if json:
        return terminal.print_json(rows)
    cells = [[Path(row["image"]).name, row["found"], f"{row['score']:.2f}"] for row in rows]
    terminal.print_table(
        "the collection has no positions: matching images, by their order", ("photo", "image", "score"), cells
    )
    return None


def _format_row(path: Path, found: "PositionEstimate | None") -> list[str]:
    if found is None:
        return [path.name, "don't know", "", "", "–", ""]
    names = ", ".join(found.support[:SUPPORTING]) + (" …" if len(found.support) > SUPPORTING else "")
    chance = f"{found.probability:.1%}"
    if not found.known:
        return [path.name, "don't know", "", "", chance, f"best guess {found.lat:.5f}, {found.lon:.5f}: {names}"]
    return [path.name, f"{found.lat:.6f}", f"{found.lon:.6f}", f"{found.metres:.0f}", chance, names]


def _require_positions(opened: "Collection", path: Path) -> None:
    if not len(opened.view().positions()):
        raise InputError(
            f"no image of {path} has a position",
            expected="lat and lon, from EXIF or a manifest",
            actual=f"{len(opened):,} images without a position",
            fix="index a manifest with columns lat and lon; for frames of a video, --sequence finds images by order",
        )
    if opened.view().pipeline.calibration is None:
        raise InputError(
            f"the answers of {path} have no probabilities to weigh positions by",
            expected="a calibration that fits its stages",
            actual="no such calibration",
            fix="`resight calibrate` fits one, or leave out the rerankers that have none",
        )

"""`resight where`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.apps import terminal
from resight.apps.cli.index import Json, Set
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.collection import Collection
    from resight.types import PositionEstimate

SUPPORTING = 3  # images that are named


def where(
    collection: Annotated[Path, typer.Argument(help="A collection whose images have positions (EXIF or manifest).")],
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE…", help="Photos, or folders of photos.")],
    sequence: Annotated[
        bool, typer.Option("--sequence", help="They are frames of one video, in the order given; folders by name.")
    ] = False,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Tell where photos were taken: latitude, longitude and a radius in metres, or that it is not known."""
    from resight.apps.cli.search import open_to_search

    opened = open_to_search(collection, settings)
    frames = list(list_images(images))
    with terminal.progress("looking") as progress:
        if not len(opened.positions()) and sequence:
            return _print_images(_find_images(opened, frames, progress), json)
        _require_positions(opened, collection)
        answers = list(_find_positions(opened, frames, sequence, progress))
    if json:
        return terminal.print_json(
            [{"image": str(path), "position": found} for path, found in zip(frames, answers, strict=True)]
        )
    rows = [_say(path, found) for path, found in zip(frames, answers, strict=True)]
    columns = ("photo", "latitude", "longitude", "± m", "probability", "rests on")
    terminal.print_table(f"where, by {collection} ({len(opened):,} images)", columns, rows, right=(1, 2, 3, 4))
    coverage = next((found.coverage for found in answers if found), None)
    if coverage is not None:
        print(f"± m: holds the truth in {coverage:.0%} of cases if the place is in the collection")
    return None


def list_images(paths: Sequence[Path]) -> Iterator[Path]:
    """Files as they are given; a folder's images by name."""
    from resight.data.sets import folder
    from resight.types import ImageRef

    for path in paths:
        if path.is_dir():
            yield from sorted(found.path for found in folder.walk(path) if isinstance(found, ImageRef))
        else:
            yield path


def _find_positions(
    opened: "Collection", frames: Sequence[Path], sequence: bool, progress: terminal.Bar
) -> Iterator["PositionEstimate | None"]:
    from resight.collection.attributes import follow_positions

    found = follow_positions(opened, frames) if sequence else (opened.ask(frame, 1).position for frame in frames)
    for done, position in enumerate(found, start=1):
        progress(done, len(frames))
        yield position


def _find_images(opened: "Collection", frames: Sequence[Path], progress: terminal.Bar) -> list[dict[str, Any]]:
    """Without positions, a sequence can still be told by the image that it has come to."""
    from resight.collection.attributes import follow_order

    rows = []
    for done, (frame, ranking) in enumerate(zip(frames, follow_order(opened, frames), strict=True), start=1):
        progress(done, len(frames))
        rows.append({"image": str(frame), "position": None, "found": ranking.ids[0], "score": float(ranking.scores[0])})
    return rows


def _print_images(rows: Sequence[dict[str, Any]], json: bool) -> None:
    if json:
        return terminal.print_json(rows)
    cells = [[Path(row["image"]).name, row["found"], f"{row['score']:.2f}"] for row in rows]
    terminal.print_table("no positions in the collection: images, by their order", ("photo", "image", "score"), cells)
    return None


def _say(path: Path, found: "PositionEstimate | None") -> list[str]:
    if found is None:
        return [path.name, "don't know", "", "", "–", ""]
    names = ", ".join(found.support[:SUPPORTING]) + (" …" if len(found.support) > SUPPORTING else "")
    chance = f"{found.probability:.1%}"
    if not found.known:
        return [path.name, "don't know", "", "", chance, f"best guess {found.lat:.5f}, {found.lon:.5f}: {names}"]
    return [path.name, f"{found.lat:.6f}", f"{found.lon:.6f}", f"{found.metres:.0f}", chance, names]


def _require_positions(opened: "Collection", path: Path) -> None:
    if not len(opened.positions()):
        raise InputError(
            f"no image of {path} has a position",
            expected="lat and lon, from EXIF or from a manifest",
            actual=f"{len(opened):,} images without",
            fix="index a manifest with columns lat and lon; for frames of a video, --sequence finds images by order",
        )
    if opened.pipeline.calibration is None:
        raise InputError(
            f"the answers of {path} have no probability to weigh positions by",
            expected="a calibration for its stages",
            actual="none that fits",
            fix="`resight calibrate` fits one, or leave out the rerankers that have none",
        )

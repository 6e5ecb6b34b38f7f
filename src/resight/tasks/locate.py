"""`resight.locate(...)`: where photos were taken, by a collection whose images have positions.

`resight locate` calls it too. Without positions, frames of a sequence get the image that each shows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight.collection import Collection
from resight.collection.geo import follow_order, follow_positions
from resight.data.folder_walk import walk
from resight.errors import InputError
from resight.frames import make_frame
from resight.geodesy import PositionEstimate
from resight.progress import Bar, OpenBar, open_bar
from resight.tasks import open_existing
from resight.types import ImageRef

COLUMNS = ("lat", "lon", "metres", "probability", "known")


@dataclass(frozen=True)
class Located:
    """A photo and where it was taken.

    Attributes:
        image: The photo's file.
        position: The estimate; None if nothing is known.
        found: The image that shows the same, if the collection has no positions.
        score: Its score.
    """

    image: str
    position: PositionEstimate | None = None
    found: str = ""
    score: float = math.nan


@dataclass(frozen=True)
class Locations:
    """Where photos were taken; `resight.locate` returns it. It can be iterated over and indexed.

    Attributes:
        located: One per photo, in the given order.
        by_order: Whether the collection has no positions, and frames were matched by their order.
    """

    located: tuple[Located, ...]
    by_order: bool = False

    def __len__(self) -> int:
        return len(self.located)

    def __iter__(self) -> Iterator[Located]:
        return iter(self.located)

    def __getitem__(self, number: int) -> Located:
        return self.located[number]

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Returns:
            One row per photo: image, lat, lon, metres, probability and known, or image, found and score.
        """
        images: dict[str, list[Any]] = {"image": [one.image for one in self]}
        if self.by_order:
            return make_frame(images | {"found": [one.found for one in self], "score": [one.score for one in self]})
        return make_frame(images | {name: [getattr(one.position, name, None) for one in self] for name in COLUMNS})


def locate(
    collection: Collection | str | Path,
    images: str | Path | Sequence[str | Path],
    *,
    sequence: bool = False,
    progress: bool | OpenBar = True,
) -> Locations:
    """Find where photos were taken: latitude, longitude and a radius in metres, or "don't know".

    Args:
        collection: A collection whose images have positions (EXIF or manifest), or its path.
        images: Photos, or folders of photos; one, or several.
        sequence: The photos are frames of one video, in the given order; within a folder, by name.
        progress: Show a bar in a notebook; False: none.

    Returns:
        One position per photo. Without positions in the collection, the frames of a sequence get the image that each
        shows.

    Raises:
        InputError: No image of the collection has a position, or its answers have no probabilities.

    Examples:
        >>> from pathlib import Path
        >>> import resight
        >>> photos = resight.open("places.resight", "tokens")
        >>> tower = resight.ImageRef("tower", Path("photos/eiffel-2.png"), attributes={"lat": 48.858, "lon": 2.295})
        >>> photos.add([tower]).added
        1
        >>> (found,) = resight.locate(photos, "query.jpg")
        >>> round(found.position.lat, 3), found.position.support
        (48.858, ('tower',))
    """
    opened = open_existing(collection)
    frames = list(list_images([images] if isinstance(images, (str, Path)) else images))
    with open_bar(progress, "locating") as bar:
        if not len(opened.view().positions()) and sequence:
            return Locations(tuple(_find_images(opened, frames, bar)), by_order=True)
        _require_positions(opened)
        return Locations(tuple(_find_positions(opened, frames, sequence, bar)))


def list_images(paths: Sequence[str | Path]) -> Iterator[Path]:
    """Files in the given order; the images of a folder by name."""
    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(found.path for found in walk(path) if isinstance(found, ImageRef))
        else:
            yield path


def _find_positions(opened: Collection, frames: Sequence[Path], sequence: bool, bar: Bar) -> Iterator[Located]:
    found = follow_positions(opened, frames) if sequence else (opened.ask(frame, 1).position for frame in frames)
    for done, (frame, position) in enumerate(zip(frames, found, strict=True), start=1):
        bar(done, len(frames))
        yield Located(str(frame), position)


def _find_images(opened: Collection, frames: Sequence[Path], bar: Bar) -> Iterator[Located]:
    """The matching image of each frame: without positions, the order of a sequence still helps."""
    for done, (frame, ranking) in enumerate(zip(frames, follow_order(opened, frames), strict=True), start=1):
        bar(done, len(frames))
        yield Located(str(frame), None, ranking.ids[0], float(ranking.scores[0]))


def _require_positions(opened: Collection) -> None:
    if not len(opened.view().positions()):
        raise InputError(
            f"no image of {opened.path} has a position",
            expected="lat and lon, from EXIF or a manifest",
            actual=f"{len(opened):,} images without a position",
            fix="index a manifest with columns lat and lon; for frames of a video, --sequence finds images by order",
        )
    if opened.view().pipeline.calibration is None:
        raise InputError(
            f"the answers of {opened.path} have no probabilities to weigh positions by",
            expected="a calibration that fits its stages",
            actual="no such calibration",
            fix="`resight calibrate` fits one, or leave out the rerankers that have none",
        )

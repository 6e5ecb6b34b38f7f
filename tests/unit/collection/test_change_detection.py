"""What is there already of the images that are being added."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from resight.collection.change_detection import KnownImage, KnownImages
from resight.store import ImageRecord
from resight.types import Attribute, Box, ImageRef


def make_record(name: str, path: str = "old", **attributes: Attribute) -> ImageRecord:
    return ImageRecord(name, Path(path), "sha", 1, 1, (8, 8), attributes)


@dataclass
class Shelf:
    """A store of many images; notes which were read."""

    stamps: dict[str, int] = field(default_factory=lambda: {f"{number:05}": number for number in range(20_000)})
    read: list[str] = field(default_factory=list)

    def metadata(self, ids: Sequence[str]) -> Iterator[ImageRecord]:
        self.read.extend(ids)
        return (make_record(name) for name in ids)


def test_only_what_is_asked_for_is_read():
    shelf = Shelf()
    known = KnownImages(shelf)  # type: ignore[arg-type]
    known.look_up(["00007", "new", "00007", "19999"])
    assert shelf.read == ["00007", "19999"]
    assert [known.get("00007"), known.get("new")] == [KnownImage(Path("old"), 1, 1, {}), None]


def test_what_was_written_is_known_without_reading_it_and_counts_as_there_from_then_on():
    shelf = Shelf()
    known = KnownImages(shelf)  # type: ignore[arg-type]
    assert [known.add_written(make_record("00007", "new")), known.add_written(make_record("new"))] == [True, False]
    assert known.add_written(make_record("new")) is True
    known.look_up(["00007"])
    written = known.get("00007")
    assert written is not None and written.path == Path("new")


@pytest.mark.parametrize(
    ("stored", "told", "box", "same"),
    [
        ({"label": "a"}, {"label": "a"}, None, True),
        ({"label": "a"}, {"label": "b"}, None, False),
        ({"label": "a"}, {}, None, False),
        ({"lat": 1.0, "label": "a"}, {"label": "a"}, None, True),  # from EXIF
        ({"lat": 1.0}, {"lat": 2.0}, None, False),
        ({"box": "0,0,5,5"}, {}, (0, 0, 5, 5), True),
        ({"box": "0,0,5,5"}, {}, (0, 0, 5, 6), False),
        ({}, {}, (0, 0, 5, 5), False),
    ],
)
def test_an_image_is_unchanged_where_it_is_described_as_before(
    stored: dict[str, Attribute], told: dict[str, Attribute], box: Box | None, same: bool
):
    known = KnownImage.of(make_record("a", **stored))
    assert known.has_attributes_of(ImageRef("a", Path("a"), box, told)) is same

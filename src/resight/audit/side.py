"""One collection as an audit sees it: the images that are not exact copies of another, with their thumbnails."""

from dataclasses import dataclass

from resight.audit.branches import Rows
from resight.audit.thumbnails import Thumbnails
from resight.store import ImageRecord
from resight.types import Box


@dataclass(frozen=True)
class Side:
    source: Rows
    ids: tuple[str, ...]
    outlines: tuple[Box, ...]  # what the image shows of its picture: all, or a box
    thumbnails: Thumbnails

    def __len__(self) -> int:
        return len(self.ids)


def outline_of(record: ImageRecord) -> Box:
    return record.ref.box or (0.0, 0.0, float(record.size[0]), float(record.size[1]))

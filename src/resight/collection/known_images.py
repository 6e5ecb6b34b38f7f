"""What a collection knows of the images that are being added: does one need to be encoded, or is it there already?

Only what is asked for is read, some images at a time, so that three new images cost as little in a large collection as
in a small one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from resight.store import ImageRecord, Reader
from resight.types import Attribute, ImageRef

EXIF = ("lat", "lon", "heading")


@dataclass(frozen=True)
class KnownImage:
    """What tells whether a stored image is still what a source says."""

    path: Path
    bytes: int
    modified_ns: int
    attributes: Mapping[str, Attribute]

    @classmethod
    def of(cls, record: ImageRecord) -> "KnownImage":
        return cls(record.path, record.bytes, record.modified_ns, record.attributes)

    def says(self, ref: ImageRef) -> bool:
        """Are the attributes those of the source? A position may have come from the image's own EXIF."""
        told = describe(ref)
        exif = set(EXIF) - ref.unsaid - set(told)
        return told == {name: value for name, value in self.attributes.items() if name not in exif}


class KnownImages:
    def __init__(self, reader: Reader) -> None:
        """`reader` shows the collection as it was before anything was added."""
        self._reader = reader
        self._looked_up: dict[str, KnownImage] = {}
        self._written: dict[str, KnownImage] = {}

    def look_up(self, names: Iterable[str]) -> None:
        """Read these, to be asked for next; the ones before are forgotten."""
        stored = [name for name in dict.fromkeys(names) if name in self._reader.stamps]
        self._looked_up = {record.id: KnownImage.of(record) for record in self._reader.metadata(stored)}

    def get(self, name: str) -> KnownImage | None:
        """Of an image that was looked up, or written since."""
        return self._written.get(name) or self._looked_up.get(name)

    def holds(self, name: str) -> bool:
        """Whether it is stored, looked up or not."""
        return name in self._written or name in self._reader.stamps

    def note(self, record: ImageRecord) -> bool:
        """That it was written; true when it was there before."""
        before = self.holds(record.id)
        self._written[record.id] = KnownImage.of(record)
        return before


def describe(ref: ImageRef) -> dict[str, Attribute]:
    """The attributes that are stored: those of the source, and the box when it names one."""
    box = {} if ref.box is None else {"box": ",".join(f"{side:g}" for side in ref.box)}
    return {**ref.attributes, **box}

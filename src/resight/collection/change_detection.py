"""Which images of a source are new or have changed, and the id that each gets.

In: the images of a source, and the collection before anything was added. Out: those to encode, under the ids that they
get, and what cannot be an image. An image is unchanged if its file has the stored path, size and time of change, and
its source the stored attributes. The detector reads a few images at a time, and only those that the source names: three
new images cost as little in a large collection as in a small one.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight.encode.extract import gather
from resight.errors import CollectionError
from resight.files import remote
from resight.store import ImageRecord, Reader
from resight.types import Attribute, ImageRef, Skipped

EXIF = ("lat", "lon", "heading")  # attributes that an image's own EXIF may have given
LOOKED_UP = 512  # images at a time


class ChangeDetector:
    def __init__(
        self,
        known: "KnownImages",
        count_unchanged: Callable[[], None],
        before_naming: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """`count_unchanged` is called for every unchanged image; `before_naming`, with the ids that an image may get,
        before the detector decides about it."""
        self._known = known
        self._count_unchanged = count_unchanged
        self._before_naming = before_naming

    def detect(self, refs: Iterable[ImageRef | Skipped], *, ids_are_given: bool) -> Iterator[ImageRef | Skipped]:
        """What is new or changed, and what cannot be an image; `ids_are_given` by the caller."""
        for batch in gather(refs, LOOKED_UP):
            self._known.look_up(name for ref in batch if isinstance(ref, ImageRef) for name in list_names(ref))
            for ref in batch:
                if isinstance(ref, Skipped):
                    yield ref
                    continue
                self._before_naming(list_names(ref))
                if self._is_unchanged(named := self._name(ref, ids_are_given)):
                    self._count_unchanged()
                else:
                    yield named

    def _name(self, ref: ImageRef, is_given: bool) -> ImageRef:
        """The id that an image gets: a file of the same relative name in another folder does not replace the first.

        An id that the caller or a manifest has given stays: the file has moved, and the image is the same.
        """
        ref = _make_absolute(ref)
        taken, longer = self._known.get(ref.id), list_names(ref)[-1]
        if is_given or taken is None or taken.path == ref.path or longer == ref.id:
            return ref
        taken = self._known.get(longer)
        if taken is not None and taken.path != ref.path:
            raise CollectionError(
                f"two files would both be called {longer!r}",
                expected="ids that are unique within the collection",
                actual=f"{taken.path} and {ref.path}",
                fix="give ids of your own in a manifest, or use one collection per folder",
            )
        return replace(ref, id=longer)

    def _is_unchanged(self, ref: ImageRef) -> bool:
        known = self._known.get(ref.id)
        if known is None or known.path != ref.path or not known.has_attributes_of(ref):
            return False
        return (ref.listed or _read_status(ref.path)) == (known.bytes, known.modified_ns)


class KnownImages:
    """The images that the collection holds, and those that were written since."""

    def __init__(self, reader: Reader) -> None:
        """`reader` shows the collection as it was before anything was added."""
        self._reader = reader
        self._looked_up: dict[str, KnownImage] = {}
        self._written: dict[str, KnownImage] = {}

    def look_up(self, names: Iterable[str]) -> None:
        """Read these for `get`; the ones read before are forgotten."""
        stored = [name for name in dict.fromkeys(names) if name in self._reader.stamps]
        self._looked_up = {record.id: KnownImage.of(record) for record in self._reader.metadata(stored)}

    def get(self, name: str) -> "KnownImage | None":
        """An image that was looked up, or written since."""
        return self._written.get(name) or self._looked_up.get(name)

    def holds(self, name: str) -> bool:
        """Whether it is stored, looked up or not."""
        return name in self._written or name in self._reader.stamps

    def add_written(self, record: ImageRecord) -> bool:
        """Whether the image that was just written replaces a stored one."""
        replaces = self.holds(record.id)
        self._written[record.id] = KnownImage.of(record)
        return replaces


@dataclass(frozen=True)
class KnownImage:
    """What shows whether a stored image has changed."""

    path: Path
    bytes: int
    modified_ns: int
    attributes: Mapping[str, Attribute]

    @classmethod
    def of(cls, record: ImageRecord) -> "KnownImage":
        return cls(record.path, record.bytes, record.modified_ns, record.attributes)

    def has_attributes_of(self, ref: ImageRef) -> bool:
        """Whether the stored attributes are those of the source; a position may have come from EXIF."""
        attributes = list_attributes(ref)
        exif = set(EXIF) - ref.unsaid - set(attributes)
        return attributes == {name: value for name, value in self.attributes.items() if name not in exif}


def list_attributes(ref: ImageRef) -> dict[str, Attribute]:
    """The attributes to store: those of the source, and its box if it has one."""
    box = {} if ref.box is None else {"box": ",".join(f"{side:g}" for side in ref.box)}
    return {**ref.attributes, **box}


def _read_status(path: Path) -> tuple[int, int] | None:
    """Bytes and time of change; None without a file, or without a time that would show a change."""
    try:
        if remote.is_remote(path):
            status = remote.stat(path)
            return status if status is not None and status.modified_ns else None
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def list_names(ref: ImageRef) -> list[str]:
    """The id that an image has, and the longer one, with its folder, that it gets if the first is taken."""
    path = _make_absolute(ref).path.as_posix()
    if not path.endswith("/" + ref.id):
        return [ref.id]
    return [ref.id, f"{Path(path.removesuffix(ref.id).rstrip('/')).name}/{ref.id}"]


def _make_absolute(ref: ImageRef) -> ImageRef:
    if remote.is_remote(ref.path):
        return ref
    return replace(ref, path=Path(os.path.abspath(ref.path)))  # noqa: PTH100 - without "..", but links as they are

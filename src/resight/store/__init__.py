"""Where descriptors and metadata are kept, one folder a collection.

In go `Record`s, one an image with the descriptors of every branch; out come `ImageRecord`s and `Descriptors`.

A store shows the collection as it was when it was opened, last refreshed or last written to by this store; a snapshot
and an iterator keep the state they started with. A snapshot may be read by many threads at once, a store by one.
Whoever calls a `Writer` method holds the writer lock (resight.files.lock).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

from resight import plugins
from resight.types import Attribute, Descriptors, ImageRef

Field = Literal["boxes", "weights", "points", "words", "seeds"]
FIELDS: tuple[Field, ...] = ("boxes", "weights", "points", "words", "seeds")
KEEP = timedelta(hours=1)


@dataclass(frozen=True)
class Layout:
    """What the vectors of one branch look like. With `space` given, rows of another space are refused."""

    dtype: str  # a numpy name: uint8, float16, float32, …
    dim: int
    space: str = ""


@dataclass(frozen=True)
class ImageRecord:
    """What is kept about an image beside its descriptors."""

    id: str
    path: Path  # absolute
    sha256: str
    bytes: int
    modified_ns: int
    size: tuple[int, int]  # width, height
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def ref(self) -> ImageRef:
        """The image as it was given: a part of a picture has its box among the attributes."""
        box = self.attributes.get("box")
        sides = tuple(float(side) for side in box.split(",")) if isinstance(box, str) else ()
        return ImageRef(self.id, self.path, sides if len(sides) == 4 else None, self.attributes)


@dataclass(frozen=True)
class Record:
    """One image as it is written: `descriptors[b]` holds the rows of branch b, of this image alone."""

    image: ImageRecord
    descriptors: tuple[Descriptors, ...]


@dataclass(frozen=True)
class Fragment:
    """Images that were written apart: on the disk, but no part of the collection before they are committed."""

    ids: tuple[str, ...]
    files: tuple[str, ...]  # what the store needs to find them, as JSON


class Reader(Protocol):
    """One state of a collection."""

    @property
    def layout(self) -> tuple[Layout, ...]:
        """One a branch."""

    @property
    def version(self) -> int:
        """A number that changes with every change of the collection."""

    @property
    def stamps(self) -> Mapping[str, int]:
        """id → number, of every image; as long as both stay, so does all that is stored of the image.

        A number may also change where the content did not: compaction moves images.
        """

    def __len__(self) -> int:
        """The number of images."""

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        """All images, or those asked for in the order asked; an id that is not there is a CollectionError."""

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        """Rows of one branch, `batch` images at a time; images and their order as in `metadata`.

        Of the optional parts only `fields` are read; the others, and those that a store made before there was such a
        part cannot hold, are None.
        """


class Writer(Protocol):
    def write(self, records: Sequence[Record]) -> None:
        """Store all of the records or none; an id that is there already is replaced."""

    def remove(self, ids: Sequence[str]) -> int:
        """Remove images; gives how many were there."""

    @property
    def is_scattered(self) -> bool:
        """Whether so many small files have come together, one a write, that it is time to compact."""

    def compact(self, keep: timedelta = KEEP) -> None:
        """Merge small files, and free the space of states that were replaced more than `keep` ago.

        A process that still reads such a state gets a CollectionError; nothing is lost if this is killed.
        """


@runtime_checkable
class SharedWriter(Protocol):
    """What a store has besides where many processes may write at the same time, without the lock: apart."""

    def write_apart(self, records: Sequence[Record]) -> Fragment:
        """Write the records where nobody sees them yet."""

    def commit(self, fragments: Sequence[Fragment]) -> None:
        """Make all of them part of the collection, or none, without copying them; no id may be there already."""

    def sweep(self, keep: timedelta = KEEP) -> None:
        """Remove what was written apart and never committed; as for `compact`, states older than `keep` go too."""


class Store(Reader, Writer, Protocol):
    def refresh(self) -> bool:
        """Go to the newest state of the collection; true when another store had changed it."""

    def snapshot(self) -> Reader:
        """The state that this store shows now, for good."""


def build(name: str, *, folder: Path, layout: Sequence[Layout] = (), **settings: Any) -> Store:
    """The store in `folder`. With a `layout` it is created when missing; without, it has to be there."""
    settings = {"folder": folder, "layout": tuple(layout), **settings}
    return cast(Store, plugins.load(__name__, name, settings))

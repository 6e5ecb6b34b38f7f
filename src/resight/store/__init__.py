"""Storage of descriptors and metadata, one folder per collection.

In go `Record`s, one per image with the descriptors of every branch; out come `ImageRecord`s and `Descriptors`.

A store shows the collection as it was when the store was opened, last refreshed or last written to; a snapshot and an
iterator keep the state they started with. Many threads may read one snapshot at once; a store serves one thread.
Callers of a `Writer` method hold the writer lock (resight.files.lock).
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

from resight import plugins
from resight.types import Attribute, Descriptors, ImageRef

Field = Literal["boxes", "weights", "points", "words", "seeds"]
FIELDS: tuple[Field, ...] = ("boxes", "weights", "points", "words", "seeds")
KEEP = timedelta(hours=1)


@dataclass(frozen=True)
class Layout:
    """Type and width of the vectors of one branch. With `space` given, the store refuses rows of another space."""

    dtype: str  # a numpy name: uint8, float16, float32, …
    dim: int
    space: str = ""


@dataclass(frozen=True)
class ImageRecord:
    """What a collection stores about an image, besides its descriptors.

    Attributes:
        id: Its name in the collection.
        path: Its file, absolute.
        sha256: Of the file's bytes.
        bytes: Size of the file.
        modified_ns: Time of change in nanoseconds.
        size: Width and height of the upright original.
        attributes: Label, position and other values.
    """

    id: str
    path: Path
    sha256: str
    bytes: int
    modified_ns: int
    size: tuple[int, int]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def ref(self) -> ImageRef:
        """The image as it was given; the attribute `box` marks a part of a picture."""
        box = self.attributes.get("box")
        sides = tuple(float(side) for side in box.split(",")) if isinstance(box, str) else ()
        return ImageRef(self.id, self.path, sides if len(sides) == 4 else None, self.attributes)


@dataclass(frozen=True)
class Record:
    """An image to write; `descriptors[b]` holds its rows of branch b, and of no other image."""

    image: ImageRecord
    descriptors: tuple[Descriptors, ...]


@dataclass(frozen=True)
class Fragment:
    """Images in files of their own, which join the collection when they are committed."""

    ids: tuple[str, ...]
    files: tuple[str, ...]  # one JSON description per file, for the store


class Reader(Protocol):
    """One state of a collection."""

    @property
    def layout(self) -> tuple[Layout, ...]:
        """One per branch."""

    @property
    def version(self) -> int:
        """A number that changes with every change of the collection."""

    @property
    def commit_id(self) -> str:
        """A text of its own for every commit of every collection: equal texts, equal contents.

        Version numbers may come again, if the store goes back to an earlier state and is written to.
        """

    def find_commit(self, version: int) -> str | None:
        """The commit that made an earlier version of this state's history; None if it is not known, or not earlier."""

    @property
    def stamps(self) -> Mapping[str, int]:
        """A number per image id. While the number stays the same, so does everything stored of the image.

        The number may change although the content does not: compaction moves images.
        """

    def __len__(self) -> int:
        """The number of images."""

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        """All images, or those of `ids` in that order; an unknown id is a CollectionError."""

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        """Rows of one branch, `batch` images at a time; images and their order as in `metadata`.

        The store reads only `fields` of the optional parts. The others are None, as are parts that a collection of an
        earlier version cannot hold.
        """


class Writer(Protocol):
    def write(self, records: Sequence[Record]) -> None:
        """Store all of the records or none; a record replaces the one with the same id.

        Here and below: once it has returned, not even a power cut undoes it.
        """

    def remove(self, ids: Sequence[str]) -> int:
        """Remove images; returns how many of them were there."""

    @property
    def is_scattered(self) -> bool:
        """Whether writes have left so many small files that it is time to compact."""

    def compact(self, keep: timedelta = KEEP) -> None:
        """Merge small files, and free the space of states that were replaced more than `keep` ago.

        A process that still reads such a state gets a CollectionError. Killing a compaction loses nothing.
        """


@runtime_checkable
class SharedWriter(Protocol):
    """A store to which many processes may write at the same time without the lock, each into files of its own."""

    def write_apart(self, records: Sequence[Record]) -> Fragment:
        """Write the records to files that no reader sees yet."""

    def commit(self, fragments: Sequence[Fragment]) -> None:
        """Make all of them part of the collection, or none, without copying them; no id may be there already."""

    def sweep(self, keep: timedelta = KEEP) -> None:
        """Remove files that were never committed and, like `compact`, states older than `keep`."""


class Store(Reader, Writer, Protocol):
    def refresh(self) -> bool:
        """Move to the newest state of the collection; true if another store has changed it."""

    def snapshot(self) -> Reader:
        """The state that this store shows now; it never changes."""


def build(name: str, *, folder: Path, layout: Sequence[Layout] = (), **settings: Any) -> Store:
    """The store in `folder`. With a `layout`, a missing one is created; without, it is a CollectionError."""
    settings = {"folder": folder, "layout": tuple(layout), **settings}
    return cast(Store, plugins.load(__name__, name, settings))


def skip_pandas() -> None:
    """Open stores without pandas in this process, which must not give pandas objects to pyarrow.

    pyarrow tries to import pandas, once, when it makes its first array, and Lance makes one when it is imported. That
    costs a third of a short command, and no store needs it.
    """
    if "pandas" in sys.modules:
        return
    hidden = _HiddenPandas()
    sys.meta_path.insert(0, hidden)
    try:
        import pyarrow

        pyarrow.array([True])
    finally:
        sys.meta_path.remove(hidden)


class _HiddenPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=fullname)

"""What a client asked for, and how far it is.

An `Arrival` is a file that was sent; a `Promise` is one image that the service took on; `Item` is the same in the
journal; `Job` is the sum of its items, in the words of the HTTP API.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from resight.types import Attribute, Box, ImageRef, Skipped

Kind = Literal["add", "update"]
State = Literal["waiting", "running", "done", "failed", "cancelled"]
Outcome = Literal["added", "updated", "unchanged", "skipped", "cancelled"]


@dataclass(frozen=True)
class Arrival:
    """A file that a client sent, and that can be decoded."""

    name: str  # what the client calls it
    sha256: str
    read: Callable[[], bytes]
    bytes: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True)
class Promise:
    """One image to add. Without a `path`, its file is the upload with that hash."""

    id: str
    name: str  # what the client calls the file
    sha256: str
    bytes: int  # of an upload that waits on disk; 0 where the file was there before
    attributes: Mapping[str, Attribute | None] = field(default_factory=dict)  # None: there is to be no such attribute
    box: Box | None = None
    path: Path | None = None


@dataclass(frozen=True)
class Item:
    """One image of a job that is not dealt with yet."""

    job: str
    number: int
    attempts: int  # how often somebody began to add it
    promise: Promise

    def ref(self, upload: Path) -> ImageRef:
        """As the collection takes it; `upload` is where its uploaded file lies."""
        promise = self.promise
        said = {name: value for name, value in promise.attributes.items() if value is not None}
        unsaid = frozenset(promise.attributes) - frozenset(said)
        return ImageRef(promise.id, promise.path or upload, promise.box, said, unsaid=unsaid)


@dataclass(frozen=True)
class Settled:
    """What became of an item."""

    item: Item
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True)
class Job:
    id: str
    kind: Kind
    collection: str
    state: State
    done: int
    total: int
    added: int
    updated: int
    skipped: tuple[Skipped, ...]
    error: str | None
    created: float  # seconds since 1970
    finished: float | None

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    def describe(self) -> dict[str, Any]:
        """As the HTTP API gives it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "collection": self.collection,
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "added": self.added,
            "updated": self.updated,
            "skipped": [{"path": one.path, "reason": one.reason} for one in self.skipped],
            "error": self.error,
            "created": self.created,
            "finished": self.finished,
        }

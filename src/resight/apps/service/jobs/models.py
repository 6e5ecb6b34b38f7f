"""Values of the job queue.

A `ReceivedFile` is a file that a client sent; a `PendingImage` is one image that the service has accepted; an `Item` is
the same with its position in a job; a `Job` sums up its items in the words of the HTTP API. An accepted image ends
stored, discarded by its client (`skipped`, `cancelled`), or `quarantined`: its upload is kept until somebody decides.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from resight.types import Attribute, Box, ImageRef, Skipped

Kind = Literal["add", "update"]
State = Literal["waiting", "running", "done", "failed", "cancelled"]
Outcome = Literal["added", "updated", "unchanged", "skipped", "cancelled", "quarantined"]


class CollectionState(Protocol):
    """What the job database needs to know of a View."""

    @property
    def version(self) -> int: ...

    @property
    def commit_id(self) -> str: ...

    def find_commit(self, version: int) -> str | None: ...


@dataclass(frozen=True)
class ReceivedFile:
    """A file that a client sent, and that the sandbox could decode."""

    name: str  # the client's
    sha256: str
    read: Callable[[], bytes]
    bytes: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True)
class PendingImage:
    """One image to add. Without a `path`, its file is the upload with that hash."""

    id: str
    name: str  # the client's name of the file
    sha256: str
    bytes: int  # of an upload that waits on disk; 0 where the file existed before
    attributes: Mapping[str, Attribute | None] = field(default_factory=dict)  # None removes an attribute
    box: Box | None = None
    path: Path | None = None


@dataclass(frozen=True)
class Item:
    """One image of a job that is not finished yet."""

    job: str
    number: int
    attempts: int  # how often a process started to add it
    image: PendingImage

    def ref(self, upload: Path) -> ImageRef:
        """The argument of `Collection.add`; `upload` is the path of the uploaded file."""
        image = self.image
        given = {name: value for name, value in image.attributes.items() if value is not None}
        removed = frozenset(image.attributes) - frozenset(given)
        return ImageRef(image.id, image.path or upload, image.box, given, unsaid=removed)


@dataclass(frozen=True)
class ItemResult:
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
    quarantined: int
    skipped: tuple[Skipped, ...]  # with those in quarantine
    error: str | None
    created: float  # seconds since 1970
    finished: float | None

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    def serialize(self) -> dict[str, Any]:
        """The job as the HTTP API returns it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "collection": self.collection,
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "added": self.added,
            "updated": self.updated,
            "quarantined": self.quarantined,
            "skipped": [{"path": one.path, "reason": one.reason} for one in self.skipped],
            "error": self.error,
            "created": self.created,
            "finished": self.finished,
        }


@dataclass(frozen=True)
class QuarantinedUpload:
    """An accepted upload that could not be added; its file is kept."""

    key: str
    job: str
    collection: str
    id: str
    name: str
    bytes: int
    reason: str
    since: float  # seconds since 1970

    def serialize(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "job": self.job,
            "collection": self.collection,
            "id": self.id,
            "name": self.name,
            "bytes": self.bytes,
            "reason": self.reason,
            "since": self.since,
        }

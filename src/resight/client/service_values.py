"""What only a service has, as values: its health, its collections, the jobs that add images, uploads in quarantine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from resight.types import Skipped


@dataclass(frozen=True)
class Health:
    """How a service is.

    Attributes:
        status: "ok", "degraded" (it works in part; see `faults`) or "stopping".
        ready: Whether at least one collection can be searched.
        version: The version of resight that runs there.
        faults: What is wrong, by the name of the collection.
        images: Number of images in all collections; None without access.
        collections: Their names.
        quarantined: Number of uploads in quarantine; None without access.

    Examples:
        >>> import resight
        >>> with resight.Client("http://127.0.0.1:8080") as photos:
        ...     health = photos.health()
        >>> health.status, health.ready, health.collections
        ('ok', True, ('photos',))
    """

    status: Literal["ok", "degraded", "stopping"]
    ready: bool
    version: str
    faults: Mapping[str, tuple[str, ...]]
    images: int | None
    collections: tuple[str, ...]
    quarantined: int | None


@dataclass(frozen=True)
class CollectionInfo:
    """A collection that a service serves.

    Attributes:
        name: Its name, for the argument `collection` of a client.
        images: Number of images.
        recipe: Name of its recipe.
        encoders: Names of its encoders.
        positions: Whether images have a latitude and a longitude.
        craters: Whether images show craters of a known position.
        reads: Suffixes of the image files that it decodes.
        writable: Whether this client may change it.
    """

    name: str
    images: int
    recipe: str
    encoders: tuple[str, ...]
    positions: bool
    craters: bool
    reads: tuple[str, ...]
    writable: bool


@dataclass(frozen=True)
class Job:
    """Images that the service has accepted and adds in the background. They survive a crash of the service.

    Attributes:
        id: For `job`, `follow`, `wait` and `cancel`.
        kind: "add" or "update".
        collection: The name of the collection.
        state: "waiting", "running", "done", "failed" or "cancelled".
        done: Number of images that are done, with those skipped.
        total: Number of images in all.
        added: Number of new images.
        updated: Number of changed images.
        quarantined: Number of images that could not be added, and are kept.
        skipped: Files that were not added, each with the reason; also those in quarantine.
        error: Why the job waits or has failed.
        created: Seconds since 1970.
        finished: Seconds since 1970; None: not yet.
    """

    id: str
    kind: Literal["add", "update"]
    collection: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    done: int
    total: int
    added: int
    updated: int
    quarantined: int
    skipped: tuple[Skipped, ...]
    error: str | None
    created: float
    finished: float | None

    @property
    def is_over(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state in ("done", "failed", "cancelled")


@dataclass(frozen=True)
class QuarantinedUpload:
    """An accepted upload that could not be added; the service keeps its file.

    Attributes:
        key: For `retry` and `discard`.
        job: The job that it belonged to.
        collection: The name of the collection.
        id: The image's id.
        name: The file's name.
        bytes: Size of the file.
        reason: Why it could not be added.
        since: When it was accepted, in seconds since 1970.
    """

    key: str
    job: str
    collection: str
    id: str
    name: str
    bytes: int
    reason: str
    since: float

"""The writing side of one collection: received files and ids in, accepted jobs and removals out.

Everything that it returns is durable, so that a route may report it to the client.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from resight.apps.service.error_responses import ApiError, not_found
from resight.apps.service.jobs.database import JobDatabase
from resight.apps.service.jobs.job_queue import JobQueue
from resight.apps.service.jobs.models import Job, Kind, PendingImage, ReceivedFile
from resight.apps.service.jobs.store import FindPending, JobStore, Prepare, QueueLimits
from resight.apps.service.jobs.upload_ledger import Quarantine
from resight.apps.service.jobs.uploads import UploadStore, choose_ids
from resight.apps.service.jobs.write_lock import hold_write_lock, retry_while_busy
from resight.collection import Collection
from resight.collection.change_detection import EXIF
from resight.errors import ResightError, StorageError
from resight.types import Attribute, Skipped

log = logging.getLogger("resight.service.jobs")
REPEATED = "the same file was sent twice"
Prepared = tuple[Sequence[PendingImage], Sequence[Skipped]]


@dataclass(frozen=True)
class Removal:
    removed: int
    missing: tuple[str, ...]


class Intake:
    def __init__(self, name: str, collection: Collection, limits: QueueLimits | None = None) -> None:
        self.name = name
        self.collection = collection
        self.uploads = UploadStore(collection.local_folder)
        self._database = JobDatabase(collection.local_folder)
        self.store = JobStore(self._database, name, limits)
        self.queue = JobQueue(self._database)
        self.quarantine = Quarantine(self._database, name)
        self.fault = ""  # why nothing can be added now, in words for clients
        self.has_orphans = threading.Event()  # set when some uploads may no longer be referenced
        self.writes = 0  # changes of the collection by this process, for maintenance
        self._seen: tuple[int, str] | None = None  # version and commit; None: lost images were not looked for yet

    def add(self, files: Sequence[ReceivedFile], ids: Sequence[str] = (), skipped: Sequence[Skipped] = ()) -> Job:
        """Accept new images, under these ids or under their file names; an image with the same id is replaced."""

        def prepare(find_pending: FindPending) -> Prepared:
            view = self.collection.view()

            def find_content(id: str) -> str | None:
                known = find_pending(id) or view.find(id)
                return None if known is None else known.sha256

            contents = [(file.name, file.sha256) for file in files]
            named = list(zip(files, choose_ids(contents, ids, find_content), strict=True))
            images = [PendingImage(id, file.name, file.sha256, file.bytes, file.attributes) for file, id in named if id]
            return images, [*skipped, *(Skipped(file.name, REPEATED) for file, id in named if not id)]

        return self._accept("add", prepare, files)

    def update(self, id: str, file: ReceivedFile | None, attributes: Mapping[str, Attribute] | None) -> Job:
        """Accept a change: a new file, new attributes in place of all others, or both. None leaves a part as it is."""

        def prepare(find_pending: FindPending) -> Prepared:
            # Accepted jobs only: a job that is still receiving its files may never get them.
            known = find_pending(id, accepted=True) or self._find_stored(id)
            if known is None:
                raise not_found("image", id[:80], "check the id")
            if file is not None:
                known = PendingImage(id, file.name, file.sha256, file.bytes, known.attributes)
            if attributes is not None:
                known = replace(known, attributes={**dict.fromkeys(EXIF), **attributes})
            return [known], []

        return self._accept("update", prepare, [] if file is None else [file])

    def delete(self, ids: Sequence[str], patience: float) -> Removal:
        """Remove images, stored or waiting; CollectionBusy when others write for `patience` seconds.

        An error means that nothing was deleted, unless it says otherwise.
        """
        wanted = list(dict.fromkeys(ids))
        end = time.monotonic() + patience
        self.store.check()
        with hold_write_lock(self.uploads.folder, patience):
            view = self.collection.view()
            stored = {record.id: record.sha256 for record in map(view.find, wanted) if record is not None}
            if stored:
                retry_while_busy(lambda: self.collection.delete(sorted(stored)), end - time.monotonic())
            dropped = self._drop(wanted, stored)
        if stored:
            self._prepare()
        gone = stored.keys() | dropped
        if gone:
            self.writes += 1
            self.has_orphans.set()
            log.info("%d images deleted from %s", len(gone), self.name)
        return Removal(len(gone), tuple(id for id in wanted if id not in gone))

    def cancel(self, job: str) -> Job | None:
        """Skip the images of a job that are not stored yet; None when there is no such job."""
        cancelled = self.store.cancel(job)
        self.has_orphans.set()
        return cancelled

    def requeue_lost(self) -> int:
        """Queue uploads again that the collection has lost, since it went back to an earlier state; returns how many.

        The caller holds the write lock.
        """
        view = self.collection.view()
        lost = self.store.requeue_lost(view)
        self._seen = view.version, view.commit_id
        if lost:
            log.warning("%s went back to an earlier state: %d of its uploads are added again", self.name, lost)
        return lost

    def may_have_lost(self) -> bool:
        """True when the state seen last is not in the collection's history any more, and after the start."""
        if not self._database.path.exists():
            return False
        if self._seen is None:
            return True
        view, (version, commit) = self.collection.view(), self._seen
        if view.version < version or view.find_commit(version) not in (None, commit):
            return True
        self._seen = view.version, view.commit_id
        return False

    def close(self) -> None:
        self._database.close()

    def _prepare(self) -> None:
        """Show a deletion to searches. It is durable already: an index that cannot be built does not undo it."""
        try:
            self.collection.prepare()
        except ResightError as error:
            log.warning("searches of %s do not see the last deletion yet: %s", self.name, error)

    def _drop(self, wanted: Sequence[str], stored: Mapping[str, str]) -> set[str]:
        try:
            return self.store.drop(wanted, list(stored.values()), self.collection.view() if stored else None)
        except StorageError as error:
            if not stored:
                raise
            log.warning("%s", error)
            raise ApiError(
                507,
                "the images were deleted, but uploads of the same ids that still wait may be added",
                actual=f"{len(stored)} images deleted; {error.problem}",
                fix="delete the same ids again later",
            ) from error

    def _accept(self, kind: Kind, prepare: Prepare, files: Sequence[ReceivedFile]) -> Job:
        job = self.store.receive(kind, prepare)
        try:
            self.uploads.save(file.read() for file in files)
        except BaseException:
            self.store.abandon(job)
            self.has_orphans.set()
            raise
        accepted = self.store.accept(job)
        log.info("job %s: %s of %d images accepted for %s", job, kind, accepted.total, self.name)
        return accepted

    def _find_stored(self, id: str) -> PendingImage | None:
        """A stored image, to be added again as it is."""
        record = self.collection.view().find(id)
        if record is None:
            return None
        ref = record.ref
        attributes = {name: value for name, value in ref.attributes.items() if name != "box"}
        upload = self.uploads.path(record.sha256)
        is_upload = upload.is_file() and (ref.path == upload or not ref.path.is_file())  # the collection was moved
        path = None if is_upload else ref.path
        return PendingImage(id, ref.path.name, record.sha256, 0, attributes, ref.box, path)

"""The writing side of one collection: files and ids in, jobs and what was removed out.

What this returns is durable: a client may be told.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from resight.apps.service.error_responses import refuse_unknown
from resight.apps.service.jobs.database import JournalFile
from resight.apps.service.jobs.models import Arrival, Job, Kind, Promise
from resight.apps.service.jobs.store import FindPromised, Journal, Limits, Prepare, Queue
from resight.apps.service.jobs.turns import keep_trying, take_turn
from resight.apps.service.jobs.uploads import Uploads, choose_ids
from resight.collection import Collection
from resight.collection.add import EXIF
from resight.types import Attribute, Skipped

log = logging.getLogger("resight.service.jobs")
REPEATED = "the same file was sent twice"
Prepared = tuple[Sequence[Promise], Sequence[Skipped]]


@dataclass(frozen=True)
class Removal:
    removed: int
    missing: tuple[str, ...]


class Intake:
    def __init__(self, name: str, collection: Collection, limits: Limits | None = None) -> None:
        self.name = name
        self.collection = collection
        self.uploads = Uploads(collection.home)
        self._file = JournalFile(collection.home)
        self.journal = Journal(self._file, name, limits)
        self.queue = Queue(self._file)
        self.littered = threading.Event()  # files may be there that nothing refers to
        self.writes = 0  # changes to the store by this process, for housekeeping

    def add(self, arrivals: Sequence[Arrival], ids: Sequence[str] = (), skipped: Sequence[Skipped] = ()) -> Job:
        """Take on new images, under these ids or under their names; an image that has the id is replaced."""

        def prepare(find_promised: FindPromised) -> Prepared:
            view = self.collection.view()

            def find_content(id: str) -> str | None:
                known = find_promised(id) or view.find(id)
                return None if known is None else known.sha256

            files = [(one.name, one.sha256) for one in arrivals]
            named = list(zip(arrivals, choose_ids(files, ids, find_content), strict=True))
            promises = [Promise(id, one.name, one.sha256, one.bytes, one.attributes) for one, id in named if id]
            return promises, [*skipped, *(Skipped(one.name, REPEATED) for one, id in named if not id)]

        return self._promise("add", prepare, arrivals)

    def update(self, id: str, arrival: Arrival | None, attributes: Mapping[str, Attribute] | None) -> Job:
        """Take on a change: another file, other attributes in place of all there are, or both. None: as it is."""

        def prepare(find_promised: FindPromised) -> Prepared:
            # Only what is promised: the file of a job that is still being received may never come.
            known = find_promised(id, accepted=True) or self._describe(id)
            if known is None:
                raise refuse_unknown("image", id[:80], "check the id")
            if arrival is not None:
                known = Promise(id, arrival.name, arrival.sha256, arrival.bytes, known.attributes)
            if attributes is not None:
                known = replace(known, attributes={**dict.fromkeys(EXIF), **attributes})
            return [known], []

        return self._promise("update", prepare, [] if arrival is None else [arrival])

    def delete(self, ids: Sequence[str], patience: float) -> Removal:
        """Remove images, and those that wait to be added; CollectionBusy when others write for all that time."""
        wanted = list(dict.fromkeys(ids))
        end = time.monotonic() + patience
        with take_turn(self.uploads.folder, patience):
            view = self.collection.view()
            stored = {id for id in wanted if view.find(id) is not None}
            if stored:
                keep_trying(lambda: self.collection.delete(sorted(stored)), end - time.monotonic())
                self.collection.prepare()
            dropped = self.journal.drop(wanted)
        gone = stored | dropped
        if gone:
            self.writes += 1
            self.littered.set()
            log.info("%d images deleted from %s", len(gone), self.name)
        return Removal(len(gone), tuple(id for id in wanted if id not in gone))

    def cancel(self, job: str) -> Job | None:
        """Leave out what is not stored yet; None when there is no such job."""
        cancelled = self.journal.cancel(job)
        self.littered.set()
        return cancelled

    def _promise(self, kind: Kind, prepare: Prepare, arrivals: Sequence[Arrival]) -> Job:
        job = self.journal.receive(kind, prepare)
        try:
            self.uploads.keep(arrival.read() for arrival in arrivals)
        except BaseException:
            self.journal.abandon(job)
            self.littered.set()
            raise
        accepted = self.journal.accept(job)
        log.info("job %s: %s of %d images promised for %s", job, kind, accepted.total, self.name)
        return accepted

    def _describe(self, id: str) -> Promise | None:
        """A stored image as a promise to add it again as it is."""
        record = self.collection.view().find(id)
        if record is None:
            return None
        ref = record.ref
        attributes = {name: value for name, value in ref.attributes.items() if name != "box"}
        upload = self.uploads.path(record.sha256)
        is_upload = upload.is_file() and (ref.path == upload or not ref.path.is_file())  # the collection was moved
        path = None if is_upload else ref.path
        return Promise(id, ref.path.name, record.sha256, 0, attributes, ref.box, path)

    def close(self) -> None:
        self._file.close()

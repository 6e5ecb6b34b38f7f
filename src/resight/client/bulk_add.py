"""Adding many images over HTTP: sources of `Collection.add` in, requests of a bearable size, one report out.

Requests are packed up to FILES files and BYTES bytes. A service with smaller limits refuses one with 413: it is halved.
Each request becomes a job; OPEN jobs may be unfinished at a time, so that reading, sending and adding overlap.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resight.client.image_upload import list_mapping, read_file
from resight.client.json_values import read_job
from resight.client.operations import Pause, Steps
from resight.client.service_values import Job
from resight.client.transport import Call, File
from resight.collection.add import AddReport
from resight.collection.image_list import list_images
from resight.data import image_files
from resight.errors import ImageError, InputError, ServiceError
from resight.progress import Progress
from resight.types import Attribute, ImageRef, Skipped

FILES, BYTES = 100, 16 * 2**20  # per request
OPEN = 4  # jobs
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two looks at a job
NONE_USABLE = "none of the files can be used"  # the service's words where it skips all files of a request
TOO_LARGE = "HTTP 413"


@dataclass(frozen=True)
class Upload:
    """One image to add, read into memory."""

    id: str
    path: str  # as the caller named it, for messages
    file: File
    attributes: Mapping[str, Attribute]


@dataclass
class Sources:
    """The images to add, listed; read one by one."""

    items: Sequence[Any]  # Skipped, or pairs of an ImageRef and its image
    not_images: int
    skipped: list[Skipped] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.items)

    def read(self) -> Iterator[Upload]:
        for item in self.items:
            if isinstance(item, Skipped):
                self.skipped.append(item)
                continue
            ref, image = item
            try:
                file = read_file(image)
            except (ImageError, InputError) as error:
                reason = image_files.reason(error, ref.path) if isinstance(error, ImageError) else error.problem
                self.skipped.append(Skipped(str(ref.path), reason))
                continue
            yield Upload(ref.id, str(ref.path), file, ref.attributes)


def list_sources(sources: Sequence[Any]) -> Sources:
    """What `Collection.add` takes; images in memory as {"id": pixels}, without a folder to save them in."""
    items: list[Any] = []
    others = 0
    files = [source for source in sources if not isinstance(source, Mapping)]
    for source in sources:
        items += list_mapping(source) if isinstance(source, Mapping) else []
    for images in list_images(files) if files or not sources else []:
        others += images.not_images
        items += [one if isinstance(one, Skipped) else (one, one) for one in images]
    refs = [item[0] for item in items if not isinstance(item, Skipped)]
    _check_ids(refs)
    parts = [ref.id for ref in refs if ref.box is not None]
    if parts:
        raise InputError(
            "a service adds whole images",
            expected="images without a box",
            actual=f"{len(parts):,} with a box, such as {parts[0]!r}",
            fix="add parts of images on the service's machine: `resight index MANIFEST --into COLLECTION`",
        )
    return Sources(items, others)


def _check_ids(refs: Sequence[ImageRef]) -> None:
    known: dict[str, ImageRef] = {}
    for ref in refs:
        if ref.id in known:
            raise InputError(
                f"two files would both be called {ref.id!r}",
                expected="ids that are unique within the collection",
                actual=f"{known[ref.id].path} and {ref.path}",
                fix='give ids of your own, e.g. add({"a": "one/1.jpg", "b": "two/1.jpg"})',
            )
        known[ref.id] = ref


def submit(sources: Sources, collection: str | None) -> Steps[tuple[Job, ...]]:
    """Send all images; the jobs, which may not be finished."""
    jobs: list[Job] = []
    for packed in pack(sources.read()):
        jobs += yield from send(packed, sources, collection)
    return tuple(jobs)


def add(sources: Sources, collection: str | None, progress: Progress | None) -> Steps[AddReport]:
    """Send all images, and wait until they are added."""
    finished: list[Job] = []
    waiting: deque[Job] = deque()

    def count() -> None:
        if progress:
            done = sum(job.done for job in (*finished, *waiting)) + len(sources.skipped)
            progress(min(done, len(sources)), len(sources))

    def wait() -> Steps[None]:
        """Until the oldest job is over."""
        pause = FIRST_PAUSE
        while not (job := read_job((yield Call("GET", f"/api/jobs/{waiting[0].id}")))).is_over:
            waiting[0] = job
            count()
            yield Pause(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)
        waiting.popleft()
        finished.append(job)
        count()

    for packed in pack(sources.read()):
        waiting.extend((yield from send(packed, sources, collection)))
        while len(waiting) > OPEN:
            yield from wait()
    while waiting:
        yield from wait()
    count()
    return report(finished, sources)


def pack(uploads: Iterable[Upload]) -> Iterator[list[Upload]]:
    packed: list[Upload] = []
    size = 0
    for upload in uploads:
        if packed and (len(packed) == FILES or size + len(upload.file[1]) > BYTES):
            yield packed
            packed, size = [], 0
        packed.append(upload)
        size += len(upload.file[1])
    if packed:
        yield packed


def send(uploads: Sequence[Upload], sources: Sources, collection: str | None) -> Steps[list[Job]]:
    """The jobs of a request, or of its halves. A file that the service refuses alone is skipped."""
    try:
        return [read_job((yield make_call(uploads, collection))["job"])]
    except InputError as error:
        is_large = any(note.startswith(TOO_LARGE) for note in getattr(error, "__notes__", ()))
        if not is_large and error.problem != NONE_USABLE:
            raise
        if len(uploads) > 1:
            half = len(uploads) // 2
            first = yield from send(uploads[:half], sources, collection)
            second = yield from send(uploads[half:], sources, collection)
            return first + second
        reason = error.problem if is_large else error.actual.partition(": ")[2]
        sources.skipped.append(Skipped(uploads[0].path, reason))
        return []


def make_call(uploads: Sequence[Upload], collection: str | None) -> Call:
    names = choose_names([upload.file[0] for upload in uploads])
    attributes = {name: dict(upload.attributes) for name, upload in zip(names, uploads, strict=True)}
    fields = [("ids", upload.id) for upload in uploads]
    fields += [("attributes", json.dumps(attributes))] if any(attributes.values()) else []
    fields += [("collection", collection)] if collection else []
    files = [("images", (name, upload.file[1])) for name, upload in zip(names, uploads, strict=True)]
    # With ids, sending the same files twice leaves the same images.
    return Call("POST", "/api/images", fields=fields, files=files, is_form=True)


def choose_names(names: Sequence[str]) -> list[str]:
    """Different names, since the service assigns attributes by them."""
    chosen: dict[str, None] = {}
    for name in names:
        path, number, free = Path(name), 2, name
        while free in chosen:
            free, number = f"{path.stem}-{number}{path.suffix}", number + 1
        chosen[free] = None
    return list(chosen)


def report(jobs: Sequence[Job], sources: Sources) -> AddReport:
    for job in jobs:
        if job.state != "done":
            raise ServiceError(
                f"the job {job.id} was not completed",
                expected="all images added",
                actual=f"{job.state}: {job.error or 'no reason given'}; {job.done:,} of {job.total:,} images are done",
                fix="add the images again",
            )
    skipped = (*sources.skipped, *(one for job in jobs for one in job.skipped))
    added, updated = sum(job.added for job in jobs), sum(job.updated for job in jobs)
    done = sum(job.done - len(job.skipped) for job in jobs)
    return AddReport(added, updated, done - added - updated, skipped, not_images=sources.not_images)

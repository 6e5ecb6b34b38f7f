"""A collection without descriptors for tests of the service's jobs, which fails on demand; and what is sent to it."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.models import Job, ReceivedFile
from resight.collection.add import AddReport, EncodedImages
from resight.files.lock import writer_lock
from resight.store import ImageRecord
from resight.types import ImageRef, Skipped


@dataclass(frozen=True)
class State:
    """A state of a collection of which only the numbers count."""

    version: int = 1
    commit_id: str = "first-1"

    def find_commit(self, version: int) -> str | None:
        return self.commit_id if version == self.version else None


STATE = State()


class Shelf:
    """A collection that stores records and no descriptors; `faults` are raised by the next calls of `add`."""

    def __init__(self, path: Path) -> None:
        self.path = self.local_folder = path
        self.images: dict[str, ImageRecord] = {}
        self.version, self.branch, self.since = 1, "first", 1
        self.portions: list[list[str]] = []
        self.faults: list[Exception] = []
        self.when_encoding: Callable[[], None] = lambda: None
        self.unbearable = b""  # content that the encoder breaks on

    def encode_images(self, refs: Sequence[ImageRef]) -> EncodedImages:
        self.when_encoding()
        return EncodedImages({}, {ref.id: () for ref in refs})

    def add(self, refs: Sequence[ImageRef], *, tidy: bool = False, encoded: EncodedImages | None = None) -> AddReport:
        assert encoded is not None or len(refs) == 1, "the collection would be locked while images are encoded"
        assert not tidy, "a portion would wait for the whole collection to be written anew"
        with writer_lock(self.path):
            if self.faults:
                raise self.faults.pop(0)
            self.portions.append([ref.id for ref in refs])
            for ref in refs:
                if ref.path.read_bytes() == self.unbearable:
                    raise ZeroDivisionError
            good = [ref for ref in refs if b"bad" not in ref.path.read_bytes()]
            self.images |= {ref.id: self._record(ref) for ref in good}
            self.version += 1
            return AddReport(len(good), 0, 0, tuple(Skipped(str(ref.path), "bad") for ref in refs if ref not in good))

    def delete(self, ids: Sequence[str]) -> int:
        with writer_lock(self.path):
            self.version += 1
            return sum(self.images.pop(id, None) is not None for id in ids)

    @property
    def commit_id(self) -> str:
        return self.find_commit(self.version) or ""

    def find_commit(self, version: int) -> str | None:
        return f"{self.branch}-{version}" if version >= self.since else f"first-{version}"

    def go_back(self, images: dict[str, ImageRecord], version: int) -> None:
        """As if restored from a backup: later commits differ from those that were there."""
        self.images, self.version = dict(images), version
        self.branch, self.since = f"{self.branch}+", version + 1

    def view(self) -> "Shelf":
        return self

    def __len__(self) -> int:
        return len(self.images)

    def find(self, id: str) -> ImageRecord | None:
        return self.images.get(id)

    def records(self) -> Iterator[ImageRecord]:
        return iter(list(self.images.values()))

    def prepare(self) -> "Shelf":
        return self

    def _record(self, ref: ImageRef) -> ImageRecord:
        data = ref.path.read_bytes()
        return ImageRecord(
            ref.id, ref.path, hashlib.sha256(data).hexdigest(), len(data), 0, (1, 1), dict(ref.attributes)
        )


def arrive(name: str, data: bytes | None = None, **attributes: Any) -> ReceivedFile:
    content = name.encode() if data is None else data
    return ReceivedFile(name, hashlib.sha256(content).hexdigest(), lambda: content, len(content), attributes)


def promise(intake: Intake, *names: str) -> str:
    return intake.add([arrive(name) for name in names]).id


def read(intake: Intake, job: str) -> Job:
    found = intake.store.find(job)
    assert found is not None
    return found

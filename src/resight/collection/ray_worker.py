"""The part of adding on Ray that runs on every node: a block of images in, rows on disk and an Outcome out.

A worker is an actor with one CPU that holds the networks. It writes the rows of new images into the collection's
folder, apart from committed ones, and sends back only their Fragment. Rows of images that replace stored ones go back
to the driver, which alone may change the collection. An error of a node goes back as a Failure, so that the driver
reports it in the words of this package, not of Ray.
"""

import contextlib
import pickle
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import pyarrow

from resight import errors, ray_cluster
from resight import store as stores
from resight.collection import location, metadata
from resight.collection.add import make_record, read_picture
from resight.data.sandbox import sandboxed
from resight.encode.encoder import Encoder, encode_stored
from resight.encode.extract import encode_ahead
from resight.errors import ClusterError, ResightError, StorageError
from resight.files.remote import to_url
from resight.store import Fragment, ImageRecord, Record
from resight.types import ImageRef, Skipped

pa: Any = pyarrow  # mypy does not see the names that it exports
TOKEN = "cluster.token"
LOOKS, PAUSE = 5, 1.0  # reads of a missing token: a network folder may show a new file late


@dataclass(frozen=True)
class Job:
    """The same for every worker of a run."""

    folder: Path  # of the collection: absolute, or remote (resight.files.remote)
    token: str  # the content of its file TOKEN
    spaces: tuple[str, ...]
    versions: Mapping[str, str]  # of the driver


@dataclass(frozen=True)
class Block:
    """Images that are encoded together; all are new, or all replace stored ones."""

    number: int
    refs: tuple[ImageRef, ...]
    new: bool


@dataclass(frozen=True)
class Failure:
    """An error of this package on a node, field by field: pickling an exception would lose them."""

    node: str
    node_id: str
    kind: str  # its class in resight.errors
    problem: str
    expected: str
    actual: str
    fix: str

    @property
    def error(self) -> ResightError:
        kind: type[ResightError] = getattr(errors, self.kind)
        problem = f"node {self.node}: {self.problem}"
        return kind(problem, expected=self.expected, actual=self.actual, fix=self.fix)

    @property
    def is_of_the_disk(self) -> bool:
        """Whether another node may be able to write."""
        return self.kind == StorageError.__name__


@dataclass(frozen=True)
class Outcome:
    """The result of a block."""

    number: int  # of the block
    stored: tuple[ImageRecord, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    fragment: Fragment | None = None  # the rows of new images
    records: tuple[Record, ...] = ()  # the rows of the others
    failure: Failure | None = None


class Worker:
    """Ray makes one per actor, and calls it with tables of the column `block`; it returns the column `outcome`."""

    def __init__(self, job: Job) -> None:
        cv2.setNumThreads(1)  # an actor has one CPU; the environment limits the other libraries
        self._folder = job.folder
        self._failure: Failure | None = None
        try:
            self._open(job)
        except ResightError as error:
            self._failure = _describe(error, job.folder)

    def __call__(self, table: Any) -> Any:
        # Pickles pass between processes of one cluster, like everything that Ray carries.
        outcomes = [pickle.dumps(self._work(pickle.loads(block))) for block in table["block"].to_pylist()]  # nosec B301  # from the nodes of one's own cluster, as Ray does
        return pa.table({"outcome": pa.array(outcomes, pa.large_binary())})

    def _open(self, job: Job) -> None:
        node = name_node()
        ray_cluster.refuse_skew(node, ray_cluster.list_versions(), job.versions)
        _find_token(job)
        made = metadata.read(job.folder)
        self._encoder = Encoder(made.recipe.branches)
        if self._encoder.spaces != job.spaces:
            raise ClusterError(
                "this node encodes differently",
                expected=" | ".join(job.spaces),
                actual=" | ".join(self._encoder.spaces),
                fix="install the same packages and weights on all nodes",
            )
        self._store: Any = stores.build(made.recipe.store.name, folder=job.folder, **made.recipe.store.settings)

    def _work(self, block: Block) -> Outcome:
        if self._failure is not None:
            return Outcome(block.number, failure=self._failure)
        try:
            with sandboxed():
                return self._encode(block)
        except ResightError as error:
            return Outcome(block.number, failure=_describe(error, self._folder))

    def _encode(self, block: Block) -> Outcome:
        skipped: list[Skipped] = []
        records: list[Record] = []
        for encoded in encode_ahead(
            block.refs,
            lambda ref: read_picture(ref, self._encoder),
            lambda pictures: encode_stored(pictures, self._encoder),
            self._encoder.batch,
            workers=1,
        ):
            if isinstance(encoded, Skipped):
                skipped.append(encoded)
            else:
                picture, rows = encoded
                records.append(Record(make_record(picture), rows))
        stored = tuple(record.image for record in records)
        if not block.new:
            return Outcome(block.number, stored, tuple(skipped), records=tuple(records))
        fragment = self._store.write_apart(records) if records else None
        return Outcome(block.number, stored, tuple(skipped), fragment)


def name_node() -> str:
    """The node of this process, as errors name it."""
    ray = ray_cluster.import_ray()
    return f"{socket.gethostname()} ({ray.util.get_node_ip_address()})"


def _find_token(job: Job) -> None:
    """Check that the folder here is the one that the driver writes to."""
    found = "no such file"
    for look in range(LOOKS):
        time.sleep(PAUSE if look else 0)
        with contextlib.suppress(FileNotFoundError):
            if location.read_file(job.folder, TOKEN) == job.token.encode():
                return
            found = "other content: another folder of the same name"
    raise ClusterError(
        f"the collection's folder {to_url(job.folder)} is not the same folder on every node",
        expected=f"its file {TOKEN} as the driver has written it",
        actual=found,
        fix="put the collection on a folder that all nodes share under one path",
    )


def _describe(error: ResightError, folder: Path) -> Failure:
    node_id = ray_cluster.import_ray().get_runtime_context().get_node_id()
    where = f" ({to_url(folder)})" if isinstance(error, StorageError) else ""
    kind, problem = type(error).__name__, error.problem + where
    return Failure(name_node(), node_id, kind, problem, error.expected, error.actual, error.fix)

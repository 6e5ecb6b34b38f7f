"""The interface to a Qdrant collection that the index and the export share.

In: points with named vectors, and conditions from `qdrant_client.models`. Out: the points found. Two implementations:
client.py (a server, or the client's local mode) and edge.py (a shard in this process). `batch_points` makes batches of
bounded size; `translate_server_errors` and `translate_folder_errors` turn the errors of Qdrant, its client and its
files into ours, with a fix.
"""

import importlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType
from typing import Any, Literal, Protocol

from resight.errors import ClusterError, CollectionBusy, CollectionError, MissingExtra, StorageError, install_extra
from resight.types import FloatArray

Number = int | str  # of a point; a string is a UUID
Payload = Mapping[str, Any]
FieldKind = Literal["keyword", "float", "geo"]


@dataclass(frozen=True)
class VectorLayout:
    """The shape and storage of the vectors of one name. Their score is the dot product."""

    size: int
    many: bool = False  # several rows per point: MaxSim, the sum over the query's rows of the best dot product
    graph: bool = False  # HNSW; without it, a search compares all
    int8: bool = False  # scalar quantisation, with the codes in memory


@dataclass(frozen=True)
class Point:
    number: Number
    vectors: Mapping[str, FloatArray]  # [D], or [r, D] if the layout has `many`
    payload: Payload


@dataclass(frozen=True)
class Found:
    number: Number
    score: float
    payload: Payload


@dataclass(frozen=True)
class VectorQuery:
    """The `limit` best points by the vectors `using`, among all points or among those that `first` finds."""

    using: str
    rows: FloatArray  # [D], or [q, D]
    limit: int
    exact: bool = True  # compare all points at full precision, even if there is a graph or codes
    first: "VectorQuery | None" = None


class Backend(Protocol):
    where: str  # for messages

    def layout(self) -> dict[str, VectorLayout] | None:
        """The vectors by name, with `size` and `many`; None: the collection does not exist yet."""

    def create(self, layout: Mapping[str, VectorLayout]) -> None: ...

    def index_payload(self, fields: Mapping[str, FieldKind]) -> None:
        """Index payload fields, so that conditions on them are fast. Local mode ignores it: it scans all points."""

    def upsert(self, points: Sequence[Point]) -> None: ...

    def remove(self, numbers: Sequence[Number]) -> None: ...

    def query(self, ask: VectorQuery, condition: Any = None, *, payload: bool = False) -> list[Found]:
        """Best first. `condition` is a `qdrant_client.models.Filter`, or None."""

    def read_vectors(self, numbers: Sequence[Number], using: str) -> dict[Number, FloatArray]: ...

    def read_payload(self, number: Number) -> Payload | None:
        """The payload of a point; None: no such point."""

    def list_payloads(self, keys: Sequence[str]) -> Iterator[tuple[Number, Payload]]:
        """The payload of every point, reduced to `keys`."""

    def count(self) -> int: ...

    def finish(self) -> None:
        """Call it after the last change: flush to disk and build the graphs."""

    def close(self) -> None: ...


def load_backend(name: Literal["client", "edge"]) -> ModuleType:
    """Import client.py or edge.py, each of which needs an optional Python package."""
    try:
        return importlib.import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("resight"):
            raise
        raise MissingExtra(
            f"Qdrant needs the Python package {error.name!r}, which is not installed",
            expected=f"{error.name!r} to be importable",
            actual=str(error),
            fix=install_extra("qdrant"),
        ) from error


UPLOAD_FLOATS = 1 << 20  # of the vectors in one batch


def batch_points(points: Iterator[Point]) -> Iterator[list[Point]]:
    """Batches of points, each a request of a few megabytes."""
    while first := next(points, None):
        floats = max(sum(rows.size for rows in first.vectors.values()), 1)
        yield [first, *islice(points, max(UPLOAD_FLOATS // floats - 1, 0))]


KEY = "RESIGHT_QDRANT_KEY"
REFUSED = (401, 403)


@contextmanager
def translate_server_errors(url: str) -> Iterator[None]:
    """Wrap calls of the client that go to a server."""
    from httpx import HTTPError
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    try:
        yield
    except UnexpectedResponse as error:
        raise status_error(url, error.status_code or 0, error.content.decode("utf-8", "replace")) from error
    except (ResponseHandlingException, HTTPError) as error:
        raise ClusterError(
            f"the Qdrant server at {url} does not answer",
            expected="an answer over HTTP",
            actual=f"{type(error).__name__}: {error}",
            fix="check the address and the port, and whether the server runs; uploaded points stay there",
        ) from error


def status_error(url: str, status: int, text: str) -> ClusterError:
    if status in REFUSED:
        return ClusterError(
            f"the Qdrant server at {url} refuses the key",
            expected=f"a key that it knows, in the environment variable {KEY}",
            actual=f"HTTP {status}",
            fix=f"set {KEY}, or name another variable",
        )
    return ClusterError(
        f"the Qdrant server at {url} refuses the request",
        expected="a Qdrant server, version 1.10 or later",
        actual=f"HTTP {status}: {text[:300]}",
        fix="check the address and the server's message",
    )


@contextmanager
def translate_folder_errors(folder: Path) -> Iterator[None]:
    """Wrap calls that read or write the files of the client's local mode."""
    try:
        yield
    except OSError as error:
        raise storage_error(folder, error) from error
    except (sqlite3.Error, UnpicklingError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged_error(folder, error) from error


def storage_error(folder: Path, error: OSError) -> StorageError:
    return StorageError(
        f"the files in {folder} cannot be read or written",
        expected="a writable folder with free space",
        actual=str(error),
        fix="check the disk and the permissions, and try again",
    )


def busy_error(folder: Path, error: Any) -> CollectionBusy:
    return CollectionBusy(
        f"another process has {folder} open",
        expected="one process at a time; several need a server",
        actual=str(error).partition("\n")[0],
        fix="wait for the other process, or end it",
    )


def damaged_error(folder: Path, error: Any) -> CollectionError:
    return CollectionError(
        f"the Qdrant files in {folder} cannot be read",
        expected="files as Qdrant wrote them",
        actual=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
        fix="delete the folder and export the collection again",
    )

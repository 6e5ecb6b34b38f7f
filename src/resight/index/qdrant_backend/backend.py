"""What an index and an export need of a Qdrant collection, wherever it lies.

In: points with named vectors, and conditions from `qdrant_client.models`. Out: the points found. Two implementations:
client.py (a server, or the client's local mode) and edge.py (a shard in this process). `batch_points` makes batches of
bounded size; `translate_errors` turns what Qdrant, its client and its files raise into errors with a fix.
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

from resight.errors import ClusterError, CollectionBusy, CollectionError, MissingExtra, StorageError
from resight.types import FloatArray

Number = int | str  # of a point; a text is a UUID
Payload = Mapping[str, Any]
FieldKind = Literal["keyword", "float", "geo"]


@dataclass(frozen=True)
class VectorLayout:
    """What the vectors of one name look like. Their score is the dot product."""

    size: int
    many: bool = False  # several rows a point: MaxSim, the sum over the query's rows of the best dot product
    graph: bool = False  # HNSW; without it, a search compares all
    int8: bool = False  # scalar quantisation, kept in memory


@dataclass(frozen=True)
class Point:
    number: Number
    vectors: Mapping[str, FloatArray]  # [D], or [r, D] where the layout says many
    payload: Payload


@dataclass(frozen=True)
class Found:
    number: Number
    score: float
    payload: Payload


@dataclass(frozen=True)
class Ask:
    """The `limit` best by the vectors called `using`, of all points or of those that `first` finds."""

    using: str
    rows: FloatArray  # [D], or [q, D]
    limit: int
    exact: bool = True  # compare all at full precision, where there is a graph or there are codes
    first: "Ask | None" = None


class Backend(Protocol):
    where: str  # for messages

    def layout(self) -> dict[str, VectorLayout] | None:
        """Sizes, and whether there are many rows a point; None: there is no such collection yet."""

    def create(self, layout: Mapping[str, VectorLayout]) -> None: ...

    def index_payload(self, fields: Mapping[str, FieldKind]) -> None:
        """Make conditions on these fast; it has no effect where all points are looked at anyway."""

    def upsert(self, points: Sequence[Point]) -> None: ...

    def remove(self, numbers: Sequence[Number]) -> None: ...

    def query(self, ask: Ask, condition: Any = None, *, payload: bool = False) -> list[Found]:
        """Best first. `condition` is a `qdrant_client.models.Filter`, or None."""

    def read_vectors(self, numbers: Sequence[Number], using: str) -> dict[Number, FloatArray]: ...

    def read_payload(self, number: Number) -> Payload | None:
        """None: there is no such point."""

    def list_payloads(self, keys: Sequence[str]) -> Iterator[tuple[Number, Payload]]:
        """Of every point, some of what is kept with it."""

    def count(self) -> int: ...

    def finish(self) -> None:
        """After the last change: what was written is on disk, and graphs are built."""

    def close(self) -> None: ...


def load_kind(name: Literal["client", "edge"]) -> ModuleType:
    """One of the two modules, each of which needs a Python package that not everybody has."""
    try:
        return importlib.import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("resight"):
            raise
        raise MissingExtra(
            f"Qdrant needs the Python package {error.name!r}, which is not installed",
            expected=f"{error.name!r} to be importable",
            actual=str(error),
            fix="pip install 'resight[qdrant]'",
        ) from error


UPLOAD_FLOATS = 1 << 20  # of points that go at a time


def batch_points(points: Iterator[Point]) -> Iterator[list[Point]]:
    """As many at a time as make a request of a few megabytes."""
    while first := next(points, None):
        floats = max(sum(rows.size for rows in first.vectors.values()), 1)
        yield [first, *islice(points, max(UPLOAD_FLOATS // floats - 1, 0))]


KEY = "RESIGHT_QDRANT_KEY"
REFUSED = (401, 403)


@contextmanager
def telling_server(url: str) -> Iterator[None]:
    """Around calls of the client that go to a server."""
    from httpx import HTTPError
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    try:
        yield
    except UnexpectedResponse as error:
        raise tell_status(url, error.status_code or 0, error.content.decode("utf-8", "replace")) from error
    except (ResponseHandlingException, HTTPError) as error:
        raise ClusterError(
            f"the Qdrant server at {url} does not answer",
            expected="an answer over HTTP",
            actual=f"{type(error).__name__}: {error}",
            fix="check the address and the port, and whether the server runs; what was uploaded is kept",
        ) from error


def tell_status(url: str, status: int, said: str) -> ClusterError:
    if status in REFUSED:
        return ClusterError(
            f"the Qdrant server at {url} refuses the key",
            expected=f"a key that it knows, in the environment variable {KEY}",
            actual=f"HTTP {status}",
            fix=f"set {KEY}, or name another variable",
        )
    return ClusterError(
        f"the Qdrant server at {url} refuses what it was asked",
        expected="a Qdrant server, version 1.10 or later",
        actual=f"HTTP {status}: {said[:300]}",
        fix="check the address, and what the server says",
    )


@contextmanager
def telling_folder(folder: Path) -> Iterator[None]:
    """Around calls that read or write the files of the client's local mode."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"the files in {folder} cannot be read or written",
            expected="a folder that may be written to, with space left",
            actual=str(error),
            fix="check the disk and the permissions, and do it again",
        ) from error
    except (sqlite3.Error, UnpicklingError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise tell_damaged(folder, error) from error


def tell_busy(folder: Path, error: Any) -> CollectionBusy:
    return CollectionBusy(
        f"another process has {folder} open",
        expected="one process at a time: more need a server",
        actual=str(error).partition("\n")[0],
        fix="wait for the other one, or end it",
    )


def tell_damaged(folder: Path, error: Any) -> CollectionError:
    return CollectionError(
        f"the Qdrant files in {folder} cannot be read",
        expected="files as Qdrant wrote them",
        actual=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
        fix="remove the folder and export the collection again",
    )

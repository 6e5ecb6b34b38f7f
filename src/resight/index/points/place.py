"""A Qdrant collection, wherever it lies: what an index and an export need of it.

In: points, whose vectors have names, and conditions in the words of `qdrant_client.models`. Out: points that were
found. There are two kinds: client.py (a server, or the client's local mode) and edge.py (a shard in this process).
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, Protocol

from resight.errors import MissingExtra
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


class Place(Protocol):
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

"""A Qdrant collection as a Qdrant Edge shard: a folder that this process reads and writes itself, without a server.

With `shared`, the shard has no write-ahead log and no lock: one process writes it once, then many read it. The module
converts conditions from `qdrant_client.models` to those of Edge. Callers must not filter by booleans: Edge reads a
boolean as the number 1 or 0, which matches no stored boolean.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import qdrant_edge as edge
from qdrant_client import models

from resight.errors import ResightError
from resight.files.documents import load_json
from resight.index.qdrant_backend.backend import (
    FieldKind,
    Found,
    Number,
    Payload,
    Point,
    VectorLayout,
    VectorQuery,
    busy_error,
    damaged_error,
    storage_error,
)
from resight.types import FloatArray

FILE = "edge_config.json"
PAGE = 1000  # points per request when all are listed
LINKS, BUILD_WIDTH = 16, 100  # M and efConstruction of the graph
FULL_SCAN = 10_000  # KB of vectors; below that Edge compares all and builds no graph
SCHEMAS = {
    "keyword": edge.PayloadSchemaType.Keyword,
    "float": edge.PayloadSchemaType.Float,
    "geo": edge.PayloadSchemaType.Geo,
}


def open_edge(folder: Path, *, shared: bool = False) -> "EdgeBackend":
    return EdgeBackend(folder, shared)


class EdgeBackend:
    def __init__(self, folder: Path, shared: bool) -> None:
        self.where = str(folder)
        self._folder = folder
        self._shared = shared
        self._shard: Any = None
        if (folder / FILE).exists():
            with self._translate_errors():
                self._shard = edge.EdgeShard.load(str(folder))

    def layout(self) -> dict[str, VectorLayout] | None:
        if self._shard is None:
            return None
        return read_layout(self._folder / FILE)

    def create(self, layout: Mapping[str, VectorLayout]) -> None:
        with self._translate_errors():
            self._folder.mkdir(parents=True, exist_ok=True)
            vectors = {name: _make_params(part) for name, part in layout.items()}
            config = edge.EdgeConfig(vectors=vectors, wal_enabled=not self._shared)
            self._shard = edge.EdgeShard.create(str(self._folder), config)

    def index_payload(self, fields: Mapping[str, FieldKind]) -> None:
        with self._translate_errors():
            for name, kind in fields.items():
                self._shard.update(edge.UpdateOperation.create_field_index(name, SCHEMAS[kind]))

    def upsert(self, points: Sequence[Point]) -> None:
        made = [
            edge.Point(
                point.number,
                {name: rows.tolist() for name, rows in point.vectors.items()},  # Edge reads lists faster than arrays
                dict(point.payload),
            )
            for point in points
        ]
        with self._translate_errors():
            self._shard.update(edge.UpdateOperation.upsert_points(made))

    def remove(self, numbers: Sequence[Number]) -> None:
        with self._translate_errors():
            self._shard.update(edge.UpdateOperation.delete_points(list(numbers)))

    def query(self, ask: VectorQuery, condition: Any = None, *, payload: bool = False) -> list[Found]:
        narrowed = None if condition is None else convert_condition(condition)
        first = ask.first and edge.Prefetch(
            ask.first.limit, query=_make_query(ask.first), params=_choose_params(ask.first), filter=narrowed
        )
        with self._translate_errors():
            found = self._shard.query(
                edge.QueryRequest(
                    ask.limit,
                    query=_make_query(ask),
                    prefetches=[first] if first else None,
                    with_payload=payload,
                    filter=narrowed,
                    params=_choose_params(ask),
                )
            )
        return [Found(_read_number(point.id), float(point.score), point.payload or {}) for point in found]

    def read_vectors(self, numbers: Sequence[Number], using: str) -> dict[Number, FloatArray]:
        with self._translate_errors():
            found = self._shard.retrieve(list(numbers), with_payload=False, with_vector=[using])
        return {
            _read_number(point.id): np.asarray(point.vector[using], np.float32)
            for point in found
            if point.vector and using in point.vector
        }

    def read_payload(self, number: Number) -> Payload | None:
        with self._translate_errors():
            found = self._shard.retrieve([number], with_payload=True, with_vector=False)
        return (found[0].payload or {}) if found else None

    def list_payloads(self, keys: Sequence[str]) -> Iterator[tuple[Number, Payload]]:
        offset = None
        while True:
            with self._translate_errors():
                page, offset = self._shard.scroll(edge.ScrollRequest(offset, PAGE, with_payload=list(keys)))
            yield from ((_read_number(point.id), point.payload or {}) for point in page)
            if offset is None:
                return

    def count(self) -> int:
        with self._translate_errors():
            return int(self._shard.count(edge.CountRequest(exact=True)))

    def finish(self) -> None:
        with self._translate_errors():
            self._shard.optimize()
            self._shard.flush()

    def close(self) -> None:
        if self._shard is not None:
            self._shard.close()
            self._shard = None

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except ResightError:
            raise
        except OSError as error:
            raise storage_error(self._folder, error) from error
        except Exception as error:  # Edge raises plain exceptions
            raise (busy_error if "WouldBlock" in str(error) else damaged_error)(self._folder, error) from error


def convert_condition(condition: Any) -> Any:
    """A Filter, or one condition of it."""
    match condition:
        case models.Filter():
            must, should, must_not = (
                [convert_condition(part) for part in parts] if parts else None
                for parts in (condition.must, condition.should, condition.must_not)
            )
            return edge.Filter(must, should, must_not)
        case models.HasIdCondition():
            return edge.HasIdCondition(set(condition.has_id))
        case models.IsEmptyCondition():
            return edge.IsEmptyCondition(condition.is_empty.key)
        case models.FieldCondition(key=key, match=models.MatchValue(value=value)):
            return edge.FieldCondition(key, match=edge.MatchValue(value))
        case models.FieldCondition(key=key, range=models.Range() as span):
            return edge.FieldCondition(key, range=edge.RangeFloat(span.gte, span.gt, span.lte, span.lt))
        case models.FieldCondition(key=key, geo_radius=models.GeoRadius() as circle):
            centre = edge.GeoPoint(circle.center.lon, circle.center.lat)
            return edge.FieldCondition(key, geo_radius=edge.GeoRadius(centre, circle.radius))
    raise TypeError(f"{type(condition).__name__} is not a supported condition")


def read_layout(file: Path) -> dict[str, VectorLayout]:
    try:
        vectors = load_json(file.read_text(encoding="utf-8"))["vectors"]
        return {
            name: VectorLayout(int(found["size"]), many=found.get("multivector_config") is not None)
            for name, found in vectors.items()
        }
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise damaged_error(file.parent, error) from error


def _make_params(layout: VectorLayout) -> Any:
    codes = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, always_ram=True)
    return edge.EdgeVectorParams(
        size=layout.size,
        distance=edge.Distance.Dot,
        multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim) if layout.many else None,
        hnsw_config=edge.HnswIndexConfig(LINKS if layout.graph else 0, BUILD_WIDTH, FULL_SCAN),
        quantization_config=codes if layout.int8 else None,
    )


def _make_query(ask: VectorQuery) -> Any:
    return edge.Query.Nearest(ask.rows.tolist(), ask.using)


def _choose_params(ask: VectorQuery) -> Any:
    if ask.exact:
        return edge.SearchParams(exact=True)
    codes = edge.QuantizationSearchParams(rescore=True, oversampling=2.0)
    return edge.SearchParams(hnsw_ef=max(128, 2 * ask.limit), quantization=codes)


def _read_number(number: Any) -> Number:
    return number if isinstance(number, int) else str(number)

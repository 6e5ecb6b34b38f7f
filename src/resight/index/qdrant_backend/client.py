"""A Qdrant collection through `qdrant-client`: on a server, in a folder of its local mode, or in memory.

Local mode compares all points, at full precision: there is no graph, there are no codes, and conditions need no index.
"""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from qdrant_client import QdrantClient, models

from resight.errors import ClusterError, InputError
from resight.index.qdrant_backend.backend import (
    KEY,
    FieldKind,
    Found,
    Number,
    Payload,
    Point,
    VectorLayout,
    VectorQuery,
    busy_error,
    status_error,
    translate_folder_errors,
    translate_server_errors,
)
from resight.types import FloatArray

ANSWER_SECONDS = 5.0  # time limit for a server to answer at all
WORK_SECONDS = 120  # time limit for one request
PAGE = 1000  # points per request when all are listed
SCHEMAS = {"keyword": models.PayloadSchemaType.KEYWORD, "float": models.PayloadSchemaType.FLOAT}


def open_memory(name: str) -> "ClientBackend":
    return ClientBackend(QdrantClient(":memory:"), name, "memory", nullcontext, local=True)


def open_folder(folder: Path, name: str) -> "ClientBackend":
    """The client's local mode, for one process at a time. Its files hold pickles: open only folders that you trust."""
    with translate_folder_errors(folder), _ignore_warnings():
        _check_free(folder)
        client = QdrantClient(path=str(folder))
    return ClientBackend(client, name, str(folder), lambda: translate_folder_errors(folder), local=True)


def open_server(url: str, name: str, key_variable: str = KEY) -> "ClientBackend":
    """Connect to a server. An error follows within seconds if it does not answer or refuses the key."""
    key = os.environ.get(key_variable)
    _check_server(url, key)
    with _ignore_warnings():
        client = QdrantClient(url=url, api_key=key, timeout=WORK_SECONDS, check_compatibility=False)
    return ClientBackend(client, name, url, lambda: translate_server_errors(url), local=False)


class ClientBackend:
    def __init__(self, client: QdrantClient, name: str, where: str, translate: Any, *, local: bool) -> None:
        self.where = f"{name!r} in {where}"
        self._client = client
        self._name = name
        self._translate = translate
        self._local = local

    def layout(self) -> dict[str, VectorLayout] | None:
        with self._translate_errors():
            if not self._client.collection_exists(self._name):
                return None
            vectors = self._client.get_collection(self._name).config.params.vectors
        named = vectors if isinstance(vectors, dict) else {"": vectors} if vectors else {}
        return {
            name: VectorLayout(int(found.size), many=found.multivector_config is not None)
            for name, found in named.items()
        }

    def create(self, layout: Mapping[str, VectorLayout]) -> None:
        with self._translate_errors():
            self._client.create_collection(
                self._name, vectors_config={name: _make_params(part) for name, part in layout.items()}
            )

    def index_payload(self, fields: Mapping[str, FieldKind]) -> None:
        if self._local:
            return
        with self._translate_errors():
            for name, kind in fields.items():
                schema = SCHEMAS.get(kind, models.PayloadSchemaType.GEO)
                self._client.create_payload_index(self._name, name, field_schema=schema, wait=True)

    def upsert(self, points: Sequence[Point]) -> None:
        made = [
            models.PointStruct(
                id=point.number,
                vector={name: rows.tolist() for name, rows in point.vectors.items()},
                payload=dict(point.payload),
            )
            for point in points
        ]
        with self._translate_errors():
            self._client.upsert(self._name, made, wait=True)

    def remove(self, numbers: Sequence[Number]) -> None:
        with self._translate_errors():
            self._client.delete(self._name, models.PointIdsList(points=list(numbers)), wait=True)

    def query(self, ask: VectorQuery, condition: Any = None, *, payload: bool = False) -> list[Found]:
        with self._translate_errors():
            found = self._client.query_points(
                self._name,
                query=ask.rows.tolist(),
                using=ask.using,
                limit=ask.limit,
                prefetch=self._fetch_first(ask.first, condition),
                query_filter=condition,
                search_params=self._choose_params(ask),
                with_payload=payload,
            ).points
        return [Found(_read_number(point.id), float(point.score), point.payload or {}) for point in found]

    def read_vectors(self, numbers: Sequence[Number], using: str) -> dict[Number, FloatArray]:
        with self._translate_errors():
            found = self._client.retrieve(self._name, list(numbers), with_payload=False, with_vectors=[using])
        return {
            _read_number(point.id): np.asarray(point.vector[using], np.float32)
            for point in found
            if isinstance(point.vector, dict) and using in point.vector
        }

    def read_payload(self, number: Number) -> Payload | None:
        with self._translate_errors():
            found = self._client.retrieve(self._name, [number], with_payload=True)
        return (found[0].payload or {}) if found else None

    def list_payloads(self, keys: Sequence[str]) -> Iterator[tuple[Number, Payload]]:
        offset = None
        while True:
            with self._translate_errors():
                page, offset = self._client.scroll(self._name, limit=PAGE, offset=offset, with_payload=list(keys))
            yield from ((_read_number(point.id), point.payload or {}) for point in page)
            if offset is None:
                return

    def count(self) -> int:
        with self._translate_errors():
            return int(self._client.count(self._name, exact=True).count)

    def finish(self) -> None:
        """Nothing to do: every change has been waited for. A server answers while it builds its graph."""

    def close(self) -> None:
        self._client.close()

    def _fetch_first(self, first: VectorQuery | None, condition: Any) -> Any:
        if first is None:
            return None
        return models.Prefetch(
            query=first.rows.tolist(),
            using=first.using,
            limit=first.limit,
            filter=condition,
            params=self._choose_params(first),
        )

    def _choose_params(self, ask: VectorQuery) -> models.SearchParams | None:
        """None in local mode, which is always exact and warns about parameters."""
        if self._local:
            return None
        if ask.exact:
            return models.SearchParams(exact=True)
        # Codes select and full precision ranks; a graph search must look at more points than it returns.
        codes = models.QuantizationSearchParams(rescore=True, oversampling=2.0)
        return models.SearchParams(hnsw_ef=max(128, 2 * ask.limit), quantization=codes)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        translate: AbstractContextManager[None] = self._translate()
        with translate, _ignore_warnings():
            yield


def _make_params(layout: VectorLayout) -> models.VectorParams:
    codes = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
    sim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    return models.VectorParams(
        size=layout.size,
        distance=models.Distance.DOT,
        multivector_config=sim if layout.many else None,
        hnsw_config=None if layout.graph else models.HnswConfigDiff(m=0),
        quantization_config=models.ScalarQuantization(scalar=codes) if layout.int8 else None,
    )


def _check_free(folder: Path) -> None:
    """Raise if another process holds the lock. The client checks too, but then leaves its lock file open."""
    import portalocker  # here, because its import looks for writable folders

    if (folder / ".lock").exists():
        with (folder / ".lock").open("r+") as file:
            try:
                portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
            except portalocker.exceptions.LockException as error:
                raise busy_error(folder, "its lock is taken") from error


def _read_number(number: Any) -> Number:
    return number if isinstance(number, int) else str(number)


def _check_server(url: str, key: str | None) -> None:
    """Raise unless a Qdrant server answers and accepts the key."""
    if not url.startswith(("http://", "https://")):
        raise InputError(
            f"{url!r} is not the address of a server",
            expected="http://HOST:PORT or https://HOST:PORT",
            actual=url,
            fix="e.g. http://127.0.0.1:6333",
        )
    with translate_server_errors(url):
        answer = httpx.get(
            f"{url.rstrip('/')}/collections", headers={"api-key": key} if key else {}, timeout=ANSWER_SECONDS
        )
    if not answer.is_success:
        raise status_error(url, answer.status_code, answer.text)
    if "application/json" not in answer.headers.get("content-type", ""):
        raise ClusterError(
            f"the server at {url} is not a Qdrant server",
            expected="a list of collections, as JSON",
            actual=answer.text[:100],
            fix="check the address and the port (default 6333)",
        )


@contextmanager
def _ignore_warnings() -> Iterator[None]:
    """Ignore the client's warnings about large local collections (our choice) and keys over plain HTTP (see docs/)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Local mode is not recommended", category=UserWarning)
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection", category=UserWarning)
        yield

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
    Ask,
    FieldKind,
    Found,
    Number,
    Payload,
    Point,
    VectorLayout,
    tell_busy,
    tell_status,
    telling_folder,
    telling_server,
)
from resight.types import FloatArray

ANSWER_SECONDS = 5.0  # a server may take to answer at all
WORK_SECONDS = 120  # … and to carry out one request
PAGE = 1000
SCHEMAS = {"keyword": models.PayloadSchemaType.KEYWORD, "float": models.PayloadSchemaType.FLOAT}


def open_memory(name: str) -> "ClientPlace":
    return ClientPlace(QdrantClient(":memory:"), name, "memory", nullcontext, local=True)


def open_folder(folder: Path, name: str) -> "ClientPlace":
    """The client's local mode; one process at a time. Its files hold pickles: never open a folder of a stranger's."""
    with telling_folder(folder), _quiet():
        _check_free(folder)
        client = QdrantClient(path=str(folder))
    return ClientPlace(client, name, str(folder), lambda: telling_folder(folder), local=True)


def open_server(url: str, name: str, key_variable: str = KEY) -> "ClientPlace":
    """A server that answers and takes the key; otherwise an error within seconds."""
    key = os.environ.get(key_variable)
    _knock(url, key)
    with _quiet():
        client = QdrantClient(url=url, api_key=key, timeout=WORK_SECONDS, check_compatibility=False)
    return ClientPlace(client, name, url, lambda: telling_server(url), local=False)


class ClientPlace:
    def __init__(self, client: QdrantClient, name: str, where: str, telling: Any, *, local: bool) -> None:
        self.where = f"{name!r} in {where}"
        self._client = client
        self._name = name
        self._telling = telling
        self._local = local

    def layout(self) -> dict[str, VectorLayout] | None:
        with self._calling():
            if not self._client.collection_exists(self._name):
                return None
            vectors = self._client.get_collection(self._name).config.params.vectors
        named = vectors if isinstance(vectors, dict) else {"": vectors} if vectors else {}
        return {
            name: VectorLayout(int(found.size), many=found.multivector_config is not None)
            for name, found in named.items()
        }

    def create(self, layout: Mapping[str, VectorLayout]) -> None:
        with self._calling():
            self._client.create_collection(
                self._name, vectors_config={name: _describe(part) for name, part in layout.items()}
            )

    def index_payload(self, fields: Mapping[str, FieldKind]) -> None:
        if self._local:
            return
        with self._calling():
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
        with self._calling():
            self._client.upsert(self._name, made, wait=True)

    def remove(self, numbers: Sequence[Number]) -> None:
        with self._calling():
            self._client.delete(self._name, models.PointIdsList(points=list(numbers)), wait=True)

    def query(self, ask: Ask, condition: Any = None, *, payload: bool = False) -> list[Found]:
        with self._calling():
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
        with self._calling():
            found = self._client.retrieve(self._name, list(numbers), with_payload=False, with_vectors=[using])
        return {
            _read_number(point.id): np.asarray(point.vector[using], np.float32)
            for point in found
            if isinstance(point.vector, dict) and using in point.vector
        }

    def read_payload(self, number: Number) -> Payload | None:
        with self._calling():
            found = self._client.retrieve(self._name, [number], with_payload=True)
        return (found[0].payload or {}) if found else None

    def list_payloads(self, keys: Sequence[str]) -> Iterator[tuple[Number, Payload]]:
        offset = None
        while True:
            with self._calling():
                page, offset = self._client.scroll(self._name, limit=PAGE, offset=offset, with_payload=list(keys))
            yield from ((_read_number(point.id), point.payload or {}) for point in page)
            if offset is None:
                return

    def count(self) -> int:
        with self._calling():
            return int(self._client.count(self._name, exact=True).count)

    def finish(self) -> None:
        """Nothing: every change was waited for. A server goes on building its graph, and answers meanwhile."""

    def close(self) -> None:
        self._client.close()

    def _fetch_first(self, first: Ask | None, condition: Any) -> Any:
        if first is None:
            return None
        return models.Prefetch(
            query=first.rows.tolist(),
            using=first.using,
            limit=first.limit,
            filter=condition,
            params=self._choose_params(first),
        )

    def _choose_params(self, ask: Ask) -> models.SearchParams | None:
        """None in local mode, which is always exact and warns of parameters."""
        if self._local:
            return None
        if ask.exact:
            return models.SearchParams(exact=True)
        # Codes choose, full precision orders; a graph has to look at more than it is to give.
        codes = models.QuantizationSearchParams(rescore=True, oversampling=2.0)
        return models.SearchParams(hnsw_ef=max(128, 2 * ask.limit), quantization=codes)

    @contextmanager
    def _calling(self) -> Iterator[None]:
        telling: AbstractContextManager[None] = self._telling()
        with telling, _quiet():
            yield


def _describe(layout: VectorLayout) -> models.VectorParams:
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
    """Before the client does so: it would leave its lock file open where another process has it."""
    import portalocker  # which checks for folders that may be written to when it is imported

    if (folder / ".lock").exists():
        with (folder / ".lock").open("r+") as file:
            try:
                portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
            except portalocker.exceptions.LockException as error:
                raise tell_busy(folder, "its lock is taken") from error


def _read_number(number: Any) -> Number:
    return number if isinstance(number, int) else str(number)


def _knock(url: str, key: str | None) -> None:
    if not url.startswith(("http://", "https://")):
        raise InputError(
            f"{url!r} is not the address of a server",
            expected="http://HOST:PORT or https://HOST:PORT",
            actual=url,
            fix="e.g. http://127.0.0.1:6333",
        )
    with telling_server(url):
        answer = httpx.get(
            f"{url.rstrip('/')}/collections", headers={"api-key": key} if key else {}, timeout=ANSWER_SECONDS
        )
    if not answer.is_success:
        raise tell_status(url, answer.status_code, answer.text)
    if "application/json" not in answer.headers.get("content-type", ""):
        raise ClusterError(
            f"what answers at {url} is no Qdrant server",
            expected="a list of collections, as JSON",
            actual=answer.text[:100],
            fix="check the address and the port (6333, where nothing else was set)",
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the client says of sizes that we chose knowingly, and of keys over plain HTTP, which the docs do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Local mode is not recommended", category=UserWarning)
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection", category=UserWarning)
        yield

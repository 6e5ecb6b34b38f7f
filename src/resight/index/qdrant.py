"""Rows in Qdrant: one per image, or several, of which the best counts. `match` is as in index/rows/scoring.py.

Three settings choose where the points lie:

    (nothing set)    in the client's local mode, in memory, without a graph: a search compares all points. The client's
                     own files would be pickles that one process locks, so `open` loads the rows from vectors.npy
    edge = true      in a Qdrant Edge shard beside the other files, without a lock
    url = "…"        on a server, in a collection named after its content; deleting the index leaves it there

Also on disk: the files of index/rows. Score: ⟨q, x⟩ as in exact.py; with match = "mean" and tokens as in maxsim.py.
With `exact = false`, Edge and a server walk a graph (HNSW) instead of comparing all points.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import qdrant_client  # noqa: F401 - a missing client is an error as soon as a recipe chooses this index

from resight.errors import InputError
from resight.files.documents import load_json
from resight.index import Chunks
from resight.index.qdrant_backend.backend import KEY, Backend, Point, VectorLayout, batch_points, load_backend
from resight.index.qdrant_backend.row_search import RowSearcher
from resight.index.rows.row_files import Rows, RowWriter, damaged_index, open_rows
from resight.types import Descriptors

USING = "rows"
VARIABLE = re.compile(r"(RESIGHT_)?QDRANT[A-Z0-9_]*")


@dataclass(frozen=True)
class Config:
    url: str = ""  # URL of a server, or the environment variable that holds it; empty: no server
    key: str = KEY  # name of the environment variable that holds the server's API key
    edge: bool = False  # store points in a Qdrant Edge shard beside the index's other files
    exact: bool = True  # compare all points; false: Edge and servers search a graph (HNSW) instead
    match: Literal["best", "mean"] | None = None  # several query rows: best pair, or mean of row maxima; None: refuse

    def __post_init__(self) -> None:
        if self.url and self.edge:
            raise InputError("a server and Edge exclude each other", actual=self.url, fix="leave out url or edge")
        for name, value in (("key", self.key), ("url", "" if "://" in self.url else self.url)):
            if value and not VARIABLE.fullmatch(value):  # a stranger's recipe could send any other secret away
                raise InputError(
                    f"{name} names an environment variable that is not meant for Qdrant",
                    expected="a name that begins with RESIGHT_QDRANT or QDRANT",
                    actual=repr(value[:80]),
                    fix=f"put the value into {KEY if name == 'key' else 'RESIGHT_QDRANT_URL'}",
                )


def build(config: Config) -> "Qdrant":
    return Qdrant(config)


class Qdrant:
    divisible = True

    def __init__(self, config: Config) -> None:
        self._config = config

    def create(self, chunks: Chunks, folder: Path) -> RowSearcher:
        digest = hashlib.sha256(repr(self._config.exact).encode())
        with RowWriter(folder, vectors=self._is_local) as writer:
            for chunk in chunks():
                writer.add(chunk)
                for part in (repr(chunk.ids).encode(), chunk.owners.tobytes(), chunk.vectors.tobytes()):
                    digest.update(part)
        rows = writer.finish()
        dimensions = next((chunk.vectors.shape[1] for chunk in chunks()), 1)
        table = {"dimensions": dimensions, "name": f"resight-{digest.hexdigest()[:24]}"}
        (folder / "points.json").write_text(json.dumps(table), encoding="utf-8")
        if not self._is_local and len(rows):
            self._upload(chunks, rows, folder)
        return self.open(folder)

    def open(self, folder: Path) -> RowSearcher:
        rows = open_rows(folder)
        backend = self._open_backend(folder, rows) if len(rows) else None
        layout = _lay_out(rows, _read_table(folder)["dimensions"], graph=not self._config.exact)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        return RowSearcher(rows, backend, USING, layout, self._config.match, self._config.exact, size)

    @property
    def _is_local(self) -> bool:
        return not self._config.url and not self._config.edge

    def _open_backend(self, folder: Path, rows: Rows) -> Backend:
        if self._is_local:
            return _load_into_memory(rows, folder)
        backend, expected = self._connect(folder), int((rows.counts > 0).sum())
        actual = backend.count() if backend.layout() else 0
        if actual != expected:
            raise damaged_index(backend.where, f"{expected} points", f"{actual} points")
        return backend

    def _connect(self, folder: Path) -> Backend:
        backend: Backend
        if self._config.edge:
            backend = load_backend("edge").open_edge(folder / "shard", shared=True)
        else:
            url, name = find_url(self._config.url), _read_table(folder)["name"]
            backend = load_backend("client").open_server(url, name, self._config.key)
        return backend

    def _upload(self, chunks: Chunks, rows: Rows, folder: Path) -> None:
        """Upload the points. The collection's name comes from its content, so an interrupted upload can be repeated."""
        backend = self._connect(folder)
        if backend.layout() is None:
            backend.create({USING: _lay_out(rows, _read_table(folder)["dimensions"], graph=not self._config.exact)})
        for batch in batch_points(list_points(chunks(), _has_many(rows))):
            backend.upsert(batch)
        backend.finish()
        backend.close()


def find_url(text: str) -> str:
    """The URL itself, or the value of the environment variable of that name."""
    if "://" in text:
        return text
    if not (found := os.environ.get(text, "")):
        raise InputError(
            f"the environment variable {text} names no Qdrant server",
            expected="a URL in it, e.g. http://127.0.0.1:6333",
            actual="it is not set",
            fix=f"export {text}=URL, or give the URL itself",
        )
    return found


def list_points(chunks: Iterator[Descriptors], many: bool) -> Iterator[Point]:
    """One point per image with rows, numbered as the image; without `many`, its one row is a plain vector."""
    number = 0
    for chunk in chunks:
        limits = np.searchsorted(chunk.owners, np.arange(len(chunk.ids) + 1)).tolist()
        for name, begin, end in zip(chunk.ids, limits, limits[1:], strict=False):
            if end > begin:
                rows = np.asarray(chunk.vectors[begin:end], np.float32)
                yield Point(number, {USING: rows if many else rows[0]}, {"id": name})
            number += 1


def _read_table(folder: Path) -> dict[str, Any]:
    table: dict[str, Any] = load_json((folder / "points.json").read_text(encoding="utf-8"))
    return table


def _load_into_memory(rows: Rows, folder: Path) -> Backend:
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    if len(vectors) != len(rows):
        raise damaged_index(folder, f"{len(rows)} rows", f"{len(vectors)} rows")
    backend: Backend = load_backend("client").open_memory(USING)
    backend.create({USING: _lay_out(rows, vectors.shape[1], graph=False)})
    owners = np.repeat(np.arange(len(rows.ids), dtype=np.int32), rows.counts)
    for batch in batch_points(list_points(iter([Descriptors(tuple(rows.ids), vectors, owners)]), _has_many(rows))):
        backend.upsert(batch)
    return backend


def _lay_out(rows: Rows, dimensions: int, *, graph: bool) -> VectorLayout:
    return VectorLayout(dimensions, many=_has_many(rows), graph=graph)


def _has_many(rows: Rows) -> bool:
    """Whether some image has several rows."""
    return bool((rows.counts > 1).any())

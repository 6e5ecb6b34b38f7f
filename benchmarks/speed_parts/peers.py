"""Late interaction as others do it, each in its best form on one thread: tokens [N, K, d] and a query [Kq, d] in.

`list_libraries` gives scores [N]; `list_engines` gives the rows of the best ten. What is not installed is left out.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from resight.types import FloatArray

CHUNK = 256  # images at a time, which is faster than all at once: their products stay in the cache


def list_libraries(tokens: FloatArray, query: FloatArray) -> dict[str, Callable[[], FloatArray]]:
    makers = {
        "numpy": lambda: lambda: score_by_numpy(tokens, query),
        "torch": lambda: by_torch(find("torch"), tokens, query),
        "faiss": lambda: by_faiss(find("faiss"), tokens, query),
        "fast-maxsim": lambda: by_fast_maxsim(find("fast_maxsim"), tokens, query),
        "numkong": lambda: by_numkong(find("numkong"), tokens, query),
    }
    return keep_installed(makers)


def list_engines(tokens: FloatArray, query: FloatArray, scratch: Path) -> dict[str, Callable[[], list[int]]]:
    makers = {
        "LanceDB, flat": lambda: by_lancedb(find("lancedb"), tokens, query, scratch / "lance"),
        "Qdrant Edge, exact": lambda: by_qdrant(find("qdrant_edge"), tokens, query, scratch / "qdrant"),
    }
    return keep_installed(makers)


def keep_installed(makers: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    runs = {}
    for name, make in makers.items():
        try:
            runs[name] = make()
        except ImportError:
            print(f"({name} is not installed and left out)")
    return runs


def find(name: str) -> Any:
    return importlib.import_module(name)


def score_by_numpy(tokens: FloatArray, query: FloatArray) -> FloatArray:
    images, count, d = tokens.shape
    out = np.empty(images, np.float32)
    for start in range(0, images, CHUNK):
        products = tokens[start : start + CHUNK].reshape(-1, d) @ query.T
        out[start : start + CHUNK] = products.reshape(-1, count, len(query)).max(axis=1).mean(axis=1)
    return out


def by_torch(torch: Any, tokens: FloatArray, query: FloatArray) -> Callable[[], FloatArray]:
    torch.set_num_threads(1)
    images, count, d = tokens.shape
    there, wanted = torch.from_numpy(tokens), torch.from_numpy(query)

    def run() -> FloatArray:
        parts = (there[start : start + CHUNK] for start in range(0, images, CHUNK))
        best = [(part.reshape(-1, d) @ wanted.T).view(-1, count, len(query)).amax(1).mean(1) for part in parts]
        return np.asarray(torch.cat(best).numpy())

    return run


def by_faiss(faiss: Any, tokens: FloatArray, query: FloatArray) -> Callable[[], FloatArray]:
    faiss.omp_set_num_threads(1)
    images, count, d = tokens.shape

    def run() -> FloatArray:
        out = np.empty(images, np.float32)
        for start in range(0, images, CHUNK):
            part = tokens[start : start + CHUNK].reshape(-1, d)
            products = faiss.pairwise_distances(query, part, metric=faiss.METRIC_INNER_PRODUCT)
            out[start : start + CHUNK] = products.reshape(len(query), -1, count).max(axis=2).mean(axis=0)
        return out

    return run


def by_fast_maxsim(module: Any, tokens: FloatArray, query: FloatArray) -> Callable[[], FloatArray]:
    return lambda: np.asarray(module.maxsim_scores(query, tokens), np.float32) / np.float32(len(query))


def by_numkong(module: Any, tokens: FloatArray, query: FloatArray) -> Callable[[], FloatArray]:
    images, count, d = tokens.shape
    packed = module.dots_pack(query, dtype="f32")

    def run() -> FloatArray:
        products = np.asarray(module.dots_packed(tokens.reshape(-1, d), packed), dtype=np.float32)
        return np.asarray(products.reshape(images, count, -1).max(axis=1).mean(axis=1), np.float32)

    return run


def by_lancedb(lancedb: Any, tokens: FloatArray, query: FloatArray, folder: Path) -> Callable[[], list[int]]:
    """By cosine, the only distance of its multivectors: the same order for tokens of one length."""
    pyarrow = find("pyarrow")
    images, count, d = tokens.shape
    rows = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(tokens.reshape(-1)), d)
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(np.arange(images + 1, dtype=np.int32) * count), rows)
    columns = {"id": pyarrow.array(np.arange(images)), "vector": lists}
    table = lancedb.connect(folder).create_table("tokens", pyarrow.table(columns))

    def run() -> list[int]:
        found = table.search(query).distance_type("cosine").limit(10).select(["id", "_distance"]).to_arrow()
        return [int(row) for row in found["id"].to_pylist()]

    return run


def by_qdrant(edge: Any, tokens: FloatArray, query: FloatArray, folder: Path) -> Callable[[], list[int]]:
    multi = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    vectors = {"tokens": edge.EdgeVectorParams(tokens.shape[2], edge.Distance.Dot, multivector_config=multi)}
    folder.mkdir()
    shard = edge.EdgeShard.create(str(folder), edge.EdgeConfig(vectors=vectors, max_search_threads=1))
    for start in range(0, len(tokens), CHUNK):
        part = enumerate(tokens[start : start + CHUNK], start)
        shard.update(edge.UpdateOperation.upsert_points([edge.Point(row, {"tokens": image}) for row, image in part]))
    nearest = edge.Query.Nearest(query.tolist(), using="tokens")
    request = edge.QueryRequest(limit=10, query=nearest, params=edge.SearchParams(exact=True))
    return lambda: [int(point.id) for point in shard.query(request)]

"""What indexing takes: a few images, evenly spaced, are read and encoded, and the rest is multiplication.

In: a recipe, and images (or none: then pictures are generated). Out: a `Plan` for this machine (`estimate`); for many
machines its `Rates` go on to plan/cluster.py. The probe measures the time to encode an image, its rows to store, and
its share of the recipe's indexes. It builds indexes over copies of the encoded images, in two sizes; the difference is
the share of one more image, and fixed costs (a codebook, the start of a search) cancel out. Times are processor time,
so that other programs do not count, of one thread: a second thread that waits in a busy loop would count as work.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from resight import index as indexes
from resight.collection.add import LARGEST_BATCH
from resight.collection.image_list import ImageList
from resight.collection.indexes import create_index
from resight.collection.plan.cluster import Rates
from resight.data import image_files
from resight.encode.encoder import Encoder, encode_box
from resight.encode.regions import ARRAYS, chain_rows
from resight.errors import BoxError, ImageError, InputError
from resight.index import Chunks
from resight.search import rerankers
from resight.search.locate_boxes import require_token_branch
from resight.search.rerankers import Indexed
from resight.types import Choice, Descriptors, ImageRef, Picture, Query, Recipe

PROBES = 16
LARGEST = 8192  # copies in the larger index
SHARE = 4  # times fewer in the smaller one, which are enough to learn from
LARGEST_BYTES = 256_000_000  # of rows in the larger index
NOISE = 0.05  # between copies, so that no two are the same image
CHUNK = 256  # images that a store gives at a time
K, TIMES = 100, 9
SIZE, EDGED = (800, 600), 200  # of generated pictures, and the rectangles in each
STORE_MEMORY = 300_000_000  # what Lance takes while it writes and compacts (benchmarks/endurance.py: 676 MiB in all)
COMMIT_BYTES = 1500  # an image's metadata and its share of the store's own files
USUAL = 1000  # images, without a source and a number


@dataclass(frozen=True)
class Plan:
    images: int
    probed: int
    unreadable: int
    seconds: float
    seconds_an_image: float
    memory_bytes: int
    store_bytes: int
    index_bytes: int
    rates: Rates


@dataclass(frozen=True)
class IndexRates:
    """The cost of one more image in an index."""

    bytes: float
    build_core_seconds: float
    scan_core_seconds: float  # per query


@dataclass(frozen=True)
class Probe:
    images: int | None  # in the source; None without a source
    probed: int
    unreadable: int
    seconds: float  # of wall time, to read and encode an image here
    core_seconds: float
    row_bytes: float
    query_bytes: float  # that a shard receives
    indexes: tuple[IndexRates, ...]  # of the branches, then those of rerankers


def estimate(recipe: Recipe, source: Path | None, count: int | None = None) -> Plan:
    """Plan for the images of `source`, or for `count` like them; without a source the probe generates images."""
    found = probe(recipe, source)
    total = count or found.images or USUAL
    rates = find_rates(found)
    return Plan(
        images=total,
        probed=found.probed,
        unreadable=found.unreadable,
        seconds=found.seconds * total,
        seconds_an_image=found.seconds,
        memory_bytes=round(_peak_memory() + STORE_MEMORY + 3 * min(total, LARGEST_BATCH) * found.row_bytes),
        store_bytes=round(total * rates.store_bytes),
        index_bytes=round(total * rates.index_bytes),
        rates=rates,
    )


def find_rates(found: Probe) -> Rates:
    return Rates(
        encode_core_seconds=found.core_seconds,
        index_core_seconds=sum(index.build_core_seconds for index in found.indexes),
        scan_core_seconds=sum(index.scan_core_seconds for index in found.indexes),
        store_bytes=found.row_bytes + COMMIT_BYTES,
        index_bytes=sum(index.bytes for index in found.indexes),
        query_bytes=found.query_bytes,
    )


def probe(recipe: Recipe, source: Path | None) -> Probe:
    encoder = Encoder(recipe.branches)
    total, probes = _choose(source) if source else (None, make_pictures())
    encoded: list[tuple[Descriptors, ...]] = []
    query: Query | None = None
    unreadable, clock, processor = 0, 0.0, 0.0
    _encode_query(next(make_pictures()), encoder)  # loads the weights, which is not part of an image's time
    for one in probes:
        started, worked = time.perf_counter(), time.process_time()
        try:
            picture = one if isinstance(one, Picture) else image_files.read(one, max_side=encoder.max_side)
            encoded.append(encode_box(picture, picture.ref.box, encoder, "database"))
        except (ImageError, BoxError):
            unreadable += 1
        else:
            clock += time.perf_counter() - started
            processor += time.process_time() - worked
            query = query or _encode_query(picture, encoder)
    if query is None:
        raise InputError(
            f"none of the {unreadable} images of {source} that were tried can be read",
            expected="images",
            fix="`resight data check folder PATH` reports what is wrong with each",
        )
    return Probe(
        images=total,
        probed=len(encoded),
        unreadable=unreadable,
        seconds=clock / len(encoded),
        core_seconds=processor / len(encoded),
        row_bytes=sum(count_bytes(rows) for branches in encoded for rows in branches) / len(encoded),
        query_bytes=sum(
            count_bytes(rows)
            for rows, branch in zip(query.descriptors, recipe.branches, strict=True)
            if branch.weight > 0
        ),
        indexes=tuple(_measure(*part, encoded, query) for part in _list_indexes(recipe, query)),
    )


def count_bytes(rows: Descriptors) -> int:
    parts = (rows.vectors, rows.boxes, rows.weights, rows.points, rows.words, rows.seeds)
    return sum(part.nbytes for part in parts if part is not None)


def _choose(source: Path) -> tuple[int, Iterator[ImageRef]]:
    images = ImageList(source)
    total = sum(1 for _ in images.refs)
    if total == 0:
        raise InputError(f"no images in {source}", expected="a folder with images", fix="check the path")
    return total, islice(images.refs, 0, None, max(total // PROBES, 1))


def make_pictures() -> Iterator[Picture]:
    """Pictures of a usual size with soft light and hard edges, to plan before there are images.

    Learnt encoders keep nothing of pure noise: it is blank to them.
    """
    generator = np.random.default_rng(0)
    width, height = SIZE
    for number in range(PROBES // 2):
        light = np.zeros((height, width, 3), np.float32)
        for step in (200, 50, 20):
            coarse = generator.normal(size=(height // step, width // step, 3)).astype(np.float32)
            light += cv2.resize(coarse, SIZE, interpolation=cv2.INTER_CUBIC) * step**0.5
        low, high = light.min(), light.max()
        pixels = ((light - low) * (255 / (high - low))).astype(np.uint8)
        for x, y, w, h in generator.integers((0, 0, 5, 5), (width, height, 80, 80), (EDGED, 4)):
            pixels[y : y + h, x : x + w] = generator.integers(0, 256, 3)
        yield Picture(ImageRef(str(number), Path(str(number))), pixels, SIZE)


def _encode_query(picture: Picture, encoder: Encoder) -> Query:
    rows = encode_box(picture, None, encoder, "query")
    return Query(picture.ref.id, picture.size, (0, 0, *picture.size), rows)


def _list_indexes(recipe: Recipe, query: Query) -> Iterator[tuple[int, Choice, bool]]:
    """Every index of a collection of the recipe: its branch, its choice, and whether a query scans all of it."""
    for branch, part in enumerate(recipe.branches):
        if part.weight > 0:
            yield branch, part.index or recipe.index, True
    for choice in recipe.rerankers:
        reranker = rerankers.build(choice.name, **choice.settings)
        if isinstance(reranker, Indexed) and reranker.own_index is not None:
            yield require_token_branch(query), reranker.own_index, False


def _measure(
    branch: int, choice: Choice, scanned: bool, encoded: Sequence[tuple[Descriptors, ...]], query: Query
) -> IndexRates:
    bytes_each = max(1.0, sum(count_bytes(branches[branch]) for branches in encoded) / len(encoded))
    many = max(2 * SHARE, min(LARGEST, int(LARGEST_BYTES / bytes_each)))
    few = many // SHARE
    with threadpool_limits(1):
        small, large = (_build_and_search(choice, branch, encoded, query, count) for count in (few, many))
    size, build, scan = ((after - before) / (many - few) for before, after in zip(small, large, strict=True))
    # A cost that does not grow with images, such as a walk through a graph, may come out slightly negative.
    return IndexRates(max(size, 0.0), max(build, 0.0), max(scan, 0.0) if scanned else 0.0)


def _build_and_search(
    choice: Choice, branch: int, encoded: Sequence[tuple[Descriptors, ...]], query: Query, count: int
) -> tuple[float, float, float]:
    """Bytes of an index over `count` copies, core-seconds to build it, and to search it."""
    plugin = indexes.build(choice.name, **choice.settings)

    copies = [_join(list(_copy([rows[number] for rows in encoded], CHUNK))) for number in range(len(encoded[0]))]

    def read(number: int) -> Chunks:
        return lambda: _repeat(copies[number], count)

    with tempfile.TemporaryDirectory() as scratch:
        started = time.process_time()
        searcher = create_index(plugin, read, len(encoded[0]), branch, Path(scratch))
        built = time.process_time() - started
        size = sum(path.stat().st_size for path in Path(scratch).rglob("*") if path.is_file())
        asked = []
        for _ in range(TIMES):
            started = time.process_time()
            searcher.search(query.descriptors[branch], K)
            asked.append(time.process_time() - started)
    return size, built, min(asked)


def _copy(encoded: Sequence[Descriptors], count: int) -> Iterator[Descriptors]:
    """`count` images like these, each with noise on its vectors or other visual words, so that lists stay as short."""
    generator = np.random.default_rng(0)
    for number in range(count):
        rows = encoded[number % len(encoded)]
        vectors, words = rows.vectors, rows.words
        if vectors.dtype.kind == "f":
            vectors = (vectors + generator.normal(0, NOISE, vectors.shape)).astype(vectors.dtype)
        if words is not None and len(words):
            words = np.sort(generator.permutation(int(words.max()) + 1)[words]).astype(words.dtype)
        yield replace(rows, ids=(str(number),), vectors=vectors, words=words)


def _join(some: Sequence[Descriptors]) -> Descriptors:
    """Images one by one → one chunk, as a store yields them."""
    owners = np.repeat(np.arange(len(some), dtype=np.int32), [len(rows) for rows in some])
    return replace(chain_rows(some), ids=tuple(rows.ids[0] for rows in some), owners=owners)


def _repeat(chunk: Descriptors, count: int) -> Iterator[Descriptors]:
    """The same chunk under new ids, up to `count` images, which take no memory."""
    size = len(chunk.ids)
    for first in range(0, count, size):
        ids = tuple(str(first + number) for number in range(min(size, count - first)))
        end = int(np.searchsorted(chunk.owners, len(ids)))
        parts = {name: getattr(chunk, name) for name in ("vectors", "owners", *ARRAYS)}
        kept: dict[str, Any] = {name: None if part is None else part[:end] for name, part in parts.items()}
        yield replace(chunk, ids=ids, **kept)


def _peak_memory() -> int:
    """Peak memory of this process in bytes; 0 if the system does not report it."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

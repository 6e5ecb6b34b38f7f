"""Find candidate pairs: at most a few per image, without comparing all with all.

    words       images that share more keys of visual words than chance explains; also for mirrored key points
    dense       nearest neighbours by the mean of the stored rows, if a recipe has other rows
    shades      pictures whose coarse shades agree in one of the eight orientations of a square

In: two sides, which may be the same. Out: pairs of rows, each once. The search reads stored rows only, and its memory
grows with the number of images.

Buckets of words (locality-sensitive hashing): an inverted file of words alone is too slow for 200,000 queries, because
every image is in hundreds of long lists. Here a key is a word and BITS bits of the image's code for it, so lists are
2^BITS times shorter. The score is the number of keys that two images share beyond chance. Copies of paintings
share 184 of 587 (cropped), 82 of 750 (turned by 45°) or 65 of 823 (JPEG of quality 20) in the median; among a thousand
unrelated images the nearest shares 5. On disk: one int32 per word of each image, mapped.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.audit.dedup import dct_signature
from resight.audit.dedup.branches import Branches, build_descriptor, describe_words, pool, split_images, split_local
from resight.audit.dedup.dct_signature import mirror_features
from resight.audit.dedup.grey_thumbnails import Side
from resight.files.mapped import create_mapped
from resight.kernels.numpy_reference import join_ranges
from resight.types import Descriptors, FloatArray, IntArray
from resight.vectors import l2_normalise_exact

QUERIES, ROWS = 512, 16384  # 32 MB per block


def find_nearest(queries: FloatArray, rows: FloatArray, k: int) -> tuple[NDArray[np.int64], FloatArray]:
    """The k nearest of rows [m, D] to each query [n, D] by dot product, exact, in blocks: numbers, products [n, k]."""
    k = min(k, len(rows))
    found = np.zeros((len(queries), k), np.int64)
    products = np.full((len(queries), k), -np.inf, np.float32)
    for start in range(0, len(queries), QUERIES):
        part = slice(start, start + QUERIES)
        for first in range(0, len(rows), ROWS):
            block = queries[part] @ rows[first : first + ROWS].T
            some = min(k, block.shape[1])
            best = np.argpartition(-block, some - 1, axis=1)[:, :some]
            every = np.concatenate([products[part], np.take_along_axis(block, best, axis=1)], axis=1)
            numbers = np.concatenate([found[part], best + first], axis=1)
            order = np.argsort(-every, axis=1, kind="stable")[:, :k]
            products[part] = np.take_along_axis(every, order, axis=1)
            found[part] = np.take_along_axis(numbers, order, axis=1)
    return found, products


BITS = 8
Chunks = Callable[[], Iterator[Descriptors]]  # iterated twice: count, then fill


@dataclass(frozen=True)
class WordBuckets:
    starts: IntArray  # [keys + 1]
    images: NDArray[np.int32]  # [rows] numbers of images, in the order of the chunks
    count: int  # images

    def count_shared(self, words: NDArray[np.int32], codes: NDArray[np.uint8]) -> NDArray[np.int32]:
        """The number of keys that each image shares with a query [count]."""
        keys = make_keys(words, codes)
        keys = keys[keys < len(self.starts) - 1]
        lengths = self.starts[keys + 1] - self.starts[keys]
        slots = join_ranges(self.starts[keys], lengths)
        return np.bincount(self.images[slots], minlength=self.count).astype(np.int32)


def build_buckets(chunks: Chunks, file: Path) -> WordBuckets:
    counts = np.zeros(0, np.int64)
    images = 0
    for chunk in chunks():
        keys = make_keys(_words(chunk), chunk.vectors)
        counts = _add(counts, np.bincount(keys, minlength=len(counts)))
        images += len(chunk.ids)
    starts = np.concatenate([[0], np.cumsum(counts)])
    postings = create_mapped(file, (max(int(starts[-1]), 1),), np.int32)
    slots, first = starts[:-1].copy(), 0
    for chunk in chunks():
        keys = make_keys(_words(chunk), chunk.vectors)
        order = np.argsort(keys, kind="stable")
        found, begins, often = np.unique(keys[order], return_index=True, return_counts=True)
        within = np.arange(len(keys)) - np.repeat(begins, often)
        postings[np.repeat(slots[found], often) + within] = chunk.owners[order] + first
        slots[found] += often
        first += len(chunk.ids)
    postings.flush()
    return WordBuckets(starts, np.load(file, mmap_mode="r"), images)


def make_keys(words: NDArray[np.int32], codes: NDArray[np.uint8]) -> IntArray:
    """Words [n] and codes [n, bytes] → [n] int64. The bits are spread evenly over the code."""
    bits = np.unpackbits(codes, axis=1) if len(codes) else np.zeros((0, 8 * codes.shape[1]), np.uint8)
    chosen = bits[:, np.linspace(0, bits.shape[1] - 1, BITS).astype(int)].astype(np.int64)
    return np.asarray((words.astype(np.int64) << BITS) + chosen @ (1 << np.arange(BITS)), np.int64)


def _words(rows: Descriptors) -> NDArray[np.int32]:
    return rows.words if rows.words is not None else np.zeros(len(rows), np.int32)


def _add(first: IntArray, second: IntArray) -> IntArray:
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


MANY = 12  # the best images, which may be true partners, do not count towards chance
Progress = Callable[[int, int], None]
Found = Iterator[tuple[int, NDArray[np.int64]]]  # row of the first side, rows of the second


@dataclass(frozen=True)
class Depth:
    """Most candidates of each kind per image."""

    words: int = 12
    mirrored: int = 4
    dense: int = 4
    shades: int = 3
    least_dense: float = 0.5  # cosine after subtracting the mean of all images
    least_shades: float = 0.85  # correlation


@dataclass(frozen=True)
class Candidates:
    rows: NDArray[np.int32]  # [n, 2] rows of the first and the second side; within one side, the smaller first
    mirrored: NDArray[np.bool_]  # [n] whether to verify the pair mirrored


def find_candidates(
    one: Side, two: Side, branches: Branches, depth: Depth, scratch: Path, progress: Progress | None = None
) -> Candidates:
    found: list[NDArray[np.int64]] = [np.zeros((0, 3), np.int64)]
    searches = _search(one, two, branches, depth, scratch, progress) if len(one) and len(two) else ()
    for mirrored, pairs in searches:
        if one is two:
            pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
        found.append(np.column_stack([pairs, np.full(len(pairs), mirrored)]))
    unique = np.unique(np.concatenate(found), axis=0)
    return Candidates(unique[:, :2].astype(np.int32), unique[:, 2].astype(np.bool_))


def _search(
    one: Side, two: Side, branches: Branches, depth: Depth, scratch: Path, progress: Progress | None
) -> Iterator[tuple[bool, NDArray[np.int64]]]:
    yield from _compare_shades(one, two, depth)
    for branch in branches.dense:
        yield False, _compare_means(one, two, branch, depth)
    if branches.words is not None:
        buckets = build_buckets(partial(two.source.descriptors, branches.words, two.ids), scratch / "words.npy")
        yield False, _collect(_share_words(one, buckets, branches.words, depth.words, one is two, progress))
        if branches.mirrors:
            yield True, _collect(_share_mirrored(one, buckets, branches, depth.mirrored, one is two, progress))


def _compare_shades(one: Side, two: Side, depth: Depth) -> Iterator[tuple[bool, NDArray[np.int64]]]:
    queries, rows = (dct_signature.describe(side.thumbnails.grey) for side in (one, two))
    for mirrored, oriented in dct_signature.orient(queries):
        nearest, products = find_nearest(oriented, rows, depth.shades + (one is two))
        yield mirrored, _keep(nearest, products >= depth.least_shades)


def _compare_means(one: Side, two: Side, branch: int, depth: Depth) -> NDArray[np.int64]:
    queries, rows = pool(one.source, branch, one.ids), pool(two.source, branch, two.ids)
    usual = rows.mean(axis=0)  # common to all images, so uninformative
    queries, rows = (
        l2_normalise_exact(vectors - usual, floor=1e-6) * np.asarray(vectors.any(axis=1))[:, None]
        for vectors in (queries, rows)
    )
    nearest, products = find_nearest(queries, rows, depth.dense + (one is two))
    return _keep(nearest, products >= depth.least_dense)


def _share_words(
    one: Side, buckets: WordBuckets, branch: int, most: int, itself: bool, progress: Progress | None
) -> Found:
    """Images that share words. `itself`: the buckets hold the same side."""
    done = 0
    for rows in one.source.descriptors(branch, one.ids):
        for _, part in split_images(rows):
            assert rows.words is not None
            shared = buckets.count_shared(rows.words[part], rows.vectors[part])
            yield done, choose_sharing(shared, most, done if itself else None)
            done += 1
        if progress:
            progress(done, len(one.ids))


def _share_mirrored(
    one: Side, buckets: WordBuckets, branches: Branches, most: int, itself: bool, progress: Progress | None
) -> Found:
    assert branches.words is not None and branches.local is not None
    descriptor = build_descriptor(one.source.recipe, branches.words)
    done = 0
    for chunk in one.source.descriptors(branches.local, one.ids):
        for image in split_local(chunk):
            words = describe_words(mirror_features(image, one.outlines[done]), descriptor)
            assert words.words is not None
            shared = buckets.count_shared(words.words, words.vectors)
            yield done, choose_sharing(shared, most, done if itself else None)
            done += 1
        if progress:
            progress(done, len(one.ids))


def choose_sharing(shared: NDArray[np.int32], most: int, itself: int | None = None) -> NDArray[np.int64]:
    """Images that share more keys than chance explains: the expected number of such images is below 1.

    In: the number of keys that each image shares [n], and the row of the image itself, if any. Chance is the mean of
    the others without the best MANY: in a small collection true partners would raise it above themselves.
    """
    rows = np.flatnonzero(shared)
    rows = rows[rows != itself]
    counts = shared[rows]
    images = len(shared) - (itself is not None)
    usual = np.partition(counts, len(counts) - MANY)[:-MANY] if len(counts) > MANY else counts[:0]
    least = exceed_chance(float(usual.sum()) / max(images - MANY, 1), images)
    rows, counts = rows[counts >= least], counts[counts >= least]
    if len(rows) > most:
        rows = rows[counts >= np.partition(counts, len(counts) - most)[len(counts) - most]]
    return np.asarray(rows[np.argsort(-shared[rows], kind="stable")][:most], np.int64)


def exceed_chance(mean: float, images: int) -> int:
    """The smallest count q with images · P(Poisson(mean) ≥ q) < 1; 4 at least."""
    below, term, count = 0.0, np.exp(-mean), 0
    while images * (1 - below) >= 1 and count < 1000:
        below += term
        count += 1
        term *= mean / count
    return max(count, 4)


def _collect(found: Found) -> NDArray[np.int64]:
    parts = [np.column_stack([np.full(len(rows), row, np.int64), rows]) for row, rows in found]
    return np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)


def _keep(nearest: NDArray[np.int64], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    rows, columns = np.nonzero(kept)
    return np.column_stack([rows, nearest[rows, columns]])

"""Which images might show the same thing: at most a few for each, found without comparing all with all.

    words       images that share more keys of visual words than chance explains; also for the mirrored key points
    dense       the nearest by the mean of the stored rows, where a recipe has other rows
    shades      pictures whose coarse shades agree in one of the eight positions of a square

In: two sides, which may be the same. Out: pairs of rows, each once. Nothing is encoded again, and what is held grows
with the number of images.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.audit import symmetries
from resight.audit.branches import Branches, build_descriptor, describe_words, pool, split_images, split_local
from resight.audit.mirror import mirror_features
from resight.audit.nearest import find_nearest
from resight.audit.side import Side
from resight.audit.word_lists import WordLists, build_lists

MANY = 12  # images that may be real partners, and do not tell what chance gives
Progress = Callable[[int, int], None]
Found = Iterator[tuple[int, NDArray[np.int64]]]  # row of the first side, rows of the second


@dataclass(frozen=True)
class Depth:
    """How many of each kind an image may have."""

    words: int = 12
    mirrored: int = 4
    dense: int = 4
    shades: int = 3
    least_dense: float = 0.5  # of the cosine, once the mean of all images is taken away
    least_shades: float = 0.85  # of the correlation


@dataclass(frozen=True)
class Candidates:
    rows: NDArray[np.int32]  # [n, 2] of the first side and of the second; within one side, the first is the smaller
    mirrored: NDArray[np.bool_]  # [n] the second shows the first as in a mirror, if it does


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
        lists = build_lists(partial(two.source.descriptors, branches.words, two.ids), scratch / "words.npy")
        yield False, _collect(_share_words(one, lists, branches.words, depth.words, one is two, progress))
        if branches.mirrors:
            yield True, _collect(_share_mirrored(one, lists, branches, depth.mirrored, one is two, progress))


def _compare_shades(one: Side, two: Side, depth: Depth) -> Iterator[tuple[bool, NDArray[np.int64]]]:
    queries, rows = (symmetries.describe(side.thumbnails.grey) for side in (one, two))
    for mirrored, laid in symmetries.lay(queries):
        nearest, products = find_nearest(laid, rows, depth.shades + (one is two))
        yield mirrored, _keep(nearest, products >= depth.least_shades)


def _compare_means(one: Side, two: Side, branch: int, depth: Depth) -> NDArray[np.int64]:
    queries, rows = pool(one.source, branch, one.ids), pool(two.source, branch, two.ids)
    usual = rows.mean(axis=0)  # what all have in common says nothing
    queries, rows = (
        _normalise(vectors - usual) * np.asarray(vectors.any(axis=1))[:, None] for vectors in (queries, rows)
    )
    nearest, products = find_nearest(queries, rows, depth.dense + (one is two))
    return _keep(nearest, products >= depth.least_dense)


def _share_words(one: Side, lists: WordLists, branch: int, most: int, itself: bool, progress: Progress | None) -> Found:
    """`itself`: the lists are of the same side."""
    done = 0
    for rows in one.source.descriptors(branch, one.ids):
        for _, part in split_images(rows):
            assert rows.words is not None
            shared = lists.count_shared(rows.words[part], rows.vectors[part])
            yield done, choose_sharing(shared, most, done if itself else None)
            done += 1
        if progress:
            progress(done, len(one.ids))


def _share_mirrored(
    one: Side, lists: WordLists, branches: Branches, most: int, itself: bool, progress: Progress | None
) -> Found:
    assert branches.words is not None and branches.local is not None
    descriptor = build_descriptor(one.source.recipe, branches.words)
    done = 0
    for chunk in one.source.descriptors(branches.local, one.ids):
        for image in split_local(chunk):
            words = describe_words(mirror_features(image, one.outlines[done]), descriptor)
            assert words.words is not None
            shared = lists.count_shared(words.words, words.vectors)
            yield done, choose_sharing(shared, most, done if itself else None)
            done += 1
        if progress:
            progress(done, len(one.ids))


def choose_sharing(shared: NDArray[np.int32], most: int, itself: int | None = None) -> NDArray[np.int64]:
    """Images that share more keys than chance gives to any: the expected number of such images is below 1.

    In: how many keys each image shares [n], and which of them is the image itself, if any. What chance gives is the
    mean of the others but for the best MANY: in a small collection real partners would raise it above themselves.
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


def _normalise(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6))

"""Code books: the centres of visual words.

A code book file is an .npz with `centres`: [k, D] float16, or [k, bytes] uint8 where features are bits, compared by how
many differ. It may also have `gap` (see Codebook) and the nodes of a vocabulary tree. The package has two generic ones
for RootSIFT (256 words for VLAD, 4,096 for ASMK), made by `benchmarks/make_codebooks.py` from photos in Python
packages; `resight codebook` learns one from the images of a collection.
"""

import io
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from resight import kmeans
from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.files.fingerprint import fingerprint
from resight.kernels import dispatch
from resight.types import FloatArray

if TYPE_CHECKING:  # most code books have no tree
    from resight.encode.vocabulary_tree import Tree

SHIPPED = Path(__file__).parent / "descriptors"
MOST_IN_KERNEL = 16  # words per row that the compiled kernel finds
GAP_ROWS = 10_000  # from which the gap is measured


@dataclass(frozen=True)
class Codebook:
    centres: NDArray[Any]  # [k, D] float32, or [k, bytes] uint8
    fingerprint: str
    tree: "Tree | None" = None
    gap: float | None = None  # mean of the squared distance to the second nearest word minus that to the nearest

    @property
    def is_binary(self) -> bool:
        return self.centres.dtype == np.uint8

    def assign(self, vectors: NDArray[Any], count: int = 1) -> NDArray[np.int32]:
        """The `count` nearest words of each row of vectors [n, D], nearest first: [n, count] int32."""
        return self.find_nearest(vectors, count)[0]

    def find_nearest(self, vectors: NDArray[Any], count: int) -> tuple[NDArray[np.int32], FloatArray]:
        """The `count` nearest words of each row, and their squared distances (for bits: the number that differ)."""
        self._check(vectors)
        count = min(count, len(self.centres))
        if self.tree is not None:
            from resight.encode.vocabulary_tree import descend

            return descend(as_numbers(vectors), self.tree, self._nodes, self._numbers, count)
        return self._words.find_nearest(as_numbers(vectors), count)

    @cached_property
    def _numbers(self) -> FloatArray:
        return as_numbers(self.centres)

    @cached_property
    def _words(self) -> "Words":
        return Words(self._numbers)

    @cached_property
    def _nodes(self) -> list[FloatArray]:
        return [as_numbers(nodes) for nodes in self.tree.nodes] if self.tree else []

    def _check(self, vectors: NDArray[Any]) -> None:
        if vectors.shape[1] != self.centres.shape[1] or (vectors.dtype == np.uint8) != self.is_binary:
            raise InputError(
                "the code book does not fit the encoder",
                expected=f"features of {_format_kind(self.centres)}",
                actual=_format_kind(vectors),
                fix="learn one for this encoder: `resight codebook IMAGES --encoder NAME --out FILE.npz`",
            )


class Words:
    """The centres of a code book, prepared for a compiled kernel, if there is one.

    The kernel compares bytes, with a bound of how much that may be wrong, and then in float32 what the bound leaves.
    """

    def __init__(self, centres: FloatArray) -> None:
        self.centres = np.ascontiguousarray(centres, np.float32)  # [k, D]
        largest = np.maximum(np.abs(self.centres).max(axis=1, initial=0), 1e-30)
        self._steps = np.asarray(largest / 127, np.float32)
        self._codes = np.rint(self.centres / self._steps[:, None]).astype(np.int8)
        self._halves = np.square(self.centres).sum(axis=1) / 2
        self._longest = float(np.sqrt(2 * self._halves.max(initial=0)))
        self._slack = float(np.linalg.norm(self.centres - self._codes * self._steps[:, None], axis=1).max(initial=0))

    def find_nearest(self, rows: FloatArray, count: int = 1) -> tuple[NDArray[np.int32], FloatArray]:
        """The `count` nearest centres of each row, nearest first: numbers [n, count], squared distances [n, count]."""
        kernel = getattr(dispatch.native(), "nearest_words", None)  # compiled kernels of an earlier build lack it
        d = self.centres.shape[1]
        if kernel is None or count > MOST_IN_KERNEL or d % 4 or rows.dtype != np.float32 or not np.isfinite(rows).all():
            return kmeans.find_nearest(rows, self.centres, count)
        rows = np.ascontiguousarray(rows)
        numbers, closeness = np.empty((len(rows), count), np.int32), np.empty((len(rows), count), np.float32)
        known = (self.centres, self._codes, self._steps, self._halves, d, self._longest, self._slack)
        kernel(rows, *known, count, dispatch.has_vnni(), numbers, closeness)
        return numbers, np.maximum(np.square(rows).sum(axis=1, keepdims=True) - 2 * closeness, 0)


def as_numbers(rows: NDArray[Any]) -> FloatArray:
    """Bits as 0 and 1: the squared distance of such rows is the number of bits that differ."""
    return np.unpackbits(rows, axis=1).astype(np.float32) if rows.dtype == np.uint8 else np.asarray(rows, np.float32)


def load(path: Path | None, shipped: str) -> Codebook:
    """The code book at `path`, or the shipped one of that name."""
    source = path or SHIPPED / f"{shipped}.npz"
    try:
        # From memory: numpy leaves the file open where the archive is damaged.
        with np.load(io.BytesIO(source.read_bytes()), allow_pickle=False) as archive:
            held = dict(archive)
        levels = range(sum(name.startswith("starts_") for name in held))
        nodes = tuple(_as_stored(held[f"nodes_{level}"]) for level in levels)
        starts = tuple(held[f"starts_{level}"].astype(np.int64) for level in levels)
        return make(
            _as_stored(held["centres"]),
            _make_tree(nodes, starts) if levels else None,
            float(held["gap"]) if "gap" in held else None,
        )
    except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{source} is not a code book",
            expected="an .npz file with the array 'centres' [words, dimensions]",
            actual=str(error),
            fix="make one with `resight codebook IMAGES --words N --out FILE.npz`",
        ) from error


def save(codebook: Codebook, path: Path) -> None:
    arrays: dict[str, Any] = {"centres": _to_store(codebook.centres)}
    if codebook.gap is not None:
        arrays["gap"] = np.float64(codebook.gap)
    if codebook.tree is not None:
        for level, (nodes, starts) in enumerate(zip(codebook.tree.nodes, codebook.tree.starts, strict=True)):
            arrays |= {f"nodes_{level}": _to_store(nodes), f"starts_{level}": starts}
    with write_atomic(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def make(centres: NDArray[Any], tree: "Tree | None" = None, gap: float | None = None) -> Codebook:
    if centres.ndim != 2 or 0 in centres.shape or not (np.abs(centres) < np.finfo(np.float16).max).all():
        raise InputError(
            "not a code book",
            expected="finite centres [words, dimensions], below 65,504",
            actual=f"an array of shape {centres.shape}",
            fix="make one with `resight codebook IMAGES --words N --out FILE.npz`",
        )
    centres = _as_stored(_to_store(centres))
    if tree is not None:
        tree = _make_tree(tuple(_as_stored(_to_store(nodes)) for nodes in tree.nodes), tree.starts)
    parts = [centres, *((*tree.nodes, *tree.starts) if tree else ())]
    digest = fingerprint(b"".join(part.tobytes() for part in parts), 12)
    return Codebook(centres, digest, tree, gap)


def learn(vectors: NDArray[Any], words: int, seed: int = 0, rounds: int = 20, branching: int | None = None) -> Codebook:
    """k-means of vectors [n, D] (for bits [n, bytes] uint8: k-majority) into `words` centres, or a tree of them."""
    if len(vectors) < words:
        raise InputError(
            f"too few local features for {words} words",
            expected=f"at least {words}",
            actual=str(len(vectors)),
            fix="give more images or ask for fewer words",
        )
    random, is_binary = np.random.default_rng(seed), vectors.dtype == np.uint8
    rows = np.ascontiguousarray(vectors if is_binary else vectors.astype(np.float32, copy=False))
    find: Any = kmeans.find_majorities if is_binary else kmeans.find_centres
    tree = None
    if branching is None or branching >= words:
        centres = find(rows, words, rounds, random)
    else:
        nearest: Any = kmeans.assign_codes if is_binary else kmeans.assign_many
        from resight.encode.vocabulary_tree import grow

        centres, tree = grow(rows, words, branching, rounds, random, find, nearest)
    book = make(centres, tree)
    return Codebook(book.centres, book.fingerprint, book.tree, _measure_gap(book, rows, random))


def _measure_gap(book: Codebook, rows: NDArray[Any], random: np.random.Generator) -> float | None:
    if len(book.centres) == 1:
        return None
    _, squares = book.find_nearest(rows[random.permutation(len(rows))[:GAP_ROWS]], 2)
    return float((squares[:, 1] - squares[:, 0]).mean())


def _to_store(rows: NDArray[Any]) -> NDArray[Any]:
    return rows if rows.dtype == np.uint8 else rows.astype(np.float16)


def _as_stored(rows: NDArray[Any]) -> NDArray[Any]:
    """The rows as a loaded file has them."""
    return rows if rows.dtype == np.uint8 else rows.astype(np.float32)


def _format_kind(rows: NDArray[Any]) -> str:
    return f"{8 * rows.shape[1]} bits" if rows.dtype == np.uint8 else f"{rows.shape[1]} dimensions"


def _make_tree(nodes: tuple[NDArray[Any], ...], starts: tuple[NDArray[np.int64], ...]) -> "Tree":
    from resight.encode.vocabulary_tree import Tree

    return Tree(nodes, starts)

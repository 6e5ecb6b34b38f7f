"""Vocabulary trees: the word of a feature takes `branching` comparisons per level, instead of one per word.

In: rows, the number of words, the number of children per node. Out: the words, and a Tree that leads to them. k-means
(k-majority where rows are bits) splits every node by its own rows, and the words are divided among its children in
proportion to their rows. Nistér and Stewénius, CVPR 2006. A node with one word continues through the levels as its own
only child, so that all words lie on the last level.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray, IntArray

Rows = NDArray[Any]
Find = Callable[[Rows, int, int, np.random.Generator], Rows]
Nearest = Callable[[Rows, Rows], NDArray[np.int64]]
NUMBERS_AT_ONCE = 1 << 24  # of nodes, compared with rows


@dataclass(frozen=True)
class Tree:
    """Levels from the top; the words themselves are the last level and not included."""

    nodes: tuple[Rows, ...]  # [m, D] float32, or packed bits
    starts: tuple[IntArray, ...]  # [m + 1]: node i has the nodes starts[i] to starts[i + 1] of the next level


@dataclass(frozen=True)
class _Node:
    centre: Rows
    members: NDArray[np.intp]
    words: int


def grow(
    rows: Rows, words: int, branching: int, rounds: int, random: np.random.Generator, find: Find, nearest: Nearest
) -> tuple[Rows, Tree]:
    level = _split(_Node(rows[0], np.arange(len(rows)), words), rows, branching, rounds, random, find, nearest)
    nodes, starts = [], []
    while any(node.words > 1 for node in level):
        below = [_split(node, rows, branching, rounds, random, find, nearest) for node in level]
        nodes.append(np.stack([node.centre for node in level]))
        starts.append(np.concatenate([[0], np.cumsum([len(children) for children in below])]).astype(np.int64))
        level = [child for children in below for child in children]
    return np.stack([node.centre for node in level]), Tree(tuple(nodes), tuple(starts))


def descend(
    vectors: FloatArray, tree: Tree, nodes: Sequence[FloatArray], words: FloatArray, count: int
) -> tuple[NDArray[np.int32], FloatArray]:
    """The `count` nearest words that the tree finds [n, count], nearest first, and their squared distances.

    Each level keeps the `count` nearest nodes. `nodes` are those of the tree, and `words` its words, as numbers.
    """
    levels = [*nodes, words]
    found = np.zeros((len(vectors), count), np.int32)
    squares = np.zeros((len(vectors), count), np.float32)
    widest = max([len(levels[0]), *(count * int(np.diff(starts).max()) for starts in tree.starts)])
    step = max(NUMBERS_AT_ONCE // (widest * vectors.shape[1]), 1)
    for begin in range(0, len(vectors), step):
        part = vectors[begin : begin + step]
        chosen, distances = _choose(part, levels[0], np.tile(np.arange(len(levels[0])), (len(part), 1)), count)
        for below, starts in zip(levels[1:], tree.starts, strict=True):
            chosen, distances = _choose(part, below, _list_children(chosen, starts), count)
        found[begin : begin + step], squares[begin : begin + step] = chosen, distances
    return found, squares


def _split(
    node: _Node, rows: Rows, branching: int, rounds: int, random: np.random.Generator, find: Find, nearest: Nearest
) -> list[_Node]:
    if node.words == 1:
        return [node]
    own = rows[node.members]
    centres = find(own, min(branching, node.words), rounds, random)
    belongs = nearest(own, centres)
    sizes = np.bincount(belongs, minlength=len(centres))
    held = np.flatnonzero(sizes)
    if len(held) == 1:  # all rows are equal
        return [_Node(centres[held[0]], part, 1) for part in np.array_split(node.members, node.words)]
    shares = _divide_words(node.words, sizes[held])
    return [
        _Node(centres[child], node.members[belongs == child], share)
        for child, share in zip(held.tolist(), shares, strict=True)
    ]


def _divide_words(words: int, sizes: NDArray[np.int64]) -> list[int]:
    """Words for each child: by its share of the rows, at least one, at most one per row."""
    shares = np.maximum(words * sizes // sizes.sum(), 1)
    while shares.sum() != words:
        missing = np.sign(words - shares.sum())
        due = words * sizes / sizes.sum() - shares
        due[(shares >= sizes) if missing > 0 else (shares <= 1)] = -missing * np.inf
        shares[np.argmax(missing * due)] += missing
    return [int(share) for share in shares]


def _list_children(chosen: NDArray[np.int64], starts: IntArray) -> NDArray[np.int64]:
    """The children of each row's nodes [n, c × the most children of a node]; -1 where a node has fewer."""
    most = int(np.diff(starts).max())
    children = starts[:-1, None] + np.arange(most)
    children[children >= starts[1:, None]] = -1
    return np.where(chosen[..., None] < 0, -1, children[chosen]).reshape(len(chosen), -1)


def _choose(
    vectors: FloatArray, nodes: FloatArray, candidates: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], FloatArray]:
    differences = nodes[candidates] - vectors[:, None]
    squares = np.einsum("ncd,ncd->nc", differences, differences)
    squares[candidates < 0] = np.inf
    if squares.shape[1] < count:
        padding = ((0, 0), (0, count - squares.shape[1]))
        squares = np.pad(squares, padding, constant_values=np.inf)
        candidates = np.pad(candidates, padding, constant_values=-1)
    order = np.argsort(squares, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(squares, order, axis=1)

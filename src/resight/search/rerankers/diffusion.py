"""Diffusion: similarity to the query spreads along the links between the candidates.

    a_ij = max(0, s_ij)^power where i and j are among each other's `links` nearest, else 0; a_ii = 0
    S    = D^(-1/2) A D^(-1/2), D the row sums
    y_i  = max(0, s(q, i))^power for the `starts` candidates nearest the query, else 0
    (I − decay · S) f = y, by conjugate gradients; f is divided by its maximum

s is the dot product of two images' vectors; with regions, that of their best pair. Vectors of all images have much in
common, which would link everything: the mean of the candidates is subtracted first. Adds the signal `diffusion`, f,
which `balance` blends with the previous score (`rescore`). Candidates without a link have f = 0; with balance = 0 they
keep their order below the others.

A wrong start spreads as well as a right one. So the defaults start at the best candidate alone and give the previous
score half of the weight: more starts find more if every instance is in many images, and lose if it is in few. At most
2,000 candidates, so that the matrix stays at 32 MB; with r regions per image the products take candidates² · r² · D
steps.
A. Iscen et al., Efficient diffusion on region manifolds, 2017.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.plugins import check_range
from resight.search.gallery import Gallery
from resight.search.rescoring import read_vectors, require_vector_branch, rescore
from resight.types import FloatArray, Query, Ranking

MOST = 2000
BLOCK_BYTES = 64 << 20  # of similarities between rows at a time
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Config:
    candidates: int = 200  # first images of the ranking to score again, at most 2,000
    links: int = 10  # nearest neighbours per candidate; two are linked if each is among the other's
    starts: int = 1  # candidates nearest the query, from which similarity spreads
    power: float = 3.0  # exponent of similarities; higher favours strong links
    decay: float = 0.5  # how far similarity spreads along links: 0 (not at all) to 0.9999
    balance: float = 0.5  # weight of the previous score in the blend, 0 to 1; 0: diffusion alone
    steps: int = 20  # most steps of the solver (conjugate gradients)

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 0, MOST)
        check_range("links", self.links, 1, MOST)
        check_range("starts", self.starts, 1, MOST)
        check_range("balance", self.balance, 0, 1)
        check_range("power", self.power, 0, 100)
        check_range("decay", self.decay, 0, 0.9999)
        check_range("steps", self.steps, 1, 10_000)


def build(config: Config) -> "Diffusion":
    return Diffusion(config)


class Diffusion:
    def __init__(self, config: Config) -> None:
        self.candidates = config.candidates
        self.signals: tuple[str, ...] = ("diffusion",)
        self._config = config

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = require_vector_branch(query, "diffusion")
        looked_at = ranking.ids[: self.candidates]
        if not looked_at:
            return ranking
        images = list(read_vectors(gallery, branch, looked_at))
        (mine,) = compare([np.asarray(query.descriptors[branch].vectors, np.float32)], images)
        rest = subtract_mean(images)
        links = link(compare(rest, rest), self._config.links, self._config.power)
        spread = diffuse(links, start(mine, self._config), self._config)
        found = dict(zip(looked_at, (spread / max(float(spread.max()), 1e-12)).tolist(), strict=True))
        return rescore(ranking, found, "diffusion", self._config.balance)


def subtract_mean(images: Sequence[FloatArray]) -> list[FloatArray]:
    """Rows of images [r, D] each without the mean of all rows, of unit length; a row that is the mean becomes 0."""
    mean = np.concatenate(images).mean(axis=0, dtype=np.float64) if sum(map(len, images)) else 0.0
    rest = [rows - mean for rows in images]
    lengths = [np.linalg.norm(rows, axis=1, keepdims=True) for rows in rest]
    return [
        np.asarray(rows / np.where(length > 1e-6, length, np.inf), np.float32)
        for rows, length in zip(rest, lengths, strict=True)
    ]


def compare(some: Sequence[FloatArray], others: Sequence[FloatArray]) -> Matrix:
    """Rows of images [r, D] each → [len(some), len(others)]: the best dot product of a pair of rows, 0 without rows."""
    table = np.zeros((len(some), len(others)))
    described = np.array([number for number, rows in enumerate(others) if len(rows)], np.int64)
    if not len(described):
        return table
    columns = np.concatenate([others[number] for number in described])
    starts = np.cumsum([0, *(len(others[number]) for number in described[:-1])])
    lengths = [len(rows) for rows in some]
    first = 0
    while first < len(some):
        last, height = first + 1, lengths[first]
        while last < len(some) and 4 * (height + lengths[last]) * len(columns) <= BLOCK_BYTES:
            height += lengths[last]
            last += 1
        products = np.maximum.reduceat(np.concatenate(some[first:last]) @ columns.T, starts, axis=1)
        limits = np.cumsum([0, *lengths[first:last]])
        for number, (low, high) in enumerate(itertools.pairwise(limits), start=first):
            if high > low:
                table[number, described] = products[low:high].max(axis=0)
        first = last
    return table


def link(likeness: Matrix, links: int, power: float) -> Matrix:
    """Similarities [n, n] → S [n, n]: mutual neighbours, symmetrically normalised."""
    others = likeness.copy()
    np.fill_diagonal(others, -np.inf)
    near = keep_nearest(others, links)
    affinity = np.where(near & near.T, np.maximum(likeness, 0) ** power, 0)
    affinity = (affinity + affinity.T) / 2  # products of float32 differ in the last digit
    np.fill_diagonal(affinity, 0)
    sums = affinity.sum(axis=1)
    scale = np.where(sums > 0, 1 / np.sqrt(np.where(sums > 0, sums, 1)), 0)
    return np.asarray(scale[:, None] * affinity * scale)


def start(likeness: Matrix, config: Config) -> Matrix:
    """Similarities to the query [n] → y [n]."""
    near = keep_nearest(likeness[None], config.starts)[0]
    return np.where(near, np.maximum(likeness, 0) ** config.power, 0)


def keep_nearest(likeness: Matrix, count: int) -> NDArray[np.bool_]:
    """Which of each row [m, n] are its `count` highest above 0; of equal ones the first."""
    order = np.argsort(-likeness, axis=1, kind="stable")[:, :count]
    near = np.zeros(likeness.shape, bool)
    np.put_along_axis(near, order, True, axis=1)
    return near & (likeness > 0)


def diffuse(links: Matrix, begin: Matrix, config: Config) -> Matrix:
    """f [n] ≥ 0 of (I − decay · S) f = y. The matrix is positive definite, because no eigenvalue of S exceeds 1."""
    f = np.zeros_like(begin)
    rest = begin.copy()
    direction = rest
    error = float(rest @ rest)
    for _ in range(config.steps):
        if error <= 1e-12 * float(begin @ begin):
            break
        image = direction - config.decay * (links @ direction)
        step = error / float(direction @ image)
        f = f + step * direction
        rest = rest - step * image
        error, before = float(rest @ rest), error
        direction = rest + error / before * direction
    return np.maximum(f, 0)  # which only a solution that was stopped early can fall below

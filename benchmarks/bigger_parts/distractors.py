"""Real tokens → a data base of any size, chunk by chunk and the same again for the same seed; never all in memory.

A made-up image mixes two real ones, token by token, and adds noise with the covariance of real tokens:

    x_t = L2(λ_t a_t + (1 - λ_t) b_π(t) + noise × n_t)      λ_t even in 0.5 … 1, π a permutation, n_t ~ N(0, covariance)

It resembles real images without being one, so that a true match has close rivals. This measures search, not encoders.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property

import numpy as np

from resight.types import Descriptors, FloatArray

NOISE = 0.5
LEAST = 0.5  # share of the first image in a token
BANK = 65_536  # noise tokens that are drawn once; an image takes a stretch of them
CHUNK = 1000  # images
WORKERS = 2  # threads that make chunks ahead of time


class Million:
    """The real images [N, K, d], and as many made-up ones as make `size`."""

    def __init__(self, real: FloatArray, size: int, seed: int = 0) -> None:
        self.real = real
        self.size = size
        self.seed = seed

    def chunks(self) -> Iterator[Descriptors]:
        yield describe([name_real(number) for number in range(len(self.real))], self.real)
        waiting: deque[tuple[int, Future[FloatArray]]] = deque()
        with ThreadPoolExecutor(WORKERS) as pool:
            for first in range(len(self.real), self.size, CHUNK):
                waiting.append((first, pool.submit(self.make, first, min(CHUNK, self.size - first))))
                if len(waiting) > WORKERS:
                    yield name_made(*waiting.popleft())
            while waiting:
                yield name_made(*waiting.popleft())

    def make(self, first: int, count: int) -> FloatArray:
        random = np.random.default_rng((self.seed, first))
        _, tokens, _ = self.real.shape
        one, two = random.integers(0, len(self.real), (2, count))
        share = random.uniform(LEAST, 1, (count, tokens, 1)).astype(np.float32)
        order = random.permuted(np.tile(np.arange(tokens), (count, 1)), axis=1)
        mixed: FloatArray = self.real[one] * share
        mixed += self.real[two[:, None], order] * (1 - share)
        starts = random.integers(0, BANK - tokens, count)
        mixed += self.bank[starts[:, None] + np.arange(tokens)]
        mixed /= np.linalg.norm(mixed, axis=2, keepdims=True)
        return mixed

    @cached_property
    def bank(self) -> FloatArray:
        rows = self.real.reshape(-1, self.real.shape[2])
        spread, directions = np.linalg.eigh(np.cov(rows.T))
        root = (directions * np.sqrt(np.maximum(spread, 0))).astype(np.float32)
        random = np.random.default_rng(self.seed)
        noise = random.standard_normal((BANK, rows.shape[1]), dtype=np.float32) @ root.T
        return np.asarray(NOISE * noise, np.float32)


def name_made(first: int, made: Future[FloatArray]) -> Descriptors:
    tokens = made.result()
    return describe([f"made/{number:09}" for number in range(first, first + len(tokens))], tokens)


def name_real(number: int) -> str:
    return f"real/{number:09}"


def describe(ids: list[str], tokens: FloatArray) -> Descriptors:
    owners = np.repeat(np.arange(len(tokens), dtype=np.int32), tokens.shape[1])
    return Descriptors(tuple(ids), tokens.reshape(-1, tokens.shape[2]), owners)

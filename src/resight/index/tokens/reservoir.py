"""Tokens in chunks, of which nobody knows how many there are → a random sample of them, in one run.

Every token gets a random key; those with the smallest keys stay. So each is as likely to stay as any other, and the
sample depends on the order of the tokens, not on how they are cut into chunks.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray

LATER = 16  # a sixteenth of the sample is put aside before it is sorted in, since chunks may be small


class Reservoir:
    def __init__(self, size: int, seed: int = 0) -> None:
        self._size = size
        self._random = np.random.default_rng(seed)
        self._count = 0  # tokens held, at the front of both arrays
        self._keys = np.zeros(0)
        self._tokens: FloatArray = np.zeros((0, 0), np.float32)
        self._aside: list[tuple[NDArray[np.float64], FloatArray]] = []  # keys and tokens that came since it was full

    def add(self, tokens: NDArray[Any]) -> None:
        """[n, d]"""
        keys = self._random.random(len(tokens))
        free = self._size - self._count
        if free > 0 and len(tokens):
            self._fill(tokens[:free], keys[:free])
            tokens, keys = tokens[free:], keys[free:]
        if len(tokens) and self._size:
            coming = np.flatnonzero(keys < self._keys.max())
            self._aside.append((keys[coming], np.array(tokens[coming], np.float32)))
            if LATER * sum(len(some) for some, _ in self._aside) >= self._size:
                self._sort_in()

    def take(self) -> FloatArray:
        """[at most size, d] float32, by key."""
        self._sort_in()
        return self._tokens[: self._count][np.argsort(self._keys[: self._count])]

    def _fill(self, tokens: NDArray[Any], keys: NDArray[np.float64]) -> None:
        end = self._count + len(tokens)
        if end > len(self._keys):
            room = min(max(end, 2 * len(self._keys)), self._size)
            held, self._tokens = self._tokens, np.empty((room, tokens.shape[1]), np.float32)
            self._tokens[: self._count] = held[: self._count] if self._count else 0
            self._keys = np.concatenate([self._keys, np.zeros(room - len(self._keys))])
        self._tokens[self._count : end], self._keys[self._count : end] = tokens, keys
        self._count = end

    def _sort_in(self) -> None:
        if not self._aside:
            return
        keys = np.concatenate([keys for keys, _ in self._aside])
        tokens = np.concatenate([tokens for _, tokens in self._aside])
        self._aside = []
        stays = np.zeros(self._size + len(keys), bool)
        stays[np.argsort(np.concatenate([self._keys, keys]))[: self._size]] = True
        places, chosen = np.flatnonzero(~stays[: self._size]), np.flatnonzero(stays[self._size :])
        self._tokens[places], self._keys[places] = tokens[chosen], keys[chosen]

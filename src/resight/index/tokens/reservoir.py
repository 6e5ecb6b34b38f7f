"""Tokens in chunks, of which nobody knows how many there are → a random sample of them, in one run.

Every token gets a random key; those with the smallest keys stay. So each is as likely to stay as any other, and the
sample depends on the order of the tokens, not on how they are cut into chunks.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray


class Reservoir:
    def __init__(self, size: int, seed: int = 0) -> None:
        self._size = size
        self._random = np.random.default_rng(seed)
        self._keys = np.zeros(0)
        self._tokens: FloatArray = np.zeros((0, 0), np.float32)

    def add(self, tokens: NDArray[Any]) -> None:
        """[n, d]"""
        keys = self._random.random(len(tokens))
        free = self._size - len(self._keys)
        if free > 0 and len(tokens):
            held = self._tokens if len(self._tokens) else np.zeros((0, tokens.shape[1]), np.float32)
            self._tokens = np.concatenate([held, np.asarray(tokens[:free], np.float32)])
            self._keys = np.concatenate([self._keys, keys[:free]])
            tokens, keys = tokens[free:], keys[free:]
        if len(tokens) and self._size:
            self._replace(tokens, keys)

    def _replace(self, tokens: NDArray[Any], keys: NDArray[np.float64]) -> None:
        coming = np.flatnonzero(keys < self._keys.max())
        both = np.concatenate([self._keys, keys[coming]])
        stays = np.zeros(len(both), bool)
        stays[np.argsort(both, kind="stable")[: self._size]] = True
        places, chosen = np.flatnonzero(~stays[: self._size]), coming[stays[self._size :]]
        self._tokens[places], self._keys[places] = tokens[chosen], keys[chosen]

    def take(self) -> FloatArray:
        """[at most size, d] float32, by key."""
        return self._tokens[np.argsort(self._keys)]

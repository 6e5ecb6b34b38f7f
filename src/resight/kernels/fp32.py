"""Uncompressed tokens, 4 bytes per dimension: the reference for every other kind."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from resight.kernels import dispatch
from resight.kernels.codec import Plan, Rows
from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    """This kind has no settings."""


def begin(plan: Plan, _: Config) -> "Fp32Filler":
    return Fp32Filler(plan)


class Fp32Filler:
    def __init__(self, plan: Plan) -> None:
        self._offsets = plan.offsets
        self._tokens = plan.allocate("fp32.tokens", (plan.tokens, plan.d), np.float32)

    def fill(self, rows: Rows, tokens: FloatArray) -> None:
        self._tokens[rows] = tokens

    def finish(self) -> "Fp32":
        return Fp32(self._tokens, self._offsets)


def keep_as_given(tokens: NDArray[Any], offsets: NDArray[np.int64]) -> "Fp32":
    """Use the given tokens, without a copy if they are float32."""
    return Fp32(np.require(tokens, np.float32, ["C_CONTIGUOUS"]), offsets)


def restore(arrays: dict[str, NDArray[Any]], offsets: NDArray[np.int64]) -> "Fp32":
    return Fp32(arrays["tokens"], offsets)


@dataclass(frozen=True)
class Fp32:
    tokens: FloatArray  # [n, d]
    offsets: NDArray[np.int64]
    kind: ClassVar[str] = "fp32"

    @property
    def d(self) -> int:
        return int(self.tokens.shape[1])

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        return dispatch.maxsim_float(query, self.tokens, self.offsets, rows, threads)

    def radius(self, _: FloatArray) -> FloatArray:
        return np.zeros(len(self.offsets) - 1, np.float32)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"tokens": self.tokens}

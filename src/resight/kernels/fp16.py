"""Tokens in half precision: 2 bytes per dimension, sums in fp32."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.kernels import dispatch
from resight.kernels.codec import Plan, Rows, rounding_error, update_largest
from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    """This kind has no settings."""


def begin(plan: Plan, _: Config) -> "Fp16Filler":
    return Fp16Filler(plan)


class Fp16Filler:
    def __init__(self, plan: Plan) -> None:
        self._offsets = plan.offsets
        self._halves = plan.allocate("fp16.tokens", (plan.tokens, plan.d), np.float16)
        self._errors, self._lengths = (np.zeros(len(plan.offsets) - 1, np.float32) for _ in range(2))

    def fill(self, rows: Rows, tokens: FloatArray) -> None:
        halves = to_fp16(tokens, rows)
        self._halves[rows] = halves
        errors = np.linalg.norm(tokens - halves.astype(np.float32), axis=1)
        update_largest(self._errors, self._offsets, rows, errors)
        update_largest(self._lengths, self._offsets, rows, np.linalg.norm(tokens, axis=1))

    def finish(self) -> "Fp16":
        return Fp16(self._halves, self._errors, self._lengths, self._offsets)


def to_fp16(tokens: FloatArray, rows: Rows) -> NDArray[np.float16]:
    """Tokens in half precision; the error names the first token that does not fit."""
    with np.errstate(over="ignore"):  # the check below has a better message
        halves = tokens.astype(np.float16)
    lost = ~np.isfinite(halves).all(axis=1) | ~halves.any(axis=1)
    if lost.any():
        at = int(np.argmax(lost))
        raise InputError(
            "a token does not fit half precision",
            expected="values from 6e-8 to 65,504",
            actual=f"row {rows.start + at if isinstance(rows, slice) else rows[at]}, "
            f"length {np.linalg.norm(tokens[at]):g}",
            fix="normalise the tokens, or use kind='fp32' or kind='int8'",
        )
    return halves


def restore(arrays: dict[str, NDArray[Any]], offsets: NDArray[np.int64]) -> "Fp16":
    return Fp16(arrays["tokens"], arrays["errors"], arrays["lengths"], offsets)


@dataclass(frozen=True)
class Fp16:
    tokens: NDArray[np.float16]  # [n, d]
    errors: FloatArray  # [N] the largest |x - its fp16 value| in the image
    lengths: FloatArray  # [N] length of the image's longest token
    offsets: NDArray[np.int64]
    kind: ClassVar[str] = "fp16"

    @property
    def d(self) -> int:
        return int(self.tokens.shape[1])

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        return dispatch.maxsim_float(query, self.tokens, self.offsets, rows, threads)

    def radius(self, query: FloatArray) -> FloatArray:
        length = float(np.linalg.norm(query, axis=1).mean())
        growth, each = rounding_error(length, len(query), self.d)
        return self.errors * np.float32(growth * length) + self.lengths * np.float32(each)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"tokens": self.tokens, "errors": self.errors, "lengths": self.lengths}

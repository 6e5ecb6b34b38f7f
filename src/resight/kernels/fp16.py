"""Tokens in half precision: 2 bytes a dimension, sums in fp32."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.kernels import dispatch
from resight.kernels.bounds import longest_of_images, read_chunks, round_off
from resight.kernels.room import Allocate, in_memory
from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    """It has no settings."""


def build(tokens: NDArray[Any], offsets: NDArray[np.int64], _: Config, allocate: Allocate = in_memory) -> "Fp16":
    halves = allocate("fp16.tokens", tokens.shape, np.float16)
    errors, lengths = np.zeros(len(tokens), np.float32), np.zeros(len(tokens), np.float32)
    for chunk, values in read_chunks(tokens):
        with np.errstate(over="ignore"):  # found below, with a better message
            halves[chunk] = values
        back = halves[chunk].astype(np.float32)
        errors[chunk] = np.linalg.norm(values - back, axis=1)
        lengths[chunk] = np.linalg.norm(values, axis=1)
        lost = ~np.isfinite(back).all(axis=1) | ~back.any(axis=1)
        if lost.any():
            raise InputError(
                "a token does not fit half precision",
                expected="values from 6e-8 to 65,504",
                actual=f"row {chunk.start + int(np.argmax(lost))}, length {lengths[chunk][lost][0]:g}",
                fix="normalise the tokens, or use kind='fp32' or kind='int8'",
            )
    return Fp16(halves, longest_of_images(errors, offsets), longest_of_images(lengths, offsets), offsets)


def restore(arrays: dict[str, NDArray[Any]], offsets: NDArray[np.int64]) -> "Fp16":
    return Fp16(arrays["tokens"], arrays["errors"], arrays["lengths"], offsets)


@dataclass(frozen=True)
class Fp16:
    tokens: NDArray[np.float16]  # [n, d]
    errors: FloatArray  # [N] how far a token of the image may lie from its fp32 self
    lengths: FloatArray  # [N] of the image's longest token
    offsets: NDArray[np.int64]
    kind: ClassVar[str] = "fp16"

    @property
    def d(self) -> int:
        return int(self.tokens.shape[1])

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        return dispatch.maxsim_float(query, self.tokens, self.offsets, rows, threads)

    def radius(self, query: FloatArray) -> FloatArray:
        length = float(np.linalg.norm(query, axis=1).mean())
        growth, each = round_off(length, len(query), self.d)
        return self.errors * np.float32(growth * length) + self.lengths * np.float32(each)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"tokens": self.tokens, "errors": self.errors, "lengths": self.lengths}

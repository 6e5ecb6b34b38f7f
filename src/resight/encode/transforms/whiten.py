"""Whitens every row: v → L2((v - mean) @ projection), from a file made by `resight whiten`.

In: float vectors [n, D], one row per image or many. Out: [n, d] float32 of unit length; ids, owners and boxes stay.
An encoder refuses a whitening of other descriptors than its own; with `any_scale` it may have been learnt at other
scales of the same network than those of the transform multiscale (CiDeR, Table A19).
"""

from dataclasses import dataclass, replace
from pathlib import Path

from resight.encode import whitening as whitenings
from resight.errors import RecipeError
from resight.types import Descriptors, Role


@dataclass(frozen=True)
class Config:
    file: Path  # file of the whitening, made by `resight whiten`
    any_scale: bool = False  # accept a whitening learnt at other scales of the same network and descriptor


def build(config: Config) -> "Whiten":
    return Whiten(whitenings.load(config.file), config.any_scale)


class Whiten:
    def __init__(self, whitening: whitenings.Whitening, any_scale: bool = False) -> None:
        self.fingerprint = f"whiten({whitening.fingerprint})"
        self.space = whitening.facts.space
        self.any_scale = any_scale
        self._whitening = whitening

    def apply(self, descriptors: Descriptors, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        require_floats(descriptors)
        return replace(descriptors, vectors=self._whitening.apply(descriptors.vectors))


def require_floats(descriptors: Descriptors) -> None:
    if descriptors.vectors.dtype.kind != "f":
        raise RecipeError(
            "these rows cannot be whitened: they are codes, not vectors of real numbers",
            expected="a branch with the descriptor pooled, tokens, aggregated or vlad",
            actual=f"rows of {descriptors.vectors.dtype}, such as those of asmk and local",
            fix="choose another branch",
        )

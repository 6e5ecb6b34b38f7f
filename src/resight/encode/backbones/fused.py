"""Several encoders as one: their vectors of unit length, concatenated.

    v = L2([w_1 v_1, w_2 v_2, …]),  v_i = L2 of part i

In: pictures, and the parts: branches whose descriptor gives one vector per image. Out: Features with a grid of one
cell and the same vector as `head`; use it with the descriptor pooled, pooling "head", with or without whitening.
Without weights and whitening, its dot product is the mean of the parts' own (MSLS study, section 3.4).

    encoder = { name = "fused", parts = [
        { encoder = "dinov3_vith16plus", descriptor = { name = "pooled", pooling = "gem" } },
        { encoder = "clip_vitb32", descriptor = { name = "pooled", pooling = "gem" }, weight = 0.5 } ] }
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from resight.encode.backbones import About
from resight.errors import MissingWeights, RecipeError
from resight.types import Branch, Descriptors, Features, FloatArray, Picture, Role

ABOUT = About("fusion of encoders", 0, "image", "those of its parts", "those of its parts")
PARTS = "[ { encoder = …, descriptor = … }, … ]"


@dataclass(frozen=True)
class Config:
    parts: tuple[Branch, ...] = ()  # two or more branches with one vector per image: encoder, descriptor, weight


def build(config: Config) -> "Fused":
    if len(config.parts) < 2 or any(part.weight <= 0 for part in config.parts):
        raise RecipeError(
            "these encoders cannot be fused",
            expected=f"parts = {PARTS}: two or more, each with a weight above 0",
            actual=f"{len(config.parts)} parts, weights {[part.weight for part in config.parts]}",
            fix="add parts, or use the encoder itself",
        )
    return Fused(config)


def find_weights(config: Config) -> None:
    """Returns nothing: the parts find their own weights; without parts there is no network."""
    if not config.parts:
        raise MissingWeights(
            "fused has only the weights of its parts",
            expected=f"parts = {PARTS}",
            actual="no parts",
            fix=f"name them in a recipe: parts = {PARTS}",
        )


class PartsEncoder(Protocol):
    """The Encoder of the parts."""

    spaces: tuple[str, ...]
    max_side: int | None
    batch: int

    def encode(
        self, pictures: Sequence[Picture], role: Role = "database", scale: float = 1.0
    ) -> Iterator[tuple[Descriptors, ...]]: ...


class Fused:
    """A backbone of other encoders: `resight.encode.encoder.build_backbone` builds these and connects them."""

    fingerprint: str
    max_side: int | None
    batch: int

    def __init__(self, config: Config) -> None:
        self.parts = config.parts
        self._weights = [part.weight for part in config.parts]

    def connect(self, encoder: PartsEncoder) -> None:
        """`encoder` has one branch per part."""
        self._encoder = encoder
        parts = [f"{weight:g} × {space}" for weight, space in zip(self._weights, encoder.spaces, strict=True)]
        self.fingerprint = f"fused({' + '.join(parts)})"
        self.max_side = encoder.max_side
        self.batch = encoder.batch

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        for picture, parts in zip(pictures, self._encoder.encode(pictures, scale=scale), strict=True):
            vector = concatenate(parts, self._weights)
            yield Features(
                ids=(picture.ref.id,),
                patches=vector[None, None],
                sizes=np.array([picture.size], dtype=np.int32),
                grid=(1, 1),
                head=vector[None],
            )


def concatenate(parts: Sequence[Descriptors], weights: Sequence[float]) -> FloatArray:
    """One vector [D_1 + D_2 + …] of unit length; zero where all parts are."""
    several = next((part for part in parts if len(part) != 1), None)
    if several is not None:
        raise RecipeError(
            "only encoders with one vector per image can be fused",
            expected="parts with the descriptor pooled or vlad",
            actual=f"{len(several)} rows for one image ({several.space})",
            fix="pool it, or use one branch per encoder and the recipe's `fusion`",
        )
    # Not l2_normalise: it sums the norm of one long vector in another order, and stored rows would change.
    scaled = [
        weight * part.vectors[0] / max(float(np.linalg.norm(part.vectors[0])), 1e-12)
        for part, weight in zip(parts, weights, strict=True)
    ]
    joined = np.concatenate(scaled)
    return np.asarray(joined / max(float(np.linalg.norm(joined)), 1e-12), np.float32)

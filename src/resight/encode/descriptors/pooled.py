"""One vector per image: the tokens of a grid pooled, then L2-normalised.

    cls        the CLS token
    mean       (1/N) Σ x_i over the patches; for a feature map, global average pooling
    mean_all   the same over the patches and CLS
    max        max_i x_i for each dimension
    gem        ((1/N) Σ max(x_i, 1e-6)^p)^(1/p) for each dimension (Radenović et al., TPAMI 2019)
    head       the network's own vector: SigLIP's and PE's attention pooling, VGG's fc7, CLIP's CLS

With `include_cls`, `max` and `gem` include CLS. With `negative = "signed"`, gem keeps the sign of negative values:
m = (1/N) Σ sign(x_i) |x_i|^p, and the result is sign(m) |m|^(1/p). Backbones leave registers out.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from resight.encode.descriptors.tokens import require_grid
from resight.errors import RecipeError
from resight.types import Descriptors, Features, FloatArray, Role
from resight.vectors import l2_normalise

SMALLEST = 1e-6
Pooling = Literal["cls", "mean", "mean_all", "max", "gem", "head"]
Negative = Literal["clamp", "signed"]


@dataclass(frozen=True)
class Config:
    pooling: Pooling = "mean"  # how tokens become one vector: cls, mean, mean_all, max, gem or head (network's own)
    p: float = 3.0  # gem: exponent; 1 is the mean, a large one the maximum
    include_cls: bool = False  # max and gem: pool the CLS token too
    negative: Negative = "clamp"  # gem: negative values are clamped to 1e-6, or keep their sign (signed)


def build(config: Config) -> "Pooled":
    if config.p <= 0:
        raise RecipeError("p is not above 0", expected="a number above 0", actual=str(config.p), fix="e.g. p = 3")
    if config.include_cls and config.pooling not in ("max", "gem"):
        raise RecipeError(
            f"include_cls changes nothing about the pooling {config.pooling!r}",
            expected="include_cls with max or gem",
            actual=config.pooling,
            fix="leave it out, or use mean_all for the mean of the patches and CLS",
        )
    return Pooled(config)


class Pooled:
    def __init__(self, config: Config) -> None:
        self.fingerprint = (
            f"pooled({config.pooling}, p={config.p}, include_cls={config.include_cls}, negative={config.negative})"
        )
        self._config = config

    def describe(self, features: Features, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        require_grid(features, "pooled")
        vectors = l2_normalise(self._pool(features))
        return Descriptors(features.ids, vectors, np.arange(len(features.ids), dtype=np.int32))

    def _pool(self, features: Features) -> FloatArray:
        if self._config.pooling != "head":
            return pool(features.patches, features.cls, self._config, features.head is not None)
        if features.head is None:
            raise RecipeError(
                "the pooling 'head' needs a network with a vector of its own, and this encoder has none",
                expected="mean, max or gem, or an encoder with a head: those of timm and transformers",
                actual="only patches",
                fix="e.g. pooling = 'gem'",
            )
        return features.head


def pool(patches: FloatArray, cls: FloatArray | None, config: Config, has_head: bool = False) -> FloatArray:
    """Patches [B, N, D] and CLS [B, D] → [B, D], not yet normalised; `has_head` serves the text of an error."""
    tokens = patches
    if config.include_cls or config.pooling in ("cls", "mean_all"):
        if cls is None:
            raise RecipeError(
                f"the pooling {config.pooling!r} needs a CLS token, and this encoder has none",
                expected=f"{'head, ' if has_head else ''}mean, max or gem without include_cls, or a ViT with CLS",
                actual="only patches",
                fix=f"e.g. pooling = {'head' if has_head else 'mean'!r}",
            )
        if config.pooling == "cls":
            return cls
        tokens = np.concatenate([cls[:, None], patches], axis=1)
    if config.pooling == "max":
        return np.asarray(tokens.max(axis=1), np.float32)
    if config.pooling == "gem":
        return _generalised_mean(tokens, config.p, config.negative)
    return np.asarray(tokens.mean(axis=1), np.float32)


def _generalised_mean(tokens: FloatArray, p: float, negative: Negative) -> FloatArray:
    # Relative to the largest: powers of large activations overflow float32.
    largest = np.maximum(np.abs(tokens).max(axis=1, keepdims=True), SMALLEST).astype(np.float64)
    if negative == "clamp":
        means = ((np.maximum(tokens, SMALLEST) / largest) ** p).mean(axis=1)
    else:
        means = (np.sign(tokens) * (np.abs(tokens) / largest) ** p).mean(axis=1)
    return np.asarray(np.sign(means) * np.abs(means) ** (1 / p) * largest[:, 0], np.float32)

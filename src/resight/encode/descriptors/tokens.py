"""Unchanged patch tokens: all N of an image, or K of them by one of seven selections.

    attention        most CLS attention
    norm_attention   highest product of length and attention
    norm             longest
    random           K at random, the same for the same image id
    grid             evenly spaced over the image
    cls_similarity   highest cosine with CLS
    cls_distance     lowest cosine with CLS

Out: vectors [n, D] of unit length, the best first (grid: row by row), and the box of each token's patch. K above N
gives all N. Ties go to the first patch.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from resight.errors import RecipeError
from resight.types import Descriptors, Features, FloatArray, IntArray, Role
from resight.vectors import l2_normalise

Selection = Literal["all", "attention", "norm_attention", "norm", "random", "grid", "cls_similarity", "cls_distance"]
NEEDS_ATTENTION = ("attention", "norm_attention")
NEEDS_CLS = ("cls_similarity", "cls_distance")
NEEDS_NOTHING = ("all", "norm", "random", "grid")


@dataclass(frozen=True)
class Config:
    selection: Selection = "all"  # which tokens stay: all, or k by attention, norm, grid, random or CLS similarity
    k: int = 64  # most tokens per image; selection = "all" ignores it
    normalise: bool = True  # scale tokens to unit length, so that a dot product is a cosine
    seed: int = 0  # random seed of selection = "random"


def build(config: Config) -> "Tokens":
    require_positive(config.k)
    return Tokens(config)


class Tokens:
    def __init__(self, config: Config) -> None:
        chosen = "all" if config.selection == "all" else f"{config.selection}, k={config.k}, seed={config.seed}"
        self.fingerprint = f"tokens({chosen}, normalise={config.normalise})"
        self._config = config

    def describe(self, features: Features, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        require_grid(features, "tokens")
        chosen = [select(features, image, self._config) for image in range(len(features.ids))]
        patch_boxes = box_patches(features)
        vectors = np.concatenate([patches[rows] for patches, rows in zip(features.patches, chosen, strict=True)])
        return Descriptors(
            ids=features.ids,
            vectors=l2_normalise(vectors) if self._config.normalise else np.asarray(vectors, np.float32),
            owners=np.repeat(np.arange(len(chosen), dtype=np.int32), [len(rows) for rows in chosen]),
            boxes=np.concatenate([boxes[rows] for boxes, rows in zip(patch_boxes, chosen, strict=True)]),
        )


def select(features: Features, image: int, config: Config) -> IntArray:
    """The row numbers of the selected patches of one image of a batch."""
    patches, kind = features.patches[image], config.selection
    count = min(config.k, len(patches))
    if kind == "all":
        return np.arange(len(patches))
    if kind == "grid":
        assert features.grid is not None
        return space_evenly(*features.grid, count)
    if kind == "random":
        digest = hashlib.sha256(features.ids[image].encode()).digest()
        generator = np.random.default_rng([config.seed, int.from_bytes(digest[:8], "big")])
        return generator.permutation(len(patches))[:count].astype(np.int64)
    return np.argsort(-_score(features, image, kind), kind="stable")[:count].astype(np.int64)


def space_evenly(rows: int, columns: int, count: int) -> IntArray:
    """`count` cells of a grid: in equally spaced rows, each with (nearly) as many equally spaced cells."""
    fewest = -(-count // columns)
    lines = min(max(round((count * rows / columns) ** 0.5), fewest, 1), rows, count)
    cells = []
    for line in range(lines):
        row = int((line + 0.5) * rows / lines)
        width = (line + 1) * count // lines - line * count // lines
        cells += [row * columns + int((cell + 0.5) * columns / width) for cell in range(width)]
    return np.array(cells, np.int64)


def box_patches(features: Features) -> FloatArray:
    """The box of every patch [B, N, 4] in pixels of the original."""
    assert features.grid is not None
    rows, columns = features.grid
    covers = features.covers
    if covers is None:
        covers = np.concatenate([np.zeros_like(features.sizes), features.sizes], axis=1)
    y, x = np.divmod(np.arange(rows * columns), columns)
    shares = np.stack([x / columns, y / rows, (x + 1) / columns, (y + 1) / rows], axis=1)
    corners = np.tile(covers[:, None, :2], 2)
    return np.asarray(corners + shares * np.tile(covers[:, None, 2:] - covers[:, None, :2], 2), np.float32)


def require_grid(features: Features, name: str) -> None:
    if features.grid is None:
        raise RecipeError(
            f"the descriptor {name!r} describes a grid of patches, and this encoder gives key points",
            expected="an encoder such as efficientnet_lite or onnx_vit",
            actual="key points",
            fix="put another encoder into this branch, or a descriptor for key points such as vlad",
        )


def require_positive(k: int) -> None:
    if k < 1:
        raise RecipeError("k is not a number of tokens", expected="1 or more", actual=str(k), fix="e.g. k = 32")


def refuse_without(wanted: str, missing: str, usable: Sequence[str]) -> RecipeError:
    """The error for a selection whose input the encoder lacks; `usable` are selections that do not need it."""
    return RecipeError(
        f"{wanted!r} needs {missing}, and this encoder gives none",
        expected=f"one of {', '.join(usable)}, or an encoder with {missing}: a ViT, its setting attention left at true",
        actual=wanted,
        fix=f"e.g. {usable[-1]!r}",
    )


def _score(features: Features, image: int, kind: Selection) -> FloatArray:
    """The score of each patch of an image [N]."""
    patches = features.patches[image]
    if kind == "norm":
        return np.asarray(np.linalg.norm(patches, axis=1), np.float32)
    if kind in NEEDS_ATTENTION:
        if features.attention is None:
            others = NEEDS_CLS if features.cls is not None else ()
            raise refuse_without(kind, "CLS attention", (*others, *NEEDS_NOTHING))
        attention = features.attention[image]
        return attention if kind == "attention" else np.asarray(attention * np.linalg.norm(patches, axis=1))
    if features.cls is None:
        raise refuse_without(kind, "a CLS token", NEEDS_NOTHING)
    cosines: FloatArray = l2_normalise(patches) @ l2_normalise(features.cls[image])
    return cosines if kind == "cls_similarity" else -cosines

"""The branches of a recipe that an audit reads: visual words, key points, and dense descriptors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from resight.collection import Collection
from resight.encode import descriptors
from resight.encode.descriptors import Descriptor
from resight.errors import SpaceMismatch
from resight.search.matchers import LocalFeatures
from resight.types import Descriptors, Features, FloatArray, Recipe
from resight.vectors import l2_normalise

MIRRORED = ("sift",)  # encoders whose key points dct_signature.mirror_features can mirror


@dataclass(frozen=True)
class Branches:
    """Numbers of branches; None if the recipe has no such branch."""

    words: int | None
    local: int | None
    dense: tuple[int, ...]
    mirrors: bool  # whether key points and their words can be mirrored


class Rows(Protocol):
    """A collection, or a view of it."""

    recipe: Recipe

    def descriptors(self, branch: int, ids: Sequence[str] | None = None) -> Iterator[Descriptors]: ...


def choose_branches(recipe: Recipe) -> Branches:
    words = next((at for at, branch in enumerate(recipe.branches) if branch.descriptor.name == "asmk"), None)
    local = next((at for at, branch in enumerate(recipe.branches) if branch.descriptor.name == "local"), None)
    dense = [
        at
        for at, branch in enumerate(recipe.branches)
        if branch.weight > 0 and branch.descriptor.name not in ("asmk", "bow")
    ]
    known = [recipe.branches[at].encoder for at in (words, local) if at is not None]
    mirrors = local is not None and all(encoder == known[0] and encoder.name in MIRRORED for encoder in known)
    return Branches(words, local, tuple(dense), mirrors)


def require_same_spaces(one: Collection, other: Collection) -> None:
    if one.metadata.spaces != other.metadata.spaces:
        raise SpaceMismatch(
            f"{one.path} and {other.path} hold descriptors of different recipes",
            expected=" | ".join(one.metadata.spaces),
            actual=" | ".join(other.metadata.spaces),
            fix="index one of them again, with the preset or recipe of the other",
        )


def read_local(source: Rows, branch: int, ids: Sequence[str]) -> dict[str, LocalFeatures]:
    """Key points of some images, by id."""
    return {image.id: image for rows in source.descriptors(branch, ids) for image in split_local(rows)}


def split_local(rows: Descriptors) -> Iterator[LocalFeatures]:
    assert rows.points is not None
    for name, part in split_images(rows):
        yield LocalFeatures(name, rows.vectors[part], rows.points[part])


def split_images(rows: Descriptors) -> Iterator[tuple[str, slice]]:
    """Each image id with the slice of its rows."""
    limits = np.searchsorted(rows.owners, np.arange(len(rows.ids) + 1))
    for image, name in enumerate(rows.ids):
        yield name, slice(int(limits[image]), int(limits[image + 1]))


def pool(source: Rows, branch: int, ids: Sequence[str]) -> FloatArray:
    """One vector per image [n, D]: the mean of its rows at unit length; zeros without rows."""
    parts = [pool_rows(rows) for rows in source.descriptors(branch, ids)]
    return np.concatenate(parts) if parts else np.zeros((0, 1), np.float32)


def pool_rows(rows: Descriptors) -> FloatArray:
    sums = np.zeros((len(rows.ids), rows.vectors.shape[1]), np.float32)
    np.add.at(sums, rows.owners, rows.vectors.astype(np.float32))
    return l2_normalise(sums, floor=1e-6)


def build_descriptor(recipe: Recipe, branch: int) -> Descriptor:
    choice = recipe.branches[branch].descriptor
    return descriptors.build(choice.name, **choice.settings)


def describe_words(features: LocalFeatures, descriptor: Descriptor) -> Descriptors:
    """The visual words of key points, as for a database image."""
    patches = Features((features.id,), features.vectors[None], np.zeros((1, 2), np.int32), points=features.points[None])
    return descriptor.describe(patches, "database")

"""A recipe's branches, built: pictures → one Descriptors a branch.

Branches with the same encoder share one pass of its backbone, at each scale that one of them asks for. `spaces` holds a
fingerprint for each branch: two collections can be compared when theirs are equal.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from resight.encode import backbones, descriptors, transforms
from resight.encode.backbones import Backbone
from resight.encode.descriptors import Descriptor
from resight.encode.feature_batches import split
from resight.encode.feature_cache import Cached, FeatureCache
from resight.encode.transforms import Transform
from resight.errors import RecipeError, SpaceMismatch
from resight.types import Branch, Choice, Descriptors, Features, Picture, Role

ROLES: tuple[Role, ...] = ("database", "query")


class Encoder:
    def __init__(self, branches: Sequence[Branch], cache: FeatureCache | None = None) -> None:
        choices: list[Choice] = []
        for branch in branches:
            if branch.encoder not in choices:
                choices.append(branch.encoder)
        self._backbones = [_build(choice, cache) for choice in choices]
        self._source = [choices.index(branch.encoder) for branch in branches]
        self._finish = [_Finish(branch) for branch in branches]
        self.spaces = tuple(
            _fingerprint(self._backbones[source].fingerprint, *finish.fingerprints)
            for source, finish in zip(self._source, self._finish, strict=True)
        )
        for source, finish in zip(self._source, self._finish, strict=True):
            finish.check_spaces(self._backbones[source].fingerprint)
        self.max_side = self._find_max_side()
        self.batch = max(backbone.batch for backbone in self._backbones)

    def encode(
        self, pictures: Sequence[Picture], role: Role = "database", scale: float = 1.0
    ) -> Iterator[tuple[Descriptors, ...]]:
        """For each picture in order, its descriptors: one a branch, of one image each."""
        passes = {
            (source, part): None
            for source, finish in zip(self._source, self._finish, strict=True)
            for part in finish.scales(role)
        }
        features = {
            (source, part): list(split(self._backbones[source].extract(pictures, scale * part)))
            for source, part in passes
        }
        for position in range(len(pictures)):
            yield tuple(
                replace(finish([features[source, part][position] for part in finish.scales(role)], role), space=space)
                for source, finish, space in zip(self._source, self._finish, self.spaces, strict=True)
            )

    def _find_max_side(self) -> int | None:
        """The side that pictures may be reduced to when they are decoded: what the largest input of all needs."""
        sides = [
            (self._backbones[source].max_side, max(part for role in ROLES for part in finish.scales(role)))
            for source, finish in zip(self._source, self._finish, strict=True)
        ]
        known = [round(side * max(scale, 1)) for side, scale in sides if side is not None]
        return max(known) if len(known) == len(sides) else None


class _Finish:
    """Descriptor and transforms of one branch."""

    def __init__(self, branch: Branch) -> None:
        self._descriptor: Descriptor = descriptors.build(branch.descriptor.name, **branch.descriptor.settings)
        self._transforms: list[Transform] = [
            transforms.build(choice.name, **choice.settings) for choice in branch.transforms
        ]
        self.fingerprints = [self._descriptor.fingerprint, *(part.fingerprint for part in self._transforms)]
        for choice, transform in list(zip(branch.transforms, self._transforms, strict=True))[1:]:
            if hasattr(transform, "scales"):
                raise RecipeError(
                    f"the transform {choice.name!r} is not the first",
                    expected="it before all others: they work on what it makes",
                    actual=", ".join(other.name for other in branch.transforms),
                    fix="put it first",
                )

    def check_spaces(self, backbone: str) -> None:
        """A transform that was learnt in one space means nothing in another, even of the same dimensions."""
        for number, transform in enumerate(self._transforms):
            learnt = getattr(transform, "space", "")
            given = _fingerprint(backbone, *self.fingerprints[: number + 1])
            if learnt and learnt != given:
                raise SpaceMismatch(
                    f"the transform {transform.fingerprint} was learnt from descriptors of another kind",
                    expected=learnt,
                    actual=given,
                    fix="learn it from a collection that is encoded in this way, with `resight whiten`",
                )

    def scales(self, role: Role) -> tuple[float, ...]:
        first = self._transforms[0] if self._transforms else None
        return tuple(first.scales(role)) if first is not None and hasattr(first, "scales") else (1.0,)

    def __call__(self, features: Sequence[Features], role: Role) -> Descriptors:
        """`features` are those of one picture, one for each scale."""
        parts = [self._descriptor.describe(one, role) for one in features]
        rows = parts[0] if len(parts) == 1 else _join(parts)
        for transform in self._transforms:
            rows = transform.apply(rows, role)
        return rows


def _build(choice: Choice, cache: FeatureCache | None) -> Backbone:
    backbone = backbones.build(choice.name, **choice.settings)
    return backbone if cache is None else Cached(backbone, cache)


def _join(parts: Sequence[Descriptors]) -> Descriptors:
    """The rows of one picture at several scales as rows of one image: its vectors, which is all that can be pooled."""
    vectors = np.concatenate([part.vectors for part in parts])
    return Descriptors(parts[0].ids, vectors, np.zeros(len(vectors), np.int32))


def _fingerprint(*parts: str) -> str:
    """Readable and exact: the parts themselves, and a hash to compare by."""
    text = " > ".join(parts)
    return f"{text} #{hashlib.sha256(text.encode()).hexdigest()[:8]}"

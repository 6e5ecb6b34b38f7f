"""A recipe's branches, built: pictures → one Descriptors a branch.

Branches with the same encoder share one pass of its backbone. `spaces` holds a fingerprint for each
branch: two collections can be compared when theirs are equal.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from resight.encode import backbones, descriptors, transforms
from resight.encode.descriptors import Descriptor
from resight.encode.transforms import Transform
from resight.types import Branch, Choice, Descriptors, Features, Picture, Role


class Encoder:
    def __init__(self, branches: Sequence[Branch]) -> None:
        choices: list[Choice] = []
        for branch in branches:
            if branch.encoder not in choices:
                choices.append(branch.encoder)
        self._backbones = [backbones.build(choice.name, **choice.settings) for choice in choices]
        self._source = [choices.index(branch.encoder) for branch in branches]
        self._finish = [_Finish(branch) for branch in branches]
        self.spaces = tuple(
            _fingerprint(self._backbones[source].fingerprint, *finish.fingerprints)
            for source, finish in zip(self._source, self._finish, strict=True)
        )
        sides = [backbone.max_side for backbone in self._backbones]
        self.max_side = None if None in sides else max(side for side in sides if side is not None)

    def encode(self, pictures: Sequence[Picture], role: Role = "database") -> Iterator[tuple[Descriptors, ...]]:
        """For each picture in order, its descriptors: one a branch, of one image each."""
        features = [list(_one_by_one(backbone.extract(pictures))) for backbone in self._backbones]
        for position in range(len(pictures)):
            yield tuple(
                replace(finish(features[source][position], role), space=space)
                for source, finish, space in zip(self._source, self._finish, self.spaces, strict=True)
            )


class _Finish:
    """Descriptor and transforms of one branch."""

    def __init__(self, branch: Branch) -> None:
        self._descriptor: Descriptor = descriptors.build(branch.descriptor.name, **branch.descriptor.settings)
        self._transforms: list[Transform] = [
            transforms.build(choice.name, **choice.settings) for choice in branch.transforms
        ]
        self.fingerprints = [self._descriptor.fingerprint, *(part.fingerprint for part in self._transforms)]

    def __call__(self, features: Features, role: Role) -> Descriptors:
        rows = self._descriptor.describe(features, role)
        for transform in self._transforms:
            rows = transform.apply(rows, role)
        return rows


def _one_by_one(batches: Iterator[Features]) -> Iterator[Features]:
    for batch in batches:
        for row in range(len(batch.ids)):
            one = slice(row, row + 1)
            yield replace(
                batch,
                ids=batch.ids[one],
                patches=batch.patches[one],
                sizes=batch.sizes[one],
                points=None if batch.points is None else batch.points[one],
                cls=None if batch.cls is None else batch.cls[one],
                attention=None if batch.attention is None else batch.attention[one],
                covers=None if batch.covers is None else batch.covers[one],
            )


def _fingerprint(*parts: str) -> str:
    """Readable and exact: the parts themselves, and a hash to compare by."""
    text = " > ".join(parts)
    return f"{text} #{hashlib.sha256(text.encode()).hexdigest()[:8]}"

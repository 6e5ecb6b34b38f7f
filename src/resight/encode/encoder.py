"""Pictures and region sources in, pictures with their regions for each branch out, a few at a time.

A recipe's branches, built: pictures → one Descriptors a branch.

Branches with the same encoder share the passes of its backbone: at each scale that one of them asks for, and through
each region, whole images included, that one of them cuts. `spaces` holds a fingerprint for each branch: two collections
can be compared when theirs are equal.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resight.boxes import clip, crop
from resight.encode import backbones, descriptors, transforms
from resight.encode.backbones import Backbone
from resight.encode.descriptors import Descriptor, regions
from resight.encode.descriptors.regions import RegionSource
from resight.encode.feature_cache import Cached, FeatureCache
from resight.encode.regions import choose_regions, join_regions, move
from resight.encode.transforms import Transform
from resight.encode.unbatch import split
from resight.errors import RecipeError, SpaceMismatch
from resight.types import Box, Branch, Choice, Descriptors, Features, Picture, Role

AT_ONCE = 64  # parts of pictures that are held together
REGIONS = "in "  # stands before the regions in a fingerprint


class Cutter:
    """Where pictures are cut for a branch; without a source they stay whole."""

    def __init__(self, source: RegionSource | None) -> None:
        self._source = source
        self.cuts = source is not None
        self.fingerprints = [f"{REGIONS}{source.fingerprint}"] if source else []
        self.finest = source.finest if source else 1.0

    def cut(self, picture: Picture) -> tuple[Box | None, ...]:
        """Regions; None stands for the whole picture."""
        if self._source is None:
            return (None,)
        boxes = choose_regions(self._source.propose(picture), picture.size).tolist()
        whole = [0, 0, *picture.size]
        return tuple(None if box == whole else (box[0], box[1], box[2], box[3]) for box in boxes)


@dataclass(frozen=True)
class CutPicture:
    """A picture and its regions for each branch."""

    picture: Picture
    boxes: tuple[tuple[Box | None, ...], ...]

    def show(self, box: Box | None) -> Picture:
        return self.picture if box is None else crop(self.picture, box)

    def find(self, box: Box | None) -> Box:
        """What `show` shows, in whole pixels of the picture."""
        width, height = self.picture.size
        return (0.0, 0.0, float(width), float(height)) if box is None else clip(box, (width, height))


def portion(pictures: Sequence[Picture], cutters: Sequence[Cutter]) -> Iterator[list[CutPicture]]:
    """Pictures whose parts are together at most AT_ONCE, or one that has more."""
    some: list[CutPicture] = []
    held = 0
    for picture in pictures:
        made = {cutter: cutter.cut(picture) for cutter in cutters}
        count = len({box for boxes in made.values() for box in boxes})
        if some and held + count > AT_ONCE:
            yield some
            some, held = [], 0
        some.append(CutPicture(picture, tuple(made[cutter] for cutter in cutters)))
        held += count
    if some:
        yield some


def build_cutters(choices: Sequence[Choice | None]) -> list[Cutter]:
    """One for each branch, the same object where branches cut alike."""
    distinct: list[Choice | None] = []
    for choice in choices:
        if choice not in distinct:
            distinct.append(choice)
    built = [Cutter(regions.build(choice.name, **choice.settings) if choice else None) for choice in distinct]
    return [built[distinct.index(choice)] for choice in choices]


Pass = tuple[int, float, int, Box | None]  # backbone, scale, number of the picture, region


class Encoder:
    def __init__(
        self,
        branches: Sequence[Branch],
        cache: FeatureCache | None = None,
        networks: Mapping[str, Backbone] | None = None,
    ) -> None:
        """`networks` are those of another encoder, which need not be loaded again."""
        wanted = {repr(branch.encoder): branch.encoder for branch in branches}
        loaded = networks or {}
        self.networks = {name: loaded.get(name) or _build(choice, cache) for name, choice in wanted.items()}
        self._backbones = list(self.networks.values())
        self._source = [list(wanted).index(repr(branch.encoder)) for branch in branches]
        self._cutters: dict[Role, list[Cutter]] = {
            "database": build_cutters([branch.regions for branch in branches]),
            "query": build_cutters([branch.query_regions for branch in branches]),
        }
        self._finish = [_Finish(branch) for branch in branches]
        self.spaces = tuple(
            _fingerprint(self._backbones[source].fingerprint, *finish.fingerprints, *cutter.fingerprints)
            for source, finish, cutter in zip(self._source, self._finish, self._cutters["database"], strict=True)
        )
        for source, finish in zip(self._source, self._finish, strict=True):
            finish.check_spaces(self._backbones[source].fingerprint)
        self.max_side = self._find_max_side("database")
        self.query_side = self._find_max_side("query")
        self.batch = max(backbone.batch for backbone in self._backbones)

    def encode(
        self, pictures: Sequence[Picture], role: Role = "database", scale: float = 1.0
    ) -> Iterator[tuple[Descriptors, ...]]:
        """For each picture in order, its descriptors: one a branch, of one image each."""
        for some in portion(pictures, self._cutters[role]):
            features = self._extract(some, role, scale)
            for number, picture in enumerate(some):
                yield tuple(
                    self._describe(branch, number, picture, features, role) for branch in range(len(self._finish))
                )

    def _extract(self, some: Sequence[CutPicture], role: Role, scale: float) -> dict[Pass, Features]:
        """Every part through every backbone and at every scale that a branch wants it at, once."""
        wanted: dict[tuple[int, float], dict[tuple[int, Box | None], None]] = {}
        for branch, (source, finish) in enumerate(zip(self._source, self._finish, strict=True)):
            parts = [(number, box) for number, picture in enumerate(some) for box in picture.boxes[branch]]
            for size in finish.scales(role):
                wanted.setdefault((source, size), {}).update(dict.fromkeys(parts))
        found: dict[Pass, Features] = {}
        for (source, size), places in wanted.items():
            shown = [some[number].show(box) for number, box in places]
            extracted = split(self._backbones[source].extract(shown, scale * size))
            found |= {(source, size, *place): one for place, one in zip(places, extracted, strict=True)}
        return found

    def _describe(
        self, branch: int, number: int, picture: CutPicture, features: Mapping[Pass, Features], role: Role
    ) -> Descriptors:
        source, finish, boxes = self._source[branch], self._finish[branch], picture.boxes[branch]
        parts = [finish([features[source, size, number, box] for size in finish.scales(role)], role) for box in boxes]
        rows = parts[0]
        if self._cutters[role][branch].cuts:
            places = [picture.find(box) for box in boxes]
            moved = [move(part, x, y) for part, (x, y, _, _) in zip(parts, places, strict=True)]
            rows = join_regions(moved, places, role)
        return replace(rows, space=self.spaces[branch])

    def _find_max_side(self, role: Role) -> int | None:
        """The side that pictures may be reduced to when they are decoded: what the largest input of all needs."""
        sides = [
            (self._backbones[source].max_side, max(*finish.scales(role), 1.0) * cutter.finest)
            for source, finish, cutter in zip(self._source, self._finish, self._cutters[role], strict=True)
        ]
        known = [round(side * scale) for side, scale in sides if side is not None]
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
            if learnt and _without_regions(learnt) != _without_regions(given):
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


def _without_regions(space: str) -> str:
    """Regions are described as whole images are, so that what was learnt from one kind may be used for the other."""
    return space.rpartition(" #")[0].partition(f" > {REGIONS}")[0]


def _fingerprint(*parts: str) -> str:
    """Readable and exact: the parts themselves, and a hash to compare by."""
    text = " > ".join(parts)
    return f"{text} #{hashlib.sha256(text.encode()).hexdigest()[:8]}"

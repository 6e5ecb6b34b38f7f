"""A recipe's branches, built: pictures → Descriptors, one per branch.

A branch is a backbone, a descriptor, transforms and, where it has them, a photometric step before the backbone, and
regions. Branches with the same encoder and step share the passes of its backbone: the encoder runs each region, whole
images included, once at each scale that a branch asks for. `spaces` holds one fingerprint per branch: two collections
can be compared when their fingerprints are equal.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from resight.boxes import clip, crop
from resight.encode import backbones, descriptors, transforms
from resight.encode.backbones import Backbone, unbatch
from resight.encode.descriptors import Descriptor
from resight.encode.regions import choose_regions, join_regions, shift
from resight.encode.transforms import Transform
from resight.errors import RecipeError, SpaceMismatch
from resight.files.fingerprint import fingerprint
from resight.types import Box, Branch, Choice, Descriptors, Features, Picture, Role

if TYPE_CHECKING:
    from resight.encode.descriptors.regions import RegionSource
    from resight.encode.feature_cache import FeatureCache

BATCH = 64  # regions that the encoder holds in memory together
REGIONS = "in "  # precedes the regions in a fingerprint
SCALES = "multiscale("  # begins the fingerprint of the transform multiscale

Pass = tuple[int, float, int, Box | None]  # number of the backbone, scale, number of the picture, region


class Encoder:
    def __init__(
        self,
        branches: Sequence[Branch],
        cache: "FeatureCache | None" = None,
        networks: Mapping[str, Backbone] | None = None,
        check_transforms: bool = True,
    ) -> None:
        """`networks` are the loaded networks of another encoder, used instead of loading them again.

        Without `check_transforms`, transforms may have been learnt on rows of another descriptor.
        """
        wanted = {repr(branch.encoder): branch.encoder for branch in branches}
        loaded = networks or {}
        self.networks = {name: loaded.get(name) or build_backbone(choice) for name, choice in wanted.items()}
        inputs = {name_input(branch): branch for branch in branches}
        seen = [see_through(self.networks[repr(branch.encoder)], branch.photometric) for branch in inputs.values()]
        self._backbones = seen if cache is None else _cache_features(seen, cache)
        self._backbone_of = [list(inputs).index(name_input(branch)) for branch in branches]
        self._region_finders: dict[Role, list[RegionFinder]] = {
            "database": build_region_finders([branch.regions for branch in branches]),
            "query": build_region_finders([branch.query_regions for branch in branches]),
        }
        self._describers = [_Describer(branch) for branch in branches]
        self.spaces = tuple(
            _fingerprint(self._backbones[backbone].fingerprint, *describer.fingerprints, *finder.fingerprints)
            for backbone, describer, finder in self._iterate("database")
        )
        for backbone, describer, _ in self._iterate("database") if check_transforms else ():
            describer.check_spaces(self._backbones[backbone].fingerprint)
        self.max_side = self._find_max_side("database")
        self.query_side = self._find_max_side("query")
        self.batch = max(backbone.batch for backbone in self._backbones)

    def encode(
        self, pictures: Sequence[Picture], role: Role = "database", scale: float = 1.0
    ) -> Iterator[tuple[Descriptors, ...]]:
        """The descriptors of each picture, in order: one per branch, of one image each."""
        for batch in batch_regions(pictures, self._region_finders[role]):
            features = self._extract(batch, role, scale)
            for number, picture in enumerate(batch):
                yield tuple(
                    self._describe(branch, number, picture, features, role) for branch in range(len(self._describers))
                )

    def describe(self, branch: int, features: Features, role: Role) -> Descriptors:
        """The rows of one branch from features of one whole picture that were extracted before, at one scale."""
        return replace(self._describers[branch].describe([features], role), space=self.spaces[branch])

    def _iterate(self, role: Role) -> Iterator[tuple[int, "_Describer", "RegionFinder"]]:
        return zip(self._backbone_of, self._describers, self._region_finders[role], strict=True)

    def _extract(self, batch: Sequence["RegionedPicture"], role: Role, scale: float) -> dict[Pass, Features]:
        """Every region through every backbone and at every scale that a branch needs, once."""
        wanted: dict[tuple[int, float], dict[tuple[int, Box | None], None]] = {}
        for branch, (backbone, describer, _) in enumerate(self._iterate(role)):
            parts = [(number, box) for number, picture in enumerate(batch) for box in picture.boxes[branch]]
            for size in describer.scales(role):
                wanted.setdefault((backbone, size), {}).update(dict.fromkeys(parts))
        found: dict[Pass, Features] = {}
        for (backbone, size), parts_wanted in wanted.items():
            crops = [batch[number].crop(box) for number, box in parts_wanted]
            extracted = unbatch(self._backbones[backbone].extract(crops, scale * size))
            found |= {(backbone, size, *part): one for part, one in zip(parts_wanted, extracted, strict=True)}
        return found

    def _describe(
        self, branch: int, number: int, picture: "RegionedPicture", features: Mapping[Pass, Features], role: Role
    ) -> Descriptors:
        backbone, describer, boxes = self._backbone_of[branch], self._describers[branch], picture.boxes[branch]
        parts = [
            describer.describe([features[backbone, size, number, box] for size in describer.scales(role)], role)
            for box in boxes
        ]
        rows = parts[0]
        if self._region_finders[role][branch].has_source:
            outlines = [picture.outline(box) for box in boxes]
            shifted = [shift(part, x, y) for part, (x, y, _, _) in zip(parts, outlines, strict=True)]
            rows = join_regions(shifted, outlines, role)
        return replace(rows, space=self.spaces[branch])

    def _find_max_side(self, role: Role) -> int | None:
        """The side to which a decoder may reduce pictures: the largest that a backbone's input needs."""
        sides = [
            (self._backbones[backbone].max_side, max(*describer.scales(role), 1.0) * finder.finest)
            for backbone, describer, finder in self._iterate(role)
        ]
        known = [round(side * scale) for side, scale in sides if side is not None]
        return max(known) if len(known) == len(sides) else None


def _cache_features(seen: "Sequence[Backbone]", cache: "FeatureCache") -> list[Backbone]:
    from resight.encode.feature_cache import Cached  # most commands have no cache

    return [Cached(backbone, cache) for backbone in seen]


@runtime_checkable
class Joined(Protocol):
    """A backbone of several encoders, such as `fused`."""

    @property
    def parts(self) -> Sequence[Branch]: ...

    def connect(self, encoder: Encoder) -> None: ...


def build_backbone(choice: Choice) -> Backbone:
    """The backbone that a branch names, with the encoder of its parts where it fuses several."""
    backbone = backbones.build(choice.name, **choice.settings)
    if isinstance(backbone, Joined):
        backbone.connect(Encoder(backbone.parts))
    return backbone


def see_through(backbone: Backbone, photometric: Choice | None) -> Backbone:
    """The backbone, or one that sees pictures after the photometric step of a branch."""
    if photometric is None:
        return backbone
    from resight.encode.photometric import NormalisedInput  # most recipes have none

    return NormalisedInput(backbone, photometric)


def name_input(branch: Branch) -> str:
    """Equal for branches that share the passes of a backbone."""
    return repr((branch.encoder, branch.photometric))


def encode_stored(pictures: Sequence[Picture], encoder: Encoder) -> list[tuple[Descriptors, ...]]:
    """Rows to store: of each whole picture, or of the part inside its `ref.box`."""
    return encode_boxes(pictures, [picture.ref.box for picture in pictures], encoder, "database")


def encode_box(picture: Picture, box: Box | None, encoder: Encoder, role: Role) -> tuple[Descriptors, ...]:
    """The descriptors of a picture, or of the part inside a box; coordinates are pixels of the whole original."""
    (rows,) = encode_boxes([picture], [box], encoder, role)
    return rows


def encode_boxes(
    pictures: Sequence[Picture], boxes: Sequence[Box | None], encoder: Encoder, role: Role
) -> list[tuple[Descriptors, ...]]:
    """`encode_box` for several pictures, with one box or None per picture."""
    parts = [picture if box is None else crop(picture, box) for picture, box in zip(pictures, boxes, strict=True)]
    encoded = []
    for part, box, rows in zip(parts, boxes, encoder.encode(parts, role), strict=True):
        x, y, _, _ = part.ref.box if box is not None and part.ref.box is not None else (0.0, 0.0, 0.0, 0.0)
        encoded.append(rows if box is None else tuple(shift(row, x, y) for row in rows))
    return encoded


class _Describer:
    """The descriptor and the transforms of one branch."""

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
                    expected="it before all others: they work on its output",
                    actual=", ".join(other.name for other in branch.transforms),
                    fix="put it first",
                )

    def check_spaces(self, backbone: str) -> None:
        """Refuse a transform that was learnt in another space: it is meaningless here, even with equal dimensions."""
        for number, transform in enumerate(self._transforms):
            learnt = getattr(transform, "space", "")
            given = _fingerprint(backbone, *self.fingerprints[: number + 1])
            reduce = _without_scales if getattr(transform, "any_scale", False) else _without_regions
            if learnt and reduce(learnt) != reduce(given):
                raise SpaceMismatch(
                    f"the transform {transform.fingerprint} was learnt from descriptors of another kind",
                    expected=learnt,
                    actual=given,
                    fix="learn it from a collection that is encoded in this way, with `resight whiten`",
                )

    def scales(self, role: Role) -> tuple[float, ...]:
        first = self._transforms[0] if self._transforms else None
        return tuple(first.scales(role)) if first is not None and hasattr(first, "scales") else (1.0,)

    def describe(self, features: Sequence[Features], role: Role) -> Descriptors:
        """`features` are those of one picture, one for each scale."""
        parts = [self._descriptor.describe(one, role) for one in features]
        rows = parts[0] if len(parts) == 1 else _join_scales(parts)
        for transform in self._transforms:
            rows = transform.apply(rows, role)
        return rows


class RegionFinder:
    """The regions of a picture for one branch; without a source, the whole picture."""

    def __init__(self, source: "RegionSource | None") -> None:
        self._source = source
        self.has_source = source is not None
        self.fingerprints = [f"{REGIONS}{source.fingerprint}"] if source else []
        self.finest = source.finest if source else 1.0

    def find(self, picture: Picture) -> tuple[Box | None, ...]:
        """Boxes; None stands for the whole picture."""
        if self._source is None:
            return (None,)
        boxes = choose_regions(self._source.propose(picture), picture.size).tolist()
        whole = [0, 0, *picture.size]
        return tuple(None if box == whole else (box[0], box[1], box[2], box[3]) for box in boxes)


def build_region_finders(choices: Sequence[Choice | None]) -> list[RegionFinder]:
    """One for each branch; branches with equal choices share one."""
    distinct: list[Choice | None] = []
    for choice in choices:
        if choice not in distinct:
            distinct.append(choice)
    built = [RegionFinder(_build_source(choice) if choice else None) for choice in distinct]
    return [built[distinct.index(choice)] for choice in choices]


def _build_source(choice: Choice) -> "RegionSource":
    from resight.encode.descriptors import regions  # most recipes describe whole images

    return regions.build(choice.name, **choice.settings)


@dataclass(frozen=True)
class RegionedPicture:
    """A picture and its regions for each branch."""

    picture: Picture
    boxes: tuple[tuple[Box | None, ...], ...]

    def crop(self, box: Box | None) -> Picture:
        return self.picture if box is None else crop(self.picture, box)

    def outline(self, box: Box | None) -> Box:
        """The box of the original that `crop` shows, in whole pixels."""
        width, height = self.picture.size
        return (0.0, 0.0, float(width), float(height)) if box is None else clip(box, (width, height))


def batch_regions(pictures: Sequence[Picture], finders: Sequence[RegionFinder]) -> Iterator[list[RegionedPicture]]:
    """Pictures whose regions number at most BATCH together, or one picture that has more."""
    batch: list[RegionedPicture] = []
    held = 0
    for picture in pictures:
        found = {finder: finder.find(picture) for finder in finders}
        count = len({box for boxes in found.values() for box in boxes})
        if batch and held + count > BATCH:
            yield batch
            batch, held = [], 0
        batch.append(RegionedPicture(picture, tuple(found[finder] for finder in finders)))
        held += count
    if batch:
        yield batch


def _join_scales(parts: Sequence[Descriptors]) -> Descriptors:
    """The rows of one picture at several scales as rows of one image; only vectors can be pooled over scales."""
    vectors = np.concatenate([part.vectors for part in parts])
    return Descriptors(parts[0].ids, vectors, np.zeros(len(vectors), np.int32))


def _without_regions(space: str) -> str:
    """The space of whole images: a transform learnt from them also fits regions, and the other way round."""
    return space.rpartition(" #")[0].partition(f" > {REGIONS}")[0]


def _without_scales(space: str) -> str:
    """The space of whole images at any scale, for a transform that says so."""
    return " > ".join(part for part in _without_regions(space).split(" > ") if not part.startswith(SCALES))


def _fingerprint(*parts: str) -> str:
    """Readable and exact: the parts themselves, and a hash to compare by."""
    text = " > ".join(parts)
    return f"{text} #{fingerprint(text, 8)}"

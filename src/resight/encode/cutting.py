"""Pictures and region sources in, pictures with their regions for each branch out, a few at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from resight.crops import clip, crop
from resight.encode.descriptors import regions
from resight.encode.descriptors.regions import RegionSource
from resight.encode.region_boxes import choose_regions
from resight.types import Box, Choice, Picture

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

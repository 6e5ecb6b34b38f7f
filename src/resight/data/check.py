"""A Dataset in, what is in it and what is wrong with it out (`check`). Every image is decoded; nothing is written."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from resight.data.decode import Decoded, decode
from resight.data.images import read_file, reason
from resight.errors import ImageError
from resight.types import Dataset, ImageRef, Skipped

MAX_SIDE = 256  # enough to prove that an image decodes


@dataclass(frozen=True)
class DataCheck:
    database: int
    queries: int
    queries_with_truth: int
    labels: int
    missing: tuple[Skipped, ...]  # named, but not there
    unreadable: tuple[Skipped, ...]
    skipped: tuple[Skipped, ...]  # passed over while the images were listed
    duplicates: tuple[tuple[str, ...], ...]  # ids of different files with the same bytes
    modes: Mapping[str, int]  # how many images keep their pixels as RGB, L, CMYK, I;16 (16-bit grey), …
    rotated: int  # images that EXIF turns or mirrors
    with_position: int  # images with lat and lon, from the data set or from EXIF
    smallest: tuple[int, int] | None  # width, height of the image with the fewest pixels
    largest: tuple[int, int] | None

    @property
    def ok(self) -> bool:
        return not (self.missing or self.unreadable or self.skipped)


def check(dataset: Dataset, progress: Callable[[int, int], None] | None = None) -> DataCheck:
    """Look at every image of `dataset` once; `progress(done, total)` is called after each."""
    files: dict[Path, ImageRef] = {}
    for ref in (*dataset.database, *dataset.queries):
        files.setdefault(ref.path, ref)  # an image in two roles, or with two boxes, is one file
    missing: list[Skipped] = []
    unreadable: list[Skipped] = []
    same: dict[str, list[str]] = defaultdict(list)
    modes: Counter[str] = Counter()
    sizes: list[tuple[int, int]] = []
    rotated = with_position = 0
    for done, ref in enumerate(files.values(), start=1):
        try:
            data, _ = read_file(ref.path)
            image = decode(data, str(ref.path), MAX_SIDE)
        except ImageError as error:
            target = missing if isinstance(error.__cause__, FileNotFoundError) else unreadable
            target.append(Skipped(str(ref.path), reason(error, ref.path)))
        else:
            same[hashlib.sha256(data).hexdigest()].append(ref.id)
            modes[image.mode] += 1
            sizes.append(image.size)
            rotated += image.orientation != 1
            with_position += _has_position(ref, image)
        if progress:
            progress(done, len(files))
    return DataCheck(
        database=len(dataset.database),
        queries=len(dataset.queries),
        queries_with_truth=sum(any(j.grades.values()) for j in dataset.judgements.values()),
        labels=len({ref.attributes["label"] for ref in dataset.database if "label" in ref.attributes}),
        missing=tuple(missing),
        unreadable=tuple(unreadable),
        skipped=dataset.skipped,
        duplicates=tuple(sorted(tuple(ids) for ids in same.values() if len(ids) > 1)),
        modes=dict(modes.most_common()),
        rotated=rotated,
        with_position=with_position,
        smallest=min(sizes, key=_area, default=None),
        largest=max(sizes, key=_area, default=None),
    )


def _has_position(ref: ImageRef, image: Decoded) -> bool:
    return {"lat", "lon"} <= ref.attributes.keys() or image.position is not None


def _area(size: tuple[int, int]) -> int:
    return size[0] * size[1]

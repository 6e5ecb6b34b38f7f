"""Check a data set (`check_source`, `check`), and export the boxes of its ground truth (`export_boxes`).

A check takes a Dataset, decodes every image and counts what it finds; it writes nothing. `check_source` loads the data
set first, compares it with the counts and checksums that its makers published, and lists the downloads if that fails.

The box file has one line per box, in pixels of the original image, in the order of the database. A box that several
queries share is written once.

    id,x0,y0,x1,y1
    street/0001.jpg,120,80,310,240
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight.data.decode import Decoded
from resight.data.image_files import decode_bytes, read_file, reason
from resight.data.sets import DataSource, Published
from resight.errors import ImageError, InputError, ManifestError
from resight.files import remote
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer
from resight.files.fingerprint import fingerprint
from resight.types import Box, Dataset, ImageRef, Skipped

MAX_SIDE = 256  # enough to prove that an image decodes
COLUMNS = ("id", "x0", "y0", "x1", "y1")  # of the box file

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Fact:
    """A published count or checksum and the one found; None if the file does not exist."""

    name: str
    published: int | str
    found: int | str | None

    @property
    def ok(self) -> bool:
        return self.published == self.found


@dataclass(frozen=True)
class DataCheck:
    database: int
    queries: int
    queries_with_truth: int
    labels: int
    missing: tuple[Skipped, ...]  # named in the data set, but without a file
    unreadable: tuple[Skipped, ...]
    skipped: tuple[Skipped, ...]  # left out while the images were listed
    duplicates: tuple[tuple[str, ...], ...]  # ids of different files with the same bytes
    modes: Mapping[str, int]  # pixel format (RGB, L, CMYK, I;16 for 16-bit grey, …) → number of images
    rotated: int  # images that EXIF rotates or mirrors
    with_position: int  # images with lat and lon, from the data set or from EXIF
    smallest: tuple[int, int] | None  # width, height of the image with the fewest pixels
    largest: tuple[int, int] | None
    decoded: bool = True  # False: the check only looked for missing files
    facts: tuple[Fact, ...] = ()  # published counts and checksums
    published: Published | None = None

    @property
    def ok(self) -> bool:
        wrong = self.missing or self.unreadable or self.skipped
        return not wrong and all(fact.ok for fact in self.facts)


def check_source(source: DataSource, root: Path, decoding: bool = True, progress: Progress | None = None) -> DataCheck:
    """Load a data set, check every image, and compare the counts and checksums with the published ones."""
    published: Published | None = getattr(source, "published", None)
    try:
        dataset = source.load(root)
    except InputError as error:
        if published is None:
            raise
        raise _add_downloads(error, published) from error
    found = check(dataset, progress, decoding)
    if published is None:
        return found
    return replace(found, facts=compare(dataset, published, root), published=published)


def compare(dataset: Dataset, published: Published, root: Path) -> tuple[Fact, ...]:
    """The published counts and checksums, each with the one found."""
    counted = count(dataset)
    counts = [Fact(name, number, counted.get(name)) for name, number in published.counts.items()]
    return (*counts, *(Fact(file, sum, _hash(root, file, sum)) for file, sum in published.checksums.items()))


def count(dataset: Dataset) -> dict[str, int]:
    """All counts of a data set that need no image, by name."""
    judgements = dataset.judgements.values()
    labels = {ref.attributes["label"] for ref in dataset.database if "label" in ref.attributes}
    return {
        "database": len(dataset.database),
        "queries": len(dataset.queries),
        "queries_with_truth": sum(any(judgement.grades.values()) for judgement in judgements),
        "labels": len(labels),
        "positives": sum(sum(grade > 0 for grade in judgement.grades.values()) for judgement in judgements),
        "ignored": sum(len(judgement.ignored) for judgement in judgements),
        "boxes": sum(len(judgement.boxes) for judgement in judgements),
    }


def check(dataset: Dataset, progress: Progress | None = None, decoding: bool = True) -> DataCheck:
    """Check every image of `dataset` once and call `progress(done, total)` after each.

    Without `decoding`, the check only looks whether the files exist: millions of images take minutes, not hours.
    """
    files: dict[Path, ImageRef] = {}
    for ref in (*dataset.database, *dataset.queries):
        files.setdefault(ref.path, ref)  # an image in two roles, or with two boxes, is one file
    missing: list[Skipped] = []
    unreadable: list[Skipped] = []
    same: dict[str, list[str]] = defaultdict(list)
    modes: Counter[str] = Counter()
    sizes: list[tuple[int, int]] = []
    rotated = with_position = 0
    for ref in _track(list(files.values()), progress):
        if not decoding:
            if not (remote.stat(ref.path) if remote.is_remote(ref.path) else ref.path.is_file()):
                missing.append(Skipped(str(ref.path), "there is no such file"))
            continue
        try:
            data, _ = read_file(ref.path)
            image = decode_bytes(data, str(ref.path), MAX_SIDE)
        except ImageError as error:
            target = missing if isinstance(error.__cause__, FileNotFoundError) else unreadable
            target.append(Skipped(str(ref.path), reason(error, ref.path)))
            continue
        same[fingerprint(data)].append(ref.id)
        modes[image.mode] += 1
        sizes.append(image.size)
        rotated += image.orientation != 1
        with_position += _has_position(ref, image)
    counted = count(dataset)
    return DataCheck(
        database=counted["database"],
        queries=counted["queries"],
        queries_with_truth=counted["queries_with_truth"],
        labels=counted["labels"],
        missing=tuple(missing),
        unreadable=tuple(unreadable),
        skipped=dataset.skipped,
        duplicates=tuple(sorted(tuple(ids) for ids in same.values() if len(ids) > 1)),
        modes=dict(modes.most_common()),
        rotated=rotated,
        with_position=with_position,
        smallest=min(sizes, key=_area, default=None),
        largest=max(sizes, key=_area, default=None),
        decoded=decoding,
    )


def _track(refs: Sequence[ImageRef], progress: Progress | None) -> Iterator[ImageRef]:
    """Yield each image, and report it as done when the next one is requested."""
    for done, ref in enumerate(refs, start=1):
        yield ref
        if progress:
            progress(done, len(refs))


def _has_position(ref: ImageRef, image: Decoded) -> bool:
    return {"lat", "lon"} <= ref.attributes.keys() or image.position is not None


def _area(size: tuple[int, int]) -> int:
    return size[0] * size[1]


def _hash(root: Path, file: str, published: str) -> str | None:
    """The checksum of a file in the root or in a folder directly below it; None if there is no such file."""
    kind = published.partition(":")[0]
    for path in (root / file, *sorted(root.glob(f"*/{file}"))):
        if path.is_file():
            with path.open("rb") as data:
                return f"{kind}:{hashlib.file_digest(data, kind).hexdigest()}"
    return None


def _add_downloads(error: InputError, published: Published) -> InputError:
    """The same error with the list of downloads, which replaces a fix that only points to this list."""
    lines = [f"download by hand ({published.licence}):", *(f"  {item}" for item in published.downloads)]
    if "resight data check" not in error.fix:
        lines = [f"{error.fix}; or {lines[0]}", *lines[1:]]
    return type(error)(error.problem, expected=error.expected, actual=error.actual, fix="\n    ".join(lines))


def list_boxes(dataset: Dataset) -> dict[str, list[Box]]:
    """The distinct boxes of each database image that has any."""
    found: dict[str, dict[Box, None]] = {ref.id: {} for ref in dataset.database}
    for judgement in dataset.judgements.values():
        for name, box in judgement.boxes.items():
            if name in found:
                found[name][box] = None
    boxes = {name: list(some) for name, some in found.items() if some}
    if not boxes:
        raise ManifestError(
            f"{dataset.name} has no boxes",
            expected="positives with boxes",
            actual=f"{len(dataset.database):,} database images, none with a box",
            fix="in a manifest, fill the column positive_boxes; docs/guides/own-data.md shows how",
        )
    return boxes


def export_boxes(boxes: Mapping[str, Sequence[Box]], path: Path) -> None:
    """Write the box file."""
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file, "\n")
        table.writerow(COLUMNS)
        table.writerows((name, *(f"{side:.10g}" for side in box)) for name, some in boxes.items() for box in some)

"""Adding images: what is new or changed is decoded, encoded and stored, batch by batch.

A batch that was written stays, whatever happens next; running the same command again goes on where it stopped.
Files that cannot be read are listed with the reason and do not stop the others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from resight import places
from resight.collection.choosing import Chooser
from resight.collection.known_images import KnownImages, describe
from resight.crops import clip, crop
from resight.data import images
from resight.data.sets import folder as folders
from resight.data.sets import manifest
from resight.encode.encoder import Encoder
from resight.encode.extract import Encoded, extract
from resight.encode.region_rows import move
from resight.errors import BoxError, ImageError, InputError
from resight.store import ImageRecord, Record, Store
from resight.types import Box, Descriptors, ImageRef, Picture, Role, Skipped

MANIFESTS = (".csv", ".jsonl", ".ndjson", ".json")
SMALLEST_BATCH, LARGEST_BATCH = 32, 512
Source = str | Path | Iterable[ImageRef]
Progress = Callable[[int, int], None]  # images dealt with so far, images in all


@dataclass(frozen=True)
class AddReport:
    added: int
    updated: int
    unchanged: int
    skipped: tuple[Skipped, ...]


def add(
    sources: Sequence[Source], encoder: Encoder, store: Store, progress: Progress | None = None, tidy: bool = True
) -> AddReport:
    """Bring the collection up to date with the sources. The caller holds the writer lock.

    With `tidy`, many small files become few at the end.
    """
    held = [hold(source) for source in sources]
    # Two passes over a folder cost little beside encoding, and one list of 200,000 paths would not be little.
    return _Adding(encoder, store, progress, count_images(held)).run(held, tidy)


def encode_region(picture: Picture, box: Box | None, encoder: Encoder, role: Role) -> tuple[Descriptors, ...]:
    """Descriptors of a picture or of the part in a box; places are in pixels of the whole original either way."""
    (rows,) = encode_regions([picture], [box], encoder, role)
    return rows


def encode_regions(
    pictures: Sequence[Picture], boxes: Sequence[Box | None], encoder: Encoder, role: Role
) -> list[tuple[Descriptors, ...]]:
    parts = [picture if box is None else crop(picture, box) for picture, box in zip(pictures, boxes, strict=True)]
    encoded = []
    for part, box, rows in zip(parts, boxes, encoder.encode(parts, role), strict=True):
        x, y, _, _ = part.ref.box if box is not None and part.ref.box is not None else (0.0, 0.0, 0.0, 0.0)
        encoded.append(rows if box is None else tuple(move(row, x, y) for row in rows))
    return encoded


class Tally:
    """What has become of the images so far; every change is told to `progress`."""

    def __init__(self, known: KnownImages, progress: Progress | None, total: int) -> None:
        self._known = known
        self._progress = progress
        self._total = total
        self._skipped: list[Skipped] = []
        self._added = self._updated = self._unchanged = 0

    def store(self, images: Sequence[ImageRecord]) -> None:
        updated = sum(self._known.note(image) for image in images)
        self._updated += updated
        self._added += len(images) - updated
        self._tell()

    def pass_over(self) -> None:
        self._unchanged += 1
        self._tell()

    def skip(self, skipped: Skipped) -> None:
        self._skipped.append(skipped)
        self._tell()

    def report(self) -> AddReport:
        return AddReport(self._added, self._updated, self._unchanged, tuple(self._skipped))

    def _tell(self) -> None:
        done = self._added + self._updated + self._unchanged + len(self._skipped)
        if self._progress:
            self._progress(done, max(self._total, done))


class _Adding:
    def __init__(self, encoder: Encoder, store: Store, progress: Progress | None, total: int) -> None:
        self._encoder = encoder
        self._store = store
        store.refresh()
        known = KnownImages(store.snapshot())
        self._tally = Tally(known, progress, total)
        self._chooser = Chooser(known, self._tally.pass_over)
        self._commits = 0

    def run(self, sources: Sequence[Source], tidy: bool) -> AddReport:
        for source in sources:
            batch = min(max(SMALLEST_BATCH, len(self._store) // 32), LARGEST_BATCH)
            extract(
                self._chooser.choose(list_refs(source), given=is_given(source)),
                lambda ref: read_picture(ref, self._encoder),
                lambda pictures: encode_pictures(pictures, self._encoder),
                self._write,
                self._tally.skip,
                batch=batch,
                together=self._encoder.batch,
            )
        if tidy and (self._commits > 8 or (self._commits and self._store.is_scattered)):
            self._store.compact()
        return self._tally.report()

    def _write(self, batch: list[Encoded]) -> None:
        records = [Record(make_record(picture), rows) for picture, rows in batch]
        self._store.write(records)
        self._commits += 1
        self._tally.store([record.image for record in records])


def read_picture(ref: ImageRef | Skipped, encoder: Encoder) -> Picture | Skipped:
    """The picture as the encoder needs it, or why it cannot be had."""
    if isinstance(ref, Skipped):
        return ref
    try:
        picture = images.read(ref, max_side=None if ref.box else encoder.max_side)
        if ref.box is not None:
            clip(ref.box, picture.size, ref.id)
    except (ImageError, BoxError) as error:
        return Skipped(places.to_url(ref.path), images.reason(error, ref.path))
    return picture


def encode_pictures(pictures: Sequence[Picture], encoder: Encoder) -> list[tuple[Descriptors, ...]]:
    """Rows to store: of each picture whole, or of the part in its box."""
    return encode_regions(pictures, [picture.ref.box for picture in pictures], encoder, "database")


def count_images(sources: Sequence[Source]) -> int:
    """How many there are to deal with; an InputError when there are none."""
    total = sum(1 for source in sources for _ in list_refs(source))
    if total == 0:
        named = ", ".join(str(source) for source in sources if isinstance(source, (str, Path))) or "what was given"
        raise InputError(
            f"no images in {named}",
            expected=f"files ending in {', '.join(sorted(images.SUFFIXES))}",
            actual="none",
            fix="check the path; hidden files and folders are left out",
        )
    return total


def hold(source: Source) -> str | Path | list[ImageRef]:
    """A source that can be run through twice, as counting first and then reading does."""
    if isinstance(source, (str, Path)):
        return source
    refs = list(source)
    for ref in refs:
        if not isinstance(ref, ImageRef):
            raise InputError(
                "cannot add that",
                expected="paths, or one iterable of ImageRef",
                actual=f"an iterable with a {type(ref).__name__}",
                fix='e.g. add("photos/", "more/") or add([ImageRef("a", Path("a.jpg"))])',
            )
    return refs


def is_given(source: Source) -> bool:
    """Whether the caller has said the ids."""
    return not isinstance(source, (str, Path))


def list_refs(source: Source) -> Iterator[ImageRef | Skipped]:
    """The images of a folder, an image file, a manifest, or an iterable of ImageRef."""
    if not isinstance(source, (str, Path)):
        return iter(source)
    path = Path(source)
    if path.suffix.lower() in MANIFESTS and (places.is_remote(path) or path.is_file()):
        return manifest.refs(path)
    return folders.walk(path)


def make_record(picture: Picture) -> ImageRecord:
    ref = picture.ref
    return ImageRecord(
        ref.id, ref.path, picture.sha256, picture.bytes, picture.modified_ns, picture.size, describe(ref)
    )

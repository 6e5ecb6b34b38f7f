"""Adding images: what is new or has changed is decoded, encoded and stored, batch by batch.

In: lists of images, an encoder and a store. Out: an AddReport. A batch that was written stays, whatever happens next:
the same command, run again, goes on where the first one stopped. The report lists files that cannot be read, each with
the reason; they do not stop the others.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from resight.boxes import clip
from resight.collection.change_detection import ChangeDetector, KnownImages, list_attributes
from resight.collection.image_list import ImageList
from resight.data import image_files
from resight.encode.encoder import Encoder, encode_stored
from resight.encode.extract import Encoded, Rows, encode_ahead, extract
from resight.errors import BoxError, ImageError
from resight.files import remote
from resight.store import ImageRecord, Record, Store
from resight.types import ImageRef, Picture, Skipped

SMALLEST_BATCH, LARGEST_BATCH = 32, 512
Progress = Callable[[int, int], None]  # images done so far, images in all
ReadImage = Callable[[ImageRef, int | None], Picture]  # a file and the longer side that it may be reduced to


@dataclass(frozen=True)
class AddReport:
    """What `Collection.add` did.

    Attributes:
        added: Number of new images.
        updated: Number of images whose file or attributes had changed.
        unchanged: Number of images that the collection held already.
        skipped: Files that could not be read, each with the reason.
        moved: Number of images, among the unchanged, whose file was elsewhere before.
        not_images: Number of files in the folders that are no images, such as texts; they are left out.

    Examples:
        >>> import resight
        >>> report = resight.open("photos.resight").add("photos/")
        >>> report.added, report.updated, report.unchanged, len(report.skipped)
        (0, 0, 10, 0)
    """

    added: int
    updated: int
    unchanged: int
    skipped: tuple[Skipped, ...]
    moved: int = 0
    not_images: int = 0


@dataclass(frozen=True)
class EncodedImages:
    """Images that were read and encoded before they are added, by id: adding them locks the collection briefly."""

    pictures: Mapping[str, Picture | Skipped]
    rows: Mapping[str, Rows]

    def read(self, ref: ImageRef | Skipped) -> Picture | Skipped | None:
        return self.pictures.get(ref.id) if isinstance(ref, ImageRef) else None

    def encode(self, pictures: Sequence[Picture], encoder: Encoder) -> Sequence[Rows]:
        unknown = [one for one in pictures if one.ref.id not in self.rows]
        rows = iter(encode_stored(unknown, encoder) if unknown else ())
        return [self.rows[one.ref.id] if one.ref.id in self.rows else next(rows) for one in pictures]


def encode_images(refs: Sequence[ImageRef], encoder: Encoder, read: ReadImage = image_files.read) -> EncodedImages:
    """Read and encode images. Their ids are unique."""

    def encode(pictures: Sequence[Picture]) -> Sequence[Rows]:
        return encode_stored(pictures, encoder)

    encoded = encode_ahead(
        refs, lambda ref: read_picture(ref, encoder, read), encode, encoder.batch, os.cpu_count() or 1
    )
    done = list(zip(refs, encoded, strict=True))
    pictures = {ref.id: one if isinstance(one, Skipped) else one[0] for ref, one in done}
    return EncodedImages(pictures, {ref.id: one[1] for ref, one in done if not isinstance(one, Skipped)})


def add(
    lists: Sequence[ImageList],
    encoder: Encoder,
    store: Store,
    progress: Progress | None = None,
    tidy: bool = True,
    read: ReadImage = image_files.read,
    encoded: EncodedImages | None = None,
) -> AddReport:
    """Bring the collection up to date with the images. The caller holds the writer lock.

    With `tidy`, the store merges many small files at the end. Images in `encoded` are not read and encoded again.
    """
    ahead = encoded or EncodedImages({}, {})
    store.refresh()
    known = KnownImages(store.snapshot())
    tally = Tally(known, progress, sum(map(len, lists)))
    detector = ChangeDetector(known, tally.count_unchanged)
    commits = 0

    def write(batch: list[Encoded]) -> None:
        nonlocal commits
        records = [Record(make_record(picture), rows) for picture, rows in batch]
        store.write(records)
        commits += 1
        tally.count_stored([record.image for record in records])

    for images in lists:
        extract(
            detector.detect(images, ids_are_given=images.ids_are_given),
            lambda ref: ahead.read(ref) or read_picture(ref, encoder, read),
            lambda pictures: ahead.encode(pictures, encoder),
            write,
            tally.count_skipped,
            batch=min(max(SMALLEST_BATCH, len(store) // 32), LARGEST_BATCH),
            together=encoder.batch,
            count=tally.count_encoded,
        )
    if tidy and (commits > 8 or (commits and store.is_scattered)):
        store.compact()
    return tally.report(lists)


class Tally:
    """Counts what has become of the images, and reports every change to `progress`."""

    def __init__(self, known: KnownImages, progress: Progress | None, total: int) -> None:
        self._known = known
        self._progress = progress
        self._total = total
        self._skipped: list[Skipped] = []
        self._added = self._updated = self._unchanged = self._encoded = 0

    def count_encoded(self) -> None:
        """One image more whose rows wait to be written."""
        self._encoded += 1
        self._report_progress()

    def count_stored(self, images: Sequence[ImageRecord]) -> None:
        updated = sum(self._known.add_written(image) for image in images)
        self._updated += updated
        self._added += len(images) - updated
        self._encoded = max(self._encoded - len(images), 0)  # a cluster reports rows only when they are stored
        self._report_progress()

    def count_unchanged(self) -> None:
        self._unchanged += 1
        self._report_progress()

    def count_skipped(self, skipped: Skipped) -> None:
        self._skipped.append(skipped)
        self._report_progress()

    def report(self, lists: Sequence[ImageList]) -> AddReport:
        others = sum(images.not_images for images in lists)
        return AddReport(self._added, self._updated, self._unchanged, tuple(self._skipped), not_images=others)

    def _report_progress(self) -> None:
        done = self._added + self._updated + self._unchanged + len(self._skipped) + self._encoded
        if self._progress:
            self._progress(done, max(self._total, done))


def read_picture(ref: ImageRef | Skipped, encoder: Encoder, read: ReadImage = image_files.read) -> Picture | Skipped:
    """The picture as the encoder needs it, or why it cannot be read."""
    if isinstance(ref, Skipped):
        return ref
    try:
        picture = read(ref, None if ref.box else encoder.max_side)
        if ref.box is not None:
            clip(ref.box, picture.size, ref.id)
    except (ImageError, BoxError) as error:
        return Skipped(remote.to_url(ref.path), image_files.reason(error, ref.path))
    return picture


def make_record(picture: Picture) -> ImageRecord:
    ref = picture.ref
    return ImageRecord(
        ref.id, ref.path, picture.sha256, picture.bytes, picture.modified_ns, picture.size, list_attributes(ref)
    )

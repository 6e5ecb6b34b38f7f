"""Adding images: what is new or changed is decoded, encoded and stored, batch by batch.

A batch that was written stays, whatever happens next; running the same command again goes on where it stopped.
Files that cannot be read are listed with the reason and do not stop the others.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight.collection.known_images import KnownImages, describe
from resight.crops import clip, crop
from resight.data import images
from resight.data.sets import folder as folders
from resight.data.sets import manifest
from resight.encode.encoder import Encoder
from resight.encode.extract import Encoded, extract, gather
from resight.encode.region_rows import move
from resight.errors import BoxError, CollectionError, ImageError, InputError
from resight.store import ImageRecord, Record, Store
from resight.types import Box, Descriptors, ImageRef, Picture, Role, Skipped

MANIFESTS = (".csv", ".jsonl", ".ndjson", ".json")
SMALLEST_BATCH, LARGEST_BATCH = 32, 512
LOOKED_UP = 512  # images at a time
Source = str | Path | Iterable[ImageRef]
Progress = Callable[[int, int], None]  # images dealt with so far, images in all


@dataclass(frozen=True)
class AddReport:
    added: int
    updated: int
    unchanged: int
    skipped: tuple[Skipped, ...]


def add(sources: Sequence[Source], encoder: Encoder, store: Store, progress: Progress | None = None) -> AddReport:
    """Bring the collection up to date with the sources. The caller holds the writer lock."""
    # An iterator could be run through once only, and images are counted first.
    return _Adding(encoder, store, progress).run([_hold(source) for source in sources])


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


class _Adding:
    def __init__(self, encoder: Encoder, store: Store, progress: Progress | None) -> None:
        self._encoder = encoder
        self._store = store
        self._progress = progress
        store.refresh()
        self._known = KnownImages(store.snapshot())
        self._skipped: list[Skipped] = []
        self._added = self._updated = self._unchanged = self._commits = 0
        self._total = 0

    def run(self, sources: Sequence[Source]) -> AddReport:
        # Two passes over a folder cost little beside encoding, and one list of 200,000 paths would not be little.
        self._total = count_images(sources)
        for source in sources:
            batch = min(max(SMALLEST_BATCH, len(self._store) // 32), LARGEST_BATCH)
            extract(
                self._choose(source),
                self._read,
                self._encode,
                self._write,
                self._skip,
                batch=batch,
                together=self._encoder.batch,
            )
        if self._commits > 8 or (self._commits and self._store.is_scattered):
            self._store.compact()
        return AddReport(self._added, self._updated, self._unchanged, tuple(self._skipped))

    def _choose(self, source: Source) -> Iterator[ImageRef | Skipped]:
        """What is new or changed, and what cannot be an image."""
        given = not isinstance(source, (str, Path))
        for some in gather(list_refs(source), LOOKED_UP):
            self._known.look_up(name for ref in some if isinstance(ref, ImageRef) for name in _list_names(ref))
            for ref in some:
                if isinstance(ref, Skipped):
                    yield ref
                elif self._is_unchanged(named := self._name(ref, given)):
                    self._unchanged += 1
                    self._report()
                else:
                    yield named

    def _read(self, ref: ImageRef | Skipped) -> Picture | Skipped:
        if isinstance(ref, Skipped):
            return ref
        try:
            picture = images.read(ref, max_side=None if ref.box else self._encoder.max_side)
            if ref.box is not None:
                clip(ref.box, picture.size, ref.id)
        except (ImageError, BoxError) as error:
            return Skipped(str(ref.path), images.reason(error, ref.path))
        return picture

    def _encode(self, pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
        return encode_regions(pictures, [picture.ref.box for picture in pictures], self._encoder, "database")

    def _write(self, batch: list[Encoded]) -> None:
        records = [Record(make_record(picture), rows) for picture, rows in batch]
        self._store.write(records)
        self._commits += 1
        updated = sum(self._known.note(record.image) for record in records)
        self._updated += updated
        self._added += len(batch) - updated
        self._report()

    def _name(self, ref: ImageRef, given: bool) -> ImageRef:
        """The id that an image gets: a file of the same relative name in another folder does not replace the first.

        An id that the caller or a manifest has `given` stays: the file has moved, the thing is the same.
        """
        ref = _straighten(ref)
        taken, longer = self._known.get(ref.id), _list_names(ref)[-1]
        if given or taken is None or taken.path == ref.path or longer == ref.id:
            return ref
        taken = self._known.get(longer)
        if taken is not None and taken.path != ref.path:
            raise CollectionError(
                f"two files would both be called {longer!r}",
                expected="ids that are unique within the collection",
                actual=f"{taken.path} and {ref.path}",
                fix="give ids of your own in a manifest, or use one collection for each folder",
            )
        return replace(ref, id=longer)

    def _is_unchanged(self, ref: ImageRef) -> bool:
        known = self._known.get(ref.id)
        if known is None or known.path != ref.path or not known.says(ref):
            return False
        try:
            status = ref.path.stat()
        except OSError:
            return False
        return (status.st_size, status.st_mtime_ns) == (known.bytes, known.modified_ns)

    def _skip(self, skipped: Skipped) -> None:
        self._skipped.append(skipped)
        self._report()

    def _report(self) -> None:
        done = self._added + self._updated + self._unchanged + len(self._skipped)
        if self._progress:
            self._progress(done, max(self._total, done))


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


def _hold(source: Source) -> str | Path | list[ImageRef]:
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


def list_refs(source: Source) -> Iterator[ImageRef | Skipped]:
    """The images of a folder, an image file, a manifest, or an iterable of ImageRef."""
    if not isinstance(source, (str, Path)):
        return iter(source)
    path = Path(source)
    if path.is_file() and path.suffix.lower() in MANIFESTS:
        return manifest.refs(path)
    return folders.walk(path)


def make_record(picture: Picture) -> ImageRecord:
    ref = picture.ref
    return ImageRecord(
        ref.id, ref.path, picture.sha256, picture.bytes, picture.modified_ns, picture.size, describe(ref)
    )


def _list_names(ref: ImageRef) -> list[str]:
    """The id that an image has, and the longer one, with its folder, that it gets where the first is taken."""
    path = _straighten(ref).path.as_posix()
    if not path.endswith("/" + ref.id):
        return [ref.id]
    return [ref.id, f"{Path(path.removesuffix(ref.id).rstrip('/')).name}/{ref.id}"]


def _straighten(ref: ImageRef) -> ImageRef:
    return replace(ref, path=Path(os.path.abspath(ref.path)))  # noqa: PTH100 - without "..", but links as they are

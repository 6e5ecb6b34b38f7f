"""What a collection knows of the images that are being added: does one need to be encoded, or is it there already?

Only what is asked for is read, some images at a time, so that three new images cost as little in a large collection as
in a small one.

Which images of a source are new or have changed, and what each is called.

In: the images of a source, and what the collection knows of images. Out: those that have to be encoded, with the ids
that they get, and what cannot be an image.

Adding images: what is new or changed is decoded, encoded and stored, batch by batch.

A batch that was written stays, whatever happens next; running the same command again goes on where it stopped.
Files that cannot be read are listed with the reason and do not stop the others.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight.boxes import clip
from resight.data import image_files
from resight.data.folder_walk import walk
from resight.data.sets import manifest
from resight.encode.encoder import Encoder, encode_stored
from resight.encode.extract import Encoded, extract, gather
from resight.errors import BoxError, CollectionError, ImageError, InputError
from resight.files import remote
from resight.store import ImageRecord, Reader, Record, Store
from resight.types import Attribute, ImageRef, Picture, Skipped

EXIF = ("lat", "lon", "heading")


@dataclass(frozen=True)
class KnownImage:
    """What tells whether a stored image is still what a source says."""

    path: Path
    bytes: int
    modified_ns: int
    attributes: Mapping[str, Attribute]

    @classmethod
    def of(cls, record: ImageRecord) -> "KnownImage":
        return cls(record.path, record.bytes, record.modified_ns, record.attributes)

    def says(self, ref: ImageRef) -> bool:
        """Are the attributes those of the source? A position may have come from the image's own EXIF."""
        told = describe(ref)
        exif = set(EXIF) - ref.unsaid - set(told)
        return told == {name: value for name, value in self.attributes.items() if name not in exif}


class KnownImages:
    def __init__(self, reader: Reader) -> None:
        """`reader` shows the collection as it was before anything was added."""
        self._reader = reader
        self._looked_up: dict[str, KnownImage] = {}
        self._written: dict[str, KnownImage] = {}

    def look_up(self, names: Iterable[str]) -> None:
        """Read these, to be asked for next; the ones before are forgotten."""
        stored = [name for name in dict.fromkeys(names) if name in self._reader.stamps]
        self._looked_up = {record.id: KnownImage.of(record) for record in self._reader.metadata(stored)}

    def get(self, name: str) -> KnownImage | None:
        """Of an image that was looked up, or written since."""
        return self._written.get(name) or self._looked_up.get(name)

    def holds(self, name: str) -> bool:
        """Whether it is stored, looked up or not."""
        return name in self._written or name in self._reader.stamps

    def note(self, record: ImageRecord) -> bool:
        """That it was written; true when it was there before."""
        before = self.holds(record.id)
        self._written[record.id] = KnownImage.of(record)
        return before


def describe(ref: ImageRef) -> dict[str, Attribute]:
    """The attributes that are stored: those of the source, and the box when it names one."""
    box = {} if ref.box is None else {"box": ",".join(f"{side:g}" for side in ref.box)}
    return {**ref.attributes, **box}


LOOKED_UP = 512  # images at a time


class Chooser:
    def __init__(
        self,
        known: KnownImages,
        pass_over: Callable[[], None],
        foresee: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """`pass_over` is called for every image that is unchanged; `foresee`, with the ids that an image may get,
        before anything is decided about it."""
        self._known = known
        self._pass_over = pass_over
        self._foresee = foresee

    def choose(self, refs: Iterable[ImageRef | Skipped], *, given: bool) -> Iterator[ImageRef | Skipped]:
        """What is new or changed, and what cannot be an image; `given`: the caller has said the ids."""
        for some in gather(refs, LOOKED_UP):
            self._known.look_up(name for ref in some if isinstance(ref, ImageRef) for name in _list_names(ref))
            for ref in some:
                if isinstance(ref, Skipped):
                    yield ref
                    continue
                self._foresee(_list_names(ref))
                if self._is_unchanged(named := self._name(ref, given)):
                    self._pass_over()
                else:
                    yield named

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
        return (ref.listed or _look_up(ref.path)) == (known.bytes, known.modified_ns)


def _look_up(path: Path) -> tuple[int, int] | None:
    """Bytes and time of change; None where there is nothing, or nothing that would tell whether it has changed."""
    try:
        if remote.is_remote(path):
            status = remote.stat(path)
            return status if status is not None and status.modified_ns else None
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _list_names(ref: ImageRef) -> list[str]:
    """The id that an image has, and the longer one, with its folder, that it gets where the first is taken."""
    path = _straighten(ref).path.as_posix()
    if not path.endswith("/" + ref.id):
        return [ref.id]
    return [ref.id, f"{Path(path.removesuffix(ref.id).rstrip('/')).name}/{ref.id}"]


def _straighten(ref: ImageRef) -> ImageRef:
    if remote.is_remote(ref.path):
        return ref
    return replace(ref, path=Path(os.path.abspath(ref.path)))  # noqa: PTH100 - without "..", but links as they are


MANIFESTS = (".csv", ".jsonl", ".ndjson", ".json")
SMALLEST_BATCH, LARGEST_BATCH = 32, 512
Source = str | Path | Iterable[ImageRef]
Progress = Callable[[int, int], None]  # images dealt with so far, images in all
ReadImage = Callable[[ImageRef, int | None], Picture]  # a file and the longer side that it may be reduced to


@dataclass(frozen=True)
class AddReport:
    added: int
    updated: int
    unchanged: int
    skipped: tuple[Skipped, ...]


def add(
    sources: Sequence[Source],
    encoder: Encoder,
    store: Store,
    progress: Progress | None = None,
    tidy: bool = True,
    read: ReadImage = image_files.read,
) -> AddReport:
    """Bring the collection up to date with the sources. The caller holds the writer lock.

    With `tidy`, many small files become few at the end.
    """
    held = [hold(source) for source in sources]
    # Two passes over a folder cost little beside encoding, and one list of 200,000 paths would not be little.
    return _Adding(encoder, store, progress, count_images(held), read).run(held, tidy)


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
    def __init__(self, encoder: Encoder, store: Store, progress: Progress | None, total: int, read: ReadImage) -> None:
        self._encoder = encoder
        self._read = read
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
                lambda ref: read_picture(ref, self._encoder, self._read),
                lambda pictures: encode_stored(pictures, self._encoder),
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


def read_picture(ref: ImageRef | Skipped, encoder: Encoder, read: ReadImage = image_files.read) -> Picture | Skipped:
    """The picture as the encoder needs it, or why it cannot be had."""
    if isinstance(ref, Skipped):
        return ref
    try:
        picture = read(ref, None if ref.box else encoder.max_side)
        if ref.box is not None:
            clip(ref.box, picture.size, ref.id)
    except (ImageError, BoxError) as error:
        return Skipped(remote.to_url(ref.path), image_files.reason(error, ref.path))
    return picture


def count_images(sources: Sequence[Source]) -> int:
    """How many there are to deal with; an InputError when there are none."""
    total = sum(1 for source in sources for _ in list_refs(source))
    if total == 0:
        named = ", ".join(str(source) for source in sources if isinstance(source, (str, Path))) or "what was given"
        raise InputError(
            f"no images in {named}",
            expected=f"files ending in {', '.join(sorted(image_files.SUFFIXES))}",
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
    if path.suffix.lower() in MANIFESTS and (remote.is_remote(path) or path.is_file()):
        return manifest.refs(path)
    return walk(path)


def make_record(picture: Picture) -> ImageRecord:
    ref = picture.ref
    return ImageRecord(
        ref.id, ref.path, picture.sha256, picture.bytes, picture.modified_ns, picture.size, describe(ref)
    )

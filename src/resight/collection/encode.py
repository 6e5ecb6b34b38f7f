"""Every patch of a part of an image, encoded when it is asked for: what a collection does not keep.

A closer look at an answer shows where the thing is, and why it was found. The patches are those of the first branch of
tokens, or else of the first that pools the patches of regions.

Images → descriptors, as one collection wants them: rows to store, a Query, or every patch of a part of an image.

Networks are loaded when they are first needed, once, whichever thread comes first. All of it may then be used from many
threads at once.

A stored image as a query: what else shows the same thing as this one?

In: the id of an image. Out: a Query, from the rows that are stored where they are all that a query has, and else from
the file, encoded anew. Where the file is gone or has changed, an error says so.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from resight.boxes import clip
from resight.collection.add import ReadImage, encode_region
from resight.data import image_files
from resight.encode.encoder import Encoder
from resight.encode.feature_cache import FeatureCache
from resight.errors import BoxError, CollectionError, ImageError, SpaceMismatch
from resight.store import ImageRecord, Reader
from resight.types import Box, Branch, Choice, Descriptors, ImageRef, Picture, Query

TOKENS = ("tokens", "aggregated")


def find_patch_branch(branches: Sequence[Branch]) -> int | None:
    tokens = (number for number, branch in enumerate(branches) if branch.descriptor.name in TOKENS)
    pools = (number for number, branch in enumerate(branches) if branch.regions and branch.descriptor.name == "pooled")
    return next(tokens, next(pools, None))


def keep_all_patches(branch: Branch) -> Branch:
    """The branch with every patch of the whole image as a token of its own; what was learnt for pooled rows is not."""
    transforms = branch.transforms if branch.descriptor.name in TOKENS else ()
    return replace(branch, descriptor=Choice("tokens"), transforms=transforms, regions=None, query_regions=None)


def look_at(record: ImageRecord, region: Box | None, encoder: Encoder, read: ReadImage) -> Descriptors | None:
    """The patches of a region, or of the whole image; None where its file is gone or has changed."""
    box = region or record.ref.box
    try:
        picture = read(record.ref, None if box else encoder.max_side)
    except ImageError:
        return None
    return encode_region(picture, box, encoder, "database")[0] if picture.sha256 == record.sha256 else None


Image = str | Path | ImageRef | Picture
Made = TypeVar("Made")


class Encoding:
    def __init__(
        self,
        branches: Sequence[Branch],
        spaces: Sequence[str],
        cache: FeatureCache | None,
        what: str,
        read: ReadImage = image_files.read,
    ) -> None:
        """`spaces` are those that the rows have to have; `what` is whose they are, for an error.

        `read` decodes image files: those of queries, and those of stored images.
        """
        self.read = read
        self.branches = tuple(branches)
        self.patch_branch = find_patch_branch(branches)
        self._spaces = tuple(spaces)
        self._cache = cache
        self._what = what
        self._lock = threading.RLock()

    def encode_query(self, image: Image, box: Box | None = None) -> Query:
        encoder = self._once(lambda: self._query_encoder)
        picture = read_query(image, None if box else encoder.query_side, self.read)
        box = box or picture.ref.box
        if box is not None and len(box) != 4:
            raise BoxError("not a box", expected="x0, y0, x1, y1", actual=f"{len(box)} numbers", fix="give four")
        width, height = picture.size
        outline = (0.0, 0.0, float(width), float(height)) if box is None else clip(box, picture.size, picture.ref.id)
        count = len(self.branches)
        rows = encode_region(picture, box, encoder, "query")
        patches = next(iter(rows[count:]), None)
        return Query(picture.ref.id, picture.size, outline, rows[:count], picture.ref.attributes, patches)

    def look_at(self, record: ImageRecord, region: Box | None) -> Descriptors | None:
        """Every patch of an image, or of a region of it; None where that cannot be done."""
        encoder = self._once(lambda: self._patch_encoder)
        return None if encoder is None else look_at(record, region, encoder, self.read)

    @property
    def encoder(self) -> Encoder:
        """For rows to store."""
        return self._once(lambda: self._encoder)

    @property
    def query_side(self) -> int | None:
        """The side that the picture of a query may be reduced to when it is decoded whole."""
        return self._once(lambda: self._query_encoder).query_side

    @property
    def stores_queries(self) -> bool:
        """Whether what is stored of an image is all that a query of it would have.

        A query may be cut in another way than the images, be described otherwise, or need its patches, too.
        """
        return self._once(lambda: self._stores_queries)

    def _once(self, make: Callable[[], Made]) -> Made:
        with self._lock:
            return make()

    @cached_property
    def _encoder(self) -> Encoder:
        encoder = Encoder(self.branches, self._cache)
        if encoder.spaces != self._spaces:
            raise SpaceMismatch(
                f"{self._what} was encoded in a way that is not available here",
                expected=" | ".join(self._spaces),
                actual=" | ".join(encoder.spaces),
                fix="restore the code book or the weights that it was made with, or index the images again",
            )
        return encoder

    @cached_property
    def _query_encoder(self) -> Encoder:
        """Of the same networks: it gives the patches of a query, too, from the same pass."""
        return Encoder([*self.branches, *self._list_patches()], networks=self._encoder.networks)

    @cached_property
    def _patch_encoder(self) -> Encoder | None:
        patches = self._list_patches()
        return Encoder(patches, networks=self._encoder.networks) if patches else None

    @cached_property
    def _stores_queries(self) -> bool:
        if self.patch_branch is not None or any(branch.regions or branch.query_regions for branch in self.branches):
            return False
        encoder = self._encoder
        return encoder.max_side == encoder.query_side and _is_one_for_both(encoder)

    def _list_patches(self) -> list[Branch]:
        """One, or none."""
        return [] if self.patch_branch is None else [keep_all_patches(self.branches[self.patch_branch])]


def read_query(image: Image, max_side: int | None, read: ReadImage = image_files.read) -> Picture:
    if isinstance(image, Picture):
        return image
    ref = image if isinstance(image, ImageRef) else ImageRef(Path(image).name, Path(image))
    return read(ref, None if ref.box else max_side)


def _is_one_for_both(encoder: Encoder) -> bool:
    """Whether both sides of a search are described in the same way, tried with a picture that has something to see."""
    pixels = np.random.default_rng(0).integers(0, 256, (128, 128, 3), np.uint8)
    picture = Picture(ImageRef("noise", Path("noise")), pixels, (128, 128))
    (stored,), (asked,) = encoder.encode([picture], "database"), encoder.encode([picture], "query")
    return all(
        np.array_equal(one.vectors, other.vectors) and _are_equal(one.words, other.words)
        for one, other in zip(stored, asked, strict=True)
    )


def _are_equal(one: "np.ndarray | None", other: "np.ndarray | None") -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def make_stored_query(reader: Reader, name: str, encoding: Encoding) -> Query:
    (record,) = reader.metadata([name])
    if encoding.stores_queries:
        return _take_stored(record, reader)
    ref = record.ref
    picture = encoding.read(ref, None if ref.box else encoding.query_side)
    if picture.sha256 != record.sha256:
        raise CollectionError(
            f"the file of {name!r} has changed since it was indexed",
            expected="the picture that the collection knows",
            actual=str(record.path),
            fix="add it again, and then search for it",
        )
    return encoding.encode_query(picture)


def _take_stored(record: ImageRecord, reader: Reader) -> Query:
    width, height = record.size
    rows = tuple(next(reader.descriptors(branch, [record.id])) for branch in range(len(reader.layout)))
    outline = record.ref.box or (0.0, 0.0, float(width), float(height))
    return Query(record.id, record.size, outline, rows, record.attributes)

"""Image files and stored images → queries and patches, as one collection encodes them.

`Encoding` reads an image file and has it encoded as a Query or, to explain an answer, as every patch of a stored image.
`query_by_id` makes a Query of a stored image: from its stored rows where these are all that a query has, and otherwise
from its file, which must be unchanged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from resight.data import image_files
from resight.encode.backbones import Backbone
from resight.encode.encoder import Encoder
from resight.encode.query import GIVEN, Encoders
from resight.errors import CollectionError, ImageError, SpaceMismatch
from resight.files.remote import is_remote
from resight.store import ImageRecord, Layout, Reader
from resight.types import Box, Branch, Descriptors, ImageRef, Picture, Query, Recipe

if TYPE_CHECKING:
    from resight.collection.add import ReadImage
    from resight.data.image_inputs import ImageInput
    from resight.encode.feature_cache import FeatureCache
    from resight.search.request import StoredImage


class Encoding(Encoders):
    """The encoders of one collection, and the function that reads image files for them."""

    def __init__(
        self,
        branches: Sequence[Branch],
        spaces: Sequence[str],
        cache: "FeatureCache | None",
        owner: str,
        read: "ReadImage" = image_files.read,
        networks: Mapping[str, Backbone] | None = None,
        rotations: int = 1,
    ) -> None:
        """`read` decodes image files: those of queries, and those of stored images; `networks`: see Encoder.

        A query is searched at so many `rotations`.
        """
        super().__init__(branches, spaces, cache, owner, networks)
        self.read = read
        self.rotations = rotations

    def encode_query(self, image: "ImageInput", box: Box | None = None) -> Query:
        return self.encode_queries([self.read_query(image, box)], box)[0]

    def read_query(self, image: "ImageInput", box: Box | None = None) -> Picture:
        """The picture of a query, as large as the encoders need it."""
        return read_query(image, None if box else self.query_side, self.read)

    def encode_queries(self, pictures: Sequence[Picture], box: Box | None = None) -> list[Query]:
        encoded = super().encode_queries(pictures, box)
        queries = [
            replace(query, source=find_source(picture)) for query, picture in zip(encoded, pictures, strict=True)
        ]
        if self.rotations == 1:
            return queries
        from resight.encode.rotation import attach  # most recipes search upright

        encode = super().encode_query
        return [
            attach(query, picture, box or picture.ref.box, self.rotations, encode)
            for query, picture in zip(queries, pictures, strict=True)
        ]

    def probe(self) -> Descriptors | None:
        """Rows of the first branch as its encoder makes them; None if a program gives the rows."""
        return None if self.branches[0].encoder.name == GIVEN else encode_blank(self.encoder)[0]

    def look_at(self, record: ImageRecord, region: Box | None) -> Descriptors | None:
        """Every patch of a stored image, or of a region of it.

        None where the branches have no patches, and where the file is gone or has changed.
        """
        if self.patch_branch is None:
            return None
        box = region or record.ref.box
        try:
            picture = self.read(record.ref, None if box else self.patch_side)
        except ImageError:
            return None
        return self.encode_patches(picture, box) if picture.sha256 == record.sha256 else None


def read_query(image: "ImageInput", max_side: int | None, read: "ReadImage" = image_files.read) -> Picture:
    """A query in any form; the rules are those of `data/image_inputs.py`."""
    if isinstance(image, ImageRef):
        return read(image, None if image.box else max_side)
    if isinstance(image, Path) and not is_remote(image):
        return read(ImageRef(image.name, image), max_side)
    from resight.data.image_inputs import read_input  # a command has a path

    return read_input(image, max_side, read)


def find_source(picture: Picture) -> ImageRef | None:
    """The file of a picture, if it was read from one that can be read again."""
    return picture.ref if picture.modified_ns else None


def keep_picture(query: Query, picture: object) -> Query:
    """The query with its picture, to draw it, if it came from no file."""
    return replace(query, source=picture) if query.source is None and isinstance(picture, Picture) else query


def query_by_id(reader: Reader, image: "StoredImage", encoding: Encoding, box: Box | None = None) -> Query:
    (record,) = reader.metadata([image.id])
    if box is None and (image.rows_only or encoding.stored_rows_are_queries):
        stored = tuple(next(reader.descriptors(branch, [record.id])) for branch in range(len(reader.layout)))
        rows = stored if encoding.stored_rows_are_queries else encoding.derive_query_rows(stored)
        if rows is not None:
            width, height = record.size
            outline = record.ref.box or (0.0, 0.0, float(width), float(height))
            query = Query(record.id, record.size, outline, rows, record.attributes, source=record.ref)
            return query if encoding.rotations == 1 else _add_rotations(query, reader, encoding)
    ref = record.ref
    picture = encoding.read(ref, None if box or ref.box else encoding.query_side)
    if picture.sha256 != record.sha256:
        raise CollectionError(
            f"the file of {image.id!r} has changed since it was indexed",
            expected="the picture that the collection knows",
            actual=str(record.path),
            fix="add it again, and then search for it",
        )
    return encoding.encode_query(picture, box)


def _add_rotations(query: Query, reader: Reader, encoding: Encoding) -> Query:
    """A query made of stored rows, whose file is read when its other rotations are asked for; without it, upright."""

    def make() -> tuple[Query, ...]:
        from resight.search.request import StoredImage

        try:
            whole = query_by_id(reader, StoredImage(query.id), encoding, query.outline)
        except (CollectionError, ImageError):
            return ()
        return whole.turned() if whole.turned else ()

    return replace(query, turned=make)


def measure_layout(encoder: Encoder) -> tuple[Layout, ...]:
    """Dtype and dimensions of the rows, from a blank picture: they do not depend on what a picture shows."""
    return tuple(Layout(str(row.vectors.dtype), row.vectors.shape[1], row.space) for row in encode_blank(encoder))


def encode_blank(encoder: Encoder) -> tuple[Descriptors, ...]:
    blank = Picture(ImageRef("blank", Path("blank")), np.zeros((64, 64, 3), np.uint8), (64, 64))
    (rows,) = encoder.encode([blank])
    return rows


def move_networks(encoder: Encoder, wanted: Recipe, made: Recipe) -> dict[str, Backbone]:
    """The loaded networks under the encoders of the collection's own recipe, which names its own files."""
    branches = zip(wanted.branches, made.branches, strict=True)
    return {repr(own.encoder): encoder.networks[repr(branch.encoder)] for branch, own in branches}


def check_same_encoding(folder: Path, spaces: tuple[str, ...], encoder: Encoder) -> None:
    if encoder.spaces != spaces:
        raise SpaceMismatch(
            f"{folder} holds descriptors of another kind",
            expected=" | ".join(spaces),
            actual=" | ".join(encoder.spaces),
            fix="leave out --preset and --recipe to use what it was made with, or index into a new collection",
        )

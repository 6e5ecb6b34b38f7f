"""An image in any form of Python in, what a search sends out: the bytes of a file, or the id of a stored image.

Files, bytes and addresses are sent as they are, so that the service decodes what the library would decode; pixels
travel as PNG, which loses nothing. The rules are those of `data/image_inputs.py`; an image that only the service has is
found by its id.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from resight.client.transport import File
from resight.data import image_files
from resight.data.image_cache import encode_png
from resight.data.image_inputs import fetch, is_web_address, load_image, read_bytes
from resight.errors import InputError
from resight.files.fingerprint import fingerprint
from resight.files.remote import is_remote
from resight.search.request import StoredImage
from resight.store import ImageRecord
from resight.types import Box, Hit, ImageRef, Query

NAMED = 8  # digits of the fingerprint that names an image without a name


@dataclass(frozen=True)
class QueryImage:
    """What a search looks for: an uploaded file or a stored image, and the part of it."""

    file: File | None
    id: str | None = None
    box: Box | None = None
    is_guess: bool = False  # the text is no file here: an id, if the service has such an image


def read_query(image: Any, box: Box | None = None) -> QueryImage:
    """The image of a search in any form that `Collection.search` takes."""
    if isinstance(image, StoredImage):
        return QueryImage(None, image.id, box)
    if isinstance(image, Query):
        return _read_encoded(image, box)
    if isinstance(image, str) and not is_remote(image) and not os.path.lexists(image):
        return QueryImage(None, image, box, is_guess=True)
    if isinstance(image, (Hit, ImageRecord)) and not is_remote(image.path) and not os.path.lexists(image.path):
        return QueryImage(None, image.id, box)  # its file is the service's
    own = image.box if isinstance(image, ImageRef) else None
    return QueryImage(read_file(image), None, box or own)


def read_file(image: Any) -> File:
    """The name and the bytes of an image: those of its file, or a PNG of its pixels."""
    if is_web_address(image):
        return Path(image.partition("?")[0]).name or "image", fetch(image)
    path = image if isinstance(image, (str, os.PathLike)) else getattr(image, "path", None)
    if isinstance(path, (str, os.PathLike)):
        return Path(path).name, image_files.read_file(Path(path))[0]
    if (data := read_bytes(image)) is not None:
        return Path(str(getattr(image, "name", ""))).name or f"bytes-{fingerprint(data, NAMED)}", data
    picture = load_image(image)
    return picture.ref.id, encode_png(picture.pixels)


def list_mapping(source: Mapping[str, Any]) -> list[tuple[ImageRef, Any]]:
    """Images by id, each with the ImageRef that it is added as."""
    found = []
    for id, image in source.items():
        ref = image if isinstance(image, ImageRef) else ImageRef(str(id), Path(str(id)))
        found.append((replace(ref, id=str(id)), image))
    return found


def _read_encoded(query: Query, box: Box | None) -> QueryImage:
    """An encoded query is searched for again by its image, which the service encodes itself."""
    if isinstance(query.source, QueryImage):  # of an answer of a service
        return query.source
    if query.source is None:
        raise InputError(
            f"the query {query.id!r} cannot be sent",
            expected="an image: the service encodes it",
            actual="an encoded query without its image",
            fix="search for the image itself",
        )
    width, height = query.size
    part = None if query.outline == (0.0, 0.0, float(width), float(height)) else query.outline
    return read_query(query.source, box or part)

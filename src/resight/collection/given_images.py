"""Images that a program gives to `Collection.add`: ImageRefs, paths, or images in memory in, ImageRefs out.

A collection refers to files: its answers show them, and look at them again to explain. Images in memory, and files from
http, are therefore saved in a folder that the caller names: bytes and files as they are, pixels as PNG, each under its
id. An image that cannot be read becomes a Skipped and does not stop the others.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from resight.data import formats
from resight.data.image_cache import encode_png
from resight.data.image_inputs import fetch, is_batch, is_web_address, load_image, read_bytes
from resight.errors import ImageError, InputError
from resight.files.atomic import write_atomic
from resight.files.inside import resolve_inside
from resight.types import ImageRef, Picture, Skipped

Find = Callable[[Path], Iterator[ImageRef | Skipped]]
SUFFIXES = {"JPEG": ".jpg", "TIFF": ".tif", "PNM": ".ppm", "JPEG 2000": ".jp2", "JPEG XL": ".jxl"}
EXAMPLE = 'e.g. add("photos/", "more/"), add([ImageRef("a", Path("a.jpg"))]) or add({"a": pixels}, save_to="photos/")'


def list_given(source: Any, find: Find, save_to: Path | None) -> tuple[Iterable[ImageRef | Skipped], bool]:
    """The images of an iterable or of a mapping from ids, and whether their ids are given; `find` walks a path."""
    if isinstance(source, Mapping):
        return [_refer(image, save_to, str(id)) for id, image in source.items()], True
    if not is_batch(source):
        raise InputError(
            f"cannot add a {type(source).__name__} alone",
            expected="images with ids",
            actual=repr(source)[:100],
            fix=EXAMPLE,
        )
    found: list[ImageRef | Skipped] = []
    kinds = set()
    for item in source:
        is_path = isinstance(item, (str, os.PathLike)) and not (save_to and is_web_address(item))
        kinds.add(is_path)
        if len(kinds) > 1:
            raise InputError(
                "cannot add paths and other images in one list",
                expected="a list of paths, whose ids are the names of the files; or ImageRefs and images in memory",
                actual="both",
                fix="add them as two lists: add([…], […])",
            )
        found += find(Path(item)) if is_path else [_refer(item, save_to)]
    return found, True not in kinds


def _refer(image: Any, save_to: Path | None, id: str = "") -> ImageRef | Skipped:
    if isinstance(image, ImageRef):
        return ImageRef(id or image.id, image.path, image.box, image.attributes, image.listed, image.unsaid)
    on_web = is_web_address(image)
    if isinstance(image, (str, os.PathLike)) and not (on_web and save_to):
        return ImageRef(id, Path(image))
    if isinstance(path := getattr(image, "path", None), (str, os.PathLike)):  # a Hit, or a record of a collection
        return ImageRef(id or str(getattr(image, "id", path)), Path(path), attributes=getattr(image, "attributes", {}))
    if save_to is None:
        raise InputError(
            "cannot add an image that has no file",
            expected="a folder to save it in: answers show it, and look at it again",
            actual=f"a {type(image).__name__}",
            fix='e.g. add({"a": pixels}, save_to="photos/")',
        )
    try:
        data = fetch(str(image)) if on_web else read_bytes(image)
        picture = load_image(image if data is None else data)
    except (ImageError, InputError) as error:
        reason = error.problem.partition(": ")[2] if error.problem.startswith("cannot read ") else error.problem
        return Skipped(id or repr(image)[:100], reason)
    name = id or (Path(str(image).partition("?")[0]).name if on_web else picture.ref.id)
    path = _save(picture, data, name, save_to)
    return ImageRef(name, path, picture.ref.box, picture.ref.attributes)


def _save(picture: Picture, data: bytes | None, name: str, folder: Path) -> Path:
    """The file of an image in the folder; one of another content that is there already is not replaced."""
    content = encode_png(picture.pixels) if data is None else data
    suffix = ".png" if data is None else _find_suffix(data)
    has_suffix = data is not None and Path(name).suffix.lower() in formats.SUFFIXES
    path = resolve_inside(folder, name if has_suffix else f"{name}{suffix}", what="an image")
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return path
        raise InputError(
            f"cannot save the image {name!r}: {path} is another file",
            expected="a new name, or the same content",
            actual="another content",
            fix="choose another id or folder, or remove the file",
        )
    with write_atomic(path) as temporary:
        temporary.write_bytes(content)
    return path


def _find_suffix(data: bytes) -> str:
    format = formats.identify(data[: formats.START])
    return SUFFIXES.get(format, f".{format.lower()}")

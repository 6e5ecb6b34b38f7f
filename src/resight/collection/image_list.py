"""The images of a source, listed once.

In: a folder, an image file, a manifest, a data set by name (gldv2:ROOT, resight.data.set_source), or images that a
program gives (given_images.py). Out: an ImageList, which counts them and yields them as often as needed, so that one
walk through a folder serves progress, learning and adding. Memory stays bounded: a long list spills into a temporary
file.
"""

import dataclasses
import json
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from resight.data.folder_walk import walk
from resight.data.formats import SUFFIXES
from resight.encode.extract import gather
from resight.errors import InputError
from resight.files import remote
from resight.types import Dataset, ImageRef, Skipped

MANIFESTS = (".csv", ".jsonl", ".ndjson", ".json")
CHUNK = 512  # images that are written and read together
IN_MEMORY = 1 << 23  # bytes; a longer list spills

Source = str | Path | Iterable[Any] | Mapping[str, Any]


class ImageList:
    def __init__(self, source: Source, save_to: Path | None = None) -> None:
        """`save_to`: see `Collection.add`."""
        is_path = isinstance(source, (str, Path))
        self.name = str(source) if is_path else ""
        self._ids: Mapping[str, str] = {}
        self.not_images = 0  # files of a folder that are left out
        dataset = _load_set(self.name)
        self.ids_are_given = not is_path or dataset is not None  # by the caller or the data set
        self._items: _Spool | list[ImageRef | Skipped]
        if dataset is not None:
            self._items = _Spool((*dataset.database, *dataset.skipped))
        elif isinstance(source, (str, Path)):
            self._items = _Spool(self._find(Path(source)))
        else:
            from resight.collection.given_images import list_given  # a command has paths

            given, self.ids_are_given = list_given(source, self._find, save_to)
            self._items = list(given)

    def __len__(self) -> int:
        """Images, and files that cannot be one."""
        return len(self._items)

    def __iter__(self) -> Iterator[ImageRef | Skipped]:
        return map(self._rename, self._items) if self._ids else iter(self._items)

    def keep_ids(self, ids: Mapping[str, str]) -> None:
        """Use these ids, by absolute path, instead of those that come from the names of the files."""
        self._ids = ids

    def _rename(self, item: ImageRef | Skipped) -> ImageRef | Skipped:
        if isinstance(item, Skipped):
            return item
        own = self._ids.get(str(item.path) if remote.is_remote(item.path) else os.path.abspath(item.path))  # noqa: PTH100
        return item if own is None else dataclasses.replace(item, id=own)

    @property
    def refs(self) -> Iterator[ImageRef]:
        """The images alone."""
        return (item for item in self if isinstance(item, ImageRef))

    def _find(self, path: Path) -> Iterator[ImageRef | Skipped]:
        return _find_images(path, self._leave_out)

    def _leave_out(self, _: Path) -> None:
        self.not_images += 1


def list_images(sources: Sequence[Source | ImageList], save_to: Path | None = None) -> list[ImageList]:
    """One list per source; an ImageList stays as it is. InputError if there are no images."""
    lists = [source if isinstance(source, ImageList) else ImageList(source, save_to) for source in sources]
    if not any(map(len, lists)):
        raise InputError(
            f"no images in {', '.join(images.name for images in lists if images.name) or 'what was given'}",
            expected=f"files ending in {', '.join(sorted(SUFFIXES))}, or images without an ending",
            actual=f"{others:,} files that are not images"
            if (others := sum(images.not_images for images in lists))
            else "none",
            fix="check the path; hidden files and folders are left out",
        )
    return lists


def _load_set(name: str) -> Dataset | None:
    """The data set that a source such as gldv2:ROOT names; None for every other source."""
    if ":" not in name:
        return None
    from resight.data.set_source import parse_source

    found = parse_source(name)
    return found.load() if found else None


def _find_images(path: Path, leave_out: Callable[[Path], None]) -> Iterator[ImageRef | Skipped]:
    if path.suffix.lower() in MANIFESTS and (remote.is_remote(path) or path.is_file()):
        from resight.data.sets import manifest

        return manifest.refs(path)
    return walk(path, leave_out)


class _Spool:
    """Items that can be read again, as lines of JSON: in memory, or beyond IN_MEMORY bytes in a temporary file."""

    def __init__(self, items: Iterable[ImageRef | Skipped]) -> None:
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - it lives as long as the spool
        self._offsets: list[int] = []
        self._count = 0
        weakref.finalize(self, self._file.close)
        for some in gather(items, CHUNK):
            self._offsets.append(self._file.tell())
            self._file.write(json.dumps([_flatten(item) for item in some]).encode() + b"\n")
            self._count += len(some)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ImageRef | Skipped]:
        for offset in self._offsets:
            self._file.seek(offset)
            yield from map(_restore, json.loads(self._file.readline()))


def _flatten(item: ImageRef | Skipped) -> list[Any]:
    if isinstance(item, Skipped):
        return [item.path, item.reason]
    return [item.id, str(item.path), item.box, dict(item.attributes), item.listed, sorted(item.unsaid)]


def _restore(fields: list[Any]) -> ImageRef | Skipped:
    if len(fields) == 2:
        return Skipped(*fields)
    name, path, box, attributes, listed, unsaid = fields
    return ImageRef(name, Path(path), box and tuple(box), attributes, listed and tuple(listed), frozenset(unsaid))

"""Write the rows of the store, chunk by chunk and in one pass, to files that an index maps.

ids.json holds the images, offsets.npy [N + 1] where the rows of each begin, boxes.npy [n, 4] their boxes (only if all
rows have one), vectors.npy [n, D] the rows themselves, if they are kept. Rows lie in the order of the store. Nothing
stays in memory: `ArrayFile` appends to an npy file whose length is known only at the end.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from resight.errors import CollectionError, RecipeError, SpaceMismatch
from resight.files.documents import load_json
from resight.kernels.numpy_reference import join_ranges
from resight.types import Descriptors, FloatArray, IntArray


class ArrayFile:
    """An npy file that grows: append inside a `with` block, read after it."""

    def __init__(self, path: Path, dtype: np.dtype[Any] | None = None) -> None:
        self._path = path
        self._dtype = dtype  # None: that of the first part
        self._shape: tuple[int, ...] = (0, 1)
        self._file: BinaryIO | None = None

    def __enter__(self) -> "ArrayFile":
        self._file = self._path.open("wb")
        return self

    def append(self, part: NDArray[Any]) -> None:
        """Append `part` [n, …]."""
        assert self._file is not None
        if self._file.tell() == 0:
            self._dtype = self._dtype or part.dtype
            self._shape = (0, *part.shape[1:])
            self._write_header(self._file)
        self._file.write(np.ascontiguousarray(part, self._dtype).data)
        self._shape = (self._shape[0] + len(part), *self._shape[1:])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        self._file.seek(0)
        self._write_header(self._file)
        self._file.close()

    def _write_header(self, file: BinaryIO) -> None:
        # numpy leaves space in a header for the first axis to grow, so the header can be overwritten.
        descr = np.lib.format.dtype_to_descr(self._dtype or np.dtype(np.float32))
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": self._shape})


@dataclass(frozen=True)
class Rows:
    """The rows of each image; images are numbered in the order of `ids`."""

    ids: Sequence[str]
    offsets: IntArray  # [N + 1]
    boxes: FloatArray | None  # [n, 4], mapped

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def counts(self) -> IntArray:
        return np.diff(self.offsets)

    @cached_property
    def single(self) -> bool:
        """Whether every image has one row, so that rows and images have the same numbers."""
        return bool((self.counts == 1).all())

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.ids)}

    def find_owners(self, rows: IntArray) -> IntArray:
        """The image of each row."""
        return rows if self.single else np.searchsorted(self.offsets, rows, side="right") - 1

    def list_rows(self, images: IntArray) -> IntArray:
        """The rows of some images, in the order of `images`."""
        if self.single:
            return images
        return join_ranges(self.offsets[images], self.counts[images])

    def permit(self, allowed: frozenset[str] | None) -> tuple[IntArray | None, IntArray]:
        """Allowed images that have rows (None: all images, and all have rows), and allowed ones that have none."""
        if allowed is None:
            if self.single:
                return None, np.zeros(0, np.int64)
            return np.flatnonzero(self.counts), np.flatnonzero(self.counts == 0)
        images = np.sort(np.array([self.numbers[name] for name in allowed if name in self.numbers], np.int64))
        return images[self.counts[images] > 0], images[self.counts[images] == 0]


def open_rows(folder: Path) -> Rows:
    ids = load_json((folder / "ids.json").read_text(encoding="utf-8"))
    offsets = np.load(folder / "offsets.npy")
    boxes = np.load(folder / "boxes.npy", mmap_mode="r") if (folder / "boxes.npy").exists() else None
    if len(offsets) != len(ids) + 1 or (boxes is not None and len(boxes) != offsets[-1]):
        boxed = "" if boxes is None else f", {len(boxes)} boxes"
        expected = f"{len(ids)} images, and boxes for all of their rows or for none"
        raise damaged_index(folder, expected, f"{len(offsets) - 1} images, {offsets[-1]} rows{boxed}")
    return Rows(ids, offsets, boxes)


def damaged_index(where: object, expected: str, actual: str) -> CollectionError:
    return CollectionError(
        f"the index in {where} is damaged",
        expected=expected,
        actual=actual,
        fix="delete the index; the next search rebuilds it",
    )


def measure_folder(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


class RowWriter:
    """Add chunks inside a `with` block, then call `finish`. `keep`: type of stored vectors (None: as they come)."""

    def __init__(self, folder: Path, vectors: bool = True, keep: np.dtype[Any] | None = None) -> None:
        self._folder = folder
        self._ids: list[str] = []
        self._counts: list[NDArray[np.int64]] = []
        self._shape: tuple[int, str] | None = None
        self._boxed = True
        self._stack = ExitStack()
        self._boxes = ArrayFile(folder / "boxes.npy", np.dtype(np.float32))
        self._vectors = ArrayFile(folder / "vectors.npy", keep) if vectors else None

    def __enter__(self) -> "RowWriter":
        self._stack.enter_context(self._boxes)
        if self._vectors is not None:
            self._stack.enter_context(self._vectors)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, chunk: Descriptors) -> None:
        check_rows(chunk)
        own = chunk.vectors.shape[1], chunk.space
        self._shape = self._shape or own
        if own != self._shape:
            raise SpaceMismatch(
                "the rows have different shapes or spaces",
                expected=f"{self._shape[0]} dimensions, space {self._shape[1]!r}",
                actual=f"{own[0]} dimensions, space {own[1]!r}",
                fix="encode all images with one recipe, into a new collection",
            )
        self._ids.extend(chunk.ids)
        self._counts.append(np.bincount(chunk.owners, minlength=len(chunk.ids)))
        if chunk.boxes is not None:
            self._boxes.append(chunk.boxes)
        elif len(chunk):
            self._boxed = False
        if self._vectors is not None:
            self._vectors.append(chunk.vectors)

    def finish(self) -> Rows:
        if not self._boxed or not sum(counts.sum() for counts in self._counts):
            (self._folder / "boxes.npy").unlink()
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *self._counts]))])
        np.save(self._folder / "offsets.npy", offsets.astype(np.int64))
        (self._folder / "ids.json").write_text(json.dumps(self._ids), encoding="utf-8")
        return open_rows(self._folder)


def check_rows(chunk: Descriptors) -> None:
    """Refuse rows that have no dot product."""
    if chunk.words is None and chunk.vectors.dtype.kind == "f":
        return
    raise RecipeError(
        "this index takes vectors",
        expected="a descriptor such as pooled or vlad",
        actual="visual words" if chunk.words is not None else f"rows of {chunk.vectors.dtype}",
        fix='choose another index ("asmk_inverted" for asmk) or another descriptor',
    )

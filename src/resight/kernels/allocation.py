"""Allocate the large arrays of a pack: in memory, or as mapped files in a folder, so that packing needs little memory.

`Packed.save` moves such files to their final folder instead of writing them again.
"""

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from resight.files.mapped import create_mapped

Allocate = Callable[[str, tuple[int, ...], DTypeLike], NDArray[Any]]  # name, shape, type → an array to fill


def in_memory(_: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    return np.empty(shape, dtype)


def in_folder(folder: Path) -> Allocate:
    def allocate(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        if 0 in shape:  # an empty file cannot be mapped
            return np.empty(shape, dtype)
        return create_mapped(folder / f"{name}.npy", shape, dtype)

    return allocate


def release_pages(array: NDArray[Any]) -> None:
    """Flush a mapped array to its file and free its pages.

    Dirty pages count against a memory limit, and the operating system cannot reclaim them at once.
    """
    if not isinstance(array, np.memmap):
        return
    array.flush()
    pages = array.base
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
    if hasattr(os, "posix_fadvise") and array.filename is not None:
        file = os.open(array.filename, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def write_array(array: NDArray[Any], path: Path, scratch: Path | None) -> None:
    """Save as npy; an array that is a whole file in `scratch` is moved instead of copied."""
    if scratch is not None and isinstance(array, np.memmap) and array.filename is not None:
        source = Path(array.filename)
        if source.parent == scratch.resolve() and source.stat().st_size == array.offset + array.nbytes:
            array.flush()
            try:
                source.rename(path)
                return
            except OSError:  # some systems refuse to move a mapped file
                pass
    np.save(path, array)

"""Where the large arrays of a pack are made: in memory, or as files of a folder, so that packing takes little memory.

`Packed.save` moves such files into place instead of writing them a second time.
"""

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Allocate = Callable[[str, tuple[int, ...], DTypeLike], NDArray[Any]]  # name, shape, type → an array to fill


def in_memory(_: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    return np.empty(shape, dtype)


def in_folder(folder: Path) -> Allocate:
    def allocate(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        if 0 in shape:  # an empty file cannot be mapped
            return np.empty(shape, dtype)
        array: NDArray[Any] = np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=dtype, shape=shape)
        return array

    return allocate


def let_go(array: NDArray[Any]) -> None:
    """What was written to a mapped array goes to its file, and the memory that held it is free again.

    Pages that wait to be written count against a limit on memory, and cannot be taken back at once.
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
    """To an npy file; the file itself is moved where the array is the whole of one in `scratch`."""
    if scratch is not None and isinstance(array, np.memmap) and array.filename is not None:
        source = Path(array.filename)
        if source.parent == scratch.resolve() and source.stat().st_size == array.offset + array.nbytes:
            array.flush()
            try:
                source.rename(path)
                return
            except OSError:  # some systems do not move a file that is mapped
                pass
    np.save(path, array)

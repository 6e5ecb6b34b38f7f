"""Arrays that are written through a map of a new file: a path, shape and type in, an array to fill out.

The disk space is reserved first. Without that, a full disk would kill the process (SIGBUS) in the middle of a write;
with it, creating the array is an OSError.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


def create_mapped(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> "np.memmap[Any, Any]":
    """A new npy file as an array; a file that was there is replaced, and nothing is left if the disk is full."""
    array: np.memmap[Any, Any] = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    try:
        reserve(path)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return array


def reserve(path: Path) -> None:
    """Reserve the disk space of all bytes of a file; not every system can."""
    if hasattr(os, "posix_fallocate"):
        file = os.open(path, os.O_RDWR)
        try:
            os.posix_fallocate(file, 0, os.fstat(file).st_size)
        finally:
            os.close(file)

"""Arrays, part by part → one npy file, whose length is known only at the end. None of it stays in memory."""

from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray


class ArrayFile:
    """Opened and closed by `with`; the file can be read after that."""

    def __init__(self, path: Path, dtype: np.dtype[Any] | None = None) -> None:
        self._path = path
        self._dtype = dtype  # None: that of the first part
        self._shape: tuple[int, ...] = (0, 1)
        self._file: BinaryIO | None = None

    def __enter__(self) -> "ArrayFile":
        self._file = self._path.open("wb")
        return self

    def append(self, part: NDArray[Any]) -> None:
        """Puts `part` [n, …] behind what is there."""
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
        # numpy leaves room in a header for the first axis to grow, so it can be written again in the same place.
        descr = np.lib.format.dtype_to_descr(self._dtype or np.dtype(np.float32))
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": self._shape})

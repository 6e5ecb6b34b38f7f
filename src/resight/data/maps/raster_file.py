"""A raster of plain numbers in a file in (as PDS3 and PDS4 keep them), windows of it as bytes out (`RasterMap`).

Rows are read where they lie: never the whole file, and no memory map, so that memory does not grow with the map and a
file that is cut short is an error, not a crash. Numbers other than unsigned bytes are stretched: the 0.1th percentile
of a sample of the map becomes 0, the 99.9th 255; missing values and those that are not finite become 0.
"""

import re
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from resight.data.maps.map_image import MapGrid, Window
from resight.data.maps.map_label import refuse

SAMPLED = 512  # rows and columns of the sample that sets the stretch
BLOCK = 1 << 20  # values that are stretched at once


@dataclass(frozen=True)
class Raster:
    """Where the numbers of one band lie in a file."""

    path: Path
    offset: int  # bytes before the first number
    width: int
    height: int
    row_bytes: int  # from the start of a row to that of the next
    dtype: np.dtype[Any]
    missing: tuple[float, ...] = ()  # values that stand for no data
    between: int = 1  # numbers from one pixel to the next, if bands are interleaved


class RasterMap:
    def __init__(self, raster: Raster, grid: MapGrid) -> None:
        self.grid = grid
        self._raster = raster
        self._lock = threading.Lock()
        self._file = open_raster(raster)
        weakref.finalize(self, self._file.close)
        self._low, self._high = (0.0, 255.0) if raster.dtype == np.uint8 else self._find_range()

    def read(self, top: int, bottom: int, left: int, right: int, steps: tuple[int, int] = (1, 1)) -> Window:
        rows = range(top, bottom, steps[0])
        image = np.empty((len(rows), len(range(left, right, steps[1]))), np.uint8)
        missing = np.zeros(image.shape, np.bool_)
        block = max(BLOCK // image.shape[1], 1)
        for first in range(0, len(rows), block):
            some = slice(first, first + block)
            values = np.stack([self._read_row(row, left, right, steps[1]) for row in rows[some]])
            missing[some] = self._find_missing(values)
            image[some] = self._stretch(values, missing[some])
        return Window(image, missing if missing.any() else None)

    def _read_row(self, row: int, left: int, right: int, step: int) -> NDArray[Any]:
        raster = self._raster
        size = raster.dtype.itemsize * raster.between
        wanted = (right - left - 1) * size + raster.dtype.itemsize
        with self._lock:
            self._file.seek(raster.offset + row * raster.row_bytes + left * size)
            data = self._file.read(wanted)
        if len(data) < wanted:
            raise _refuse_short(raster, self._file.seek(0, 2))
        row_values = np.frombuffer(data, raster.dtype)[:: step * raster.between]
        return row_values.copy() if step * raster.between > 1 else row_values  # a view would hold all of the row

    def _find_missing(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        missing = np.zeros(values.shape, np.bool_)
        for constant in self._raster.missing:
            missing |= values == values.dtype.type(constant)
        return missing if values.dtype.kind != "f" else missing | ~np.isfinite(values)

    def _stretch(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.uint8]:
        if values.dtype == np.uint8:
            return np.where(missing, np.uint8(0), values)
        known = np.where(missing, values.dtype.type(0), values).astype(np.float32)
        scaled = (known - np.float32(self._low)) * np.float32(255 / (self._high - self._low))
        return np.where(missing, 0, np.clip(np.rint(scaled), 0, 255)).astype(np.uint8)

    def _find_range(self) -> tuple[float, float]:
        raster = self._raster
        rows = range(0, raster.height, max(raster.height // SAMPLED, 1))
        step = max(raster.width // SAMPLED, 1)
        values = np.stack([self._read_row(row, 0, raster.width, step) for row in rows])
        known = values[~self._find_missing(values)].astype(np.float64)
        if not len(known):
            raise refuse(
                raster.path,
                "has no data",
                "a map with values",
                "missing values only, as far as a sample of it shows",
                "replace it by an intact copy",
            )
        low, high = (float(value) for value in np.percentile(known, (0.1, 99.9)))
        return low, high if high > low else low + 1


def open_raster(raster: Raster) -> BinaryIO:
    """The file, which must be long enough; kept open."""
    try:
        file = raster.path.open("rb", buffering=0)
        size = file.seek(0, 2)
    except OSError as error:
        raise refuse(
            raster.path,
            "cannot be read",
            "the file of numbers that its label names",
            str(error),
            "put it beside its label",
        ) from error
    last = (raster.height - 1) * raster.row_bytes
    last += ((raster.width - 1) * raster.between + 1) * raster.dtype.itemsize
    if size < raster.offset + last:
        file.close()
        raise _refuse_short(raster, size)
    return file


def _refuse_short(raster: Raster, size: int) -> Exception:
    return refuse(
        raster.path,
        "is cut short",
        f"{raster.offset + raster.height * raster.row_bytes:,} bytes, as its label says",
        f"{size:,} bytes",
        "download it again",
    )


def fit_constant(text: str, dtype: np.dtype[Any]) -> float | None:
    """A value of the type as a label writes it: a number, or its bits as 16#FF7FFFFB# or 0xFF7FFFFB; else None."""
    bits = re.fullmatch(r"(?:16#|0x)([0-9A-Fa-f]{1,16})#?", text.strip('"'))
    if bits and dtype.kind == "f":
        whole = int(bits[1], 16)
        if whole >= 1 << 8 * dtype.itemsize:
            return None
        return float(np.frombuffer(whole.to_bytes(dtype.itemsize, "big"), f">f{dtype.itemsize}")[0])
    try:
        value = float(int(bits[1], 16) if bits else text.strip('"').partition("<")[0])
    except ValueError:
        return None
    if dtype.kind == "f":
        return value
    limits = np.iinfo(dtype)
    return value if limits.min <= value <= limits.max and value == int(value) else None

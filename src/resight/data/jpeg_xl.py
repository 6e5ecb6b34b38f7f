"""JPEG XL for Pillow: a file in, its size from the header and, when it is loaded, its pixels (ISO/IEC 18181).

imagecodecs decodes; `pip install "resight[jxl]"` installs it. The size is known before anything is decoded, so that
limits hold. libjxl applies the orientation in the header, so the pixels are upright. Depths of more than 8 bits become
8 bits, except grey, which `decode` stretches.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

BARE = b"\xff\x0a"
RATIOS = {1: (1, 1), 2: (6, 5), 3: (4, 3), 4: (3, 2), 5: (16, 9), 6: (5, 4), 7: (2, 1)}  # width to height
SIZE_BITS = (9, 13, 18, 30)


class JpegXlFile(ImageFile.ImageFile):
    format = "JPEG XL"

    def _open(self) -> None:
        assert self.fp is not None
        self._data: bytes = self.fp.read()
        codestream, exif = _find_boxes(self._data)
        self._size = read_size(codestream)
        self._mode = "RGB"
        if exif:
            self.info["exif"] = exif
        self.tile = []

    def load(self) -> Any:
        if self._data:
            image = _to_image(load_codec().jpegxl_decode(self._data, 0, numthreads=1))
            self._data = b""
            if sorted(image.size) != sorted(self._size):  # an orientation may have turned it
                raise ValueError(f"{image.size} pixels where the header announces {self._size}")
            self.im, self._mode, self._size = image.im, image.mode, image.size
        return super().load()


def load_codec() -> Any:
    """imagecodecs' JPEG XL module alone: the others take longer to load. ImportError where it is not installed."""
    from imagecodecs import _jpegxl

    return _jpegxl


def read_size(codestream: bytes) -> tuple[int, int]:
    """Width and height in the size header of a codestream, before its orientation is applied."""
    if not codestream.startswith(BARE):
        raise ValueError("no JPEG XL codestream")
    bits, at = int.from_bytes(codestream[2:16], "little"), 0

    def take(count: int) -> int:
        nonlocal at
        value = bits >> at & (1 << count) - 1
        at += count
        return value

    def take_side() -> int:
        return 8 * (1 + take(5)) if is_small else 1 + take(SIZE_BITS[take(2)])

    is_small = take(1) == 1
    height = take_side()
    ratio = take(3)
    width = height * RATIOS[ratio][0] // RATIOS[ratio][1] if ratio else take_side()
    if at > 8 * (len(codestream) - len(BARE)):
        raise ValueError("the size header is cut short")
    return width, height


def _find_boxes(data: bytes) -> tuple[bytes, bytes]:
    """The codestream and the EXIF block, out of a bare file or one of boxes, of which several may hold its parts."""
    if data.startswith(BARE):
        return data, b""
    codestream = exif = b""
    parts: list[bytes] = []
    at = 0
    while at + 8 <= len(data):
        size, kind, begin = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8], at + 8
        if size == 1:
            size, begin = int.from_bytes(data[at + 8 : at + 16], "big"), at + 16
        end = at + size if size else len(data)
        if end < begin:
            break
        if kind == b"jxlc" and not codestream:
            codestream = data[begin:end]
        elif kind == b"jxlp":
            parts.append(data[begin + 4 : end])
        elif kind == b"Exif":
            exif = data[begin + 4 : end]
        at = end
    return codestream or b"".join(parts), exif


def _to_image(values: NDArray[Any]) -> Image.Image:
    """Pixels [H, W] or [H, W, 1 to 4] of any depth as an image of a mode that Pillow has."""
    values = values[..., 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if values.dtype != np.uint8 and values.ndim == 3:
        top = 1.0 if values.dtype.kind == "f" else float(np.iinfo(values.dtype).max)
        values = np.clip(np.rint(values.astype(np.float32) * (255 / top)), 0, 255).astype(np.uint8)
    elif values.dtype == np.float16:
        values = values.astype(np.float32)
    return Image.fromarray(np.ascontiguousarray(values))

"""EXIF block in, orientation, GPS position and heading out.

The block is a small TIFF file: a header, then directories of 12-byte entries. Only three facts are wanted, so
they are read here with every offset checked. A block that is cut, wrong or absent gives no facts and no error:
what a camera wrote about an image never makes the image unreadable.

Bytes of an image file in, RGB pixels out (`decode`), with Pillow.

- The format comes from the first bytes, never from the file name, and only the formats below are tried.
- The pixel count is checked against `max_pixels` on the header, before anything is decoded. Pillow's own limit
  is a process-wide setting that belongs to the application, so its opener, which enforces it, is not used. Its
  TIFF and WebP decoders still refuse what has more than twice that many pixels (179 million by default).
- Of an animation or a file of many pages, the first frame counts.
- Transparency is composited on white. CMYK is converted without a colour profile.
- Grey of more than 8 bits (16-bit, 32-bit, float) is stretched: the 0.1th percentile becomes 0, the 99.9th
  becomes 255, what lies beyond is clipped. Values that are not finite count as 0. When the two percentiles are
  equal, minimum and maximum take their place. The stretch looks at the full-size image, whatever `max_side`.
- EXIF rotation is applied. Orientation written elsewhere (XMP) is not.
- A file that ends early is refused rather than half-decoded.
"""

import io
import math
import struct
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from resight.errors import ImageError

ORIENTATION, GPS = 0x0112, 0x8825
LAT_REF, LAT, LON_REF, LON, DIRECTION = 1, 2, 3, 4, 17
WIDTHS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 9: 4, 10: 8, 11: 4, 12: 8}  # EXIF type → bytes a value
NUMBERS = {3: "H", 4: "I", 5: "II", 9: "i", 10: "ii", 11: "f", 12: "d"}

Entry = tuple[int, bytes]  # EXIF type, bytes of all values


def read_orientation(block: bytes) -> int:
    """1 (upright) to 8, as EXIF numbers them; 1 when the block does not say."""
    order, entries = _read_first_directory(block)
    values = _numbers(order, entries.get(ORIENTATION))
    return int(values[0]) if values and values[0] in range(1, 9) else 1


def read_position(block: bytes) -> tuple[float, float] | None:
    """Latitude and longitude in degrees, or None when absent or impossible."""
    order, gps = _read_gps(block)
    lat = _degrees(order, gps.get(LAT), gps.get(LAT_REF), b"NS", 90)
    lon = _degrees(order, gps.get(LON), gps.get(LON_REF), b"EW", 180)
    return None if lat is None or lon is None else (lat, lon)


def read_heading(block: bytes) -> float | None:
    """Degrees from north, clockwise, that the camera looked at, or None when absent or impossible.

    North may be the magnetic one: the few degrees between the two matter to nobody here.
    """
    order, gps = _read_gps(block)
    values = _numbers(order, gps.get(DIRECTION))
    return values[0] % 360 if values and 0 <= values[0] <= 360 else None  # also None for NaN


def strip_prefix(block: bytes) -> bytes:
    """The TIFF part of a block that may begin with JPEG's `Exif` marker."""
    return block[6:] if block.startswith(b"Exif\0") else block


def _degrees(order: str, entry: Entry | None, reference: Entry | None, letters: bytes, limit: float) -> float | None:
    values = _numbers(order, entry)
    letter = reference[1][:1].upper() if reference else b""
    if not values or not letter or letter not in letters:
        return None
    degrees = math.fsum(value / (1, 60, 3600)[place] for place, value in enumerate(values[:3]))
    if not math.isfinite(degrees) or not 0 <= degrees <= limit:
        return None
    return -degrees if letter == letters[1:] else degrees


def _read_gps(block: bytes) -> tuple[str, Mapping[int, Entry]]:
    order, entries = _read_first_directory(block)
    pointer = _numbers(order, entries.get(GPS))
    return order, _read_directory(block, int(pointer[0]), order) if pointer else {}


def _read_first_directory(block: bytes) -> tuple[str, Mapping[int, Entry]]:
    block_order = {b"II*\0": "<", b"MM\0*": ">"}.get(block[:4])
    if block_order is None or len(block) < 8:
        return "<", {}
    (offset,) = struct.unpack_from(f"{block_order}I", block, 4)
    return block_order, _read_directory(block, offset, block_order)


def _read_directory(block: bytes, offset: int, order: str) -> Mapping[int, Entry]:
    """tag → entry, for every entry that lies within the block."""
    if offset + 2 > len(block):
        return {}
    (count,) = struct.unpack_from(f"{order}H", block, offset)
    entries: dict[int, Entry] = {}
    for start in range(offset + 2, min(offset + 2 + 12 * count, len(block) - 11), 12):
        tag, kind, values = struct.unpack_from(f"{order}HHI", block, start)
        length = WIDTHS.get(kind, 0) * values
        place = start + 8 if length <= 4 else struct.unpack_from(f"{order}I", block, start + 8)[0]
        if 0 < length <= len(block) - place:
            entries[tag] = (kind, block[place : place + length])
    return entries


def _numbers(order: str, entry: Entry | None) -> list[float]:
    """The numbers of an entry; a fraction with denominator 0 is NaN. Only the first few are ever wanted."""
    if entry is None or entry[0] not in NUMBERS:
        return []
    kind, raw = entry
    items = struct.iter_unpack(f"{order}{NUMBERS[kind]}", raw[: 3 * WIDTHS[kind]])
    return [item[0] if len(item) == 1 else _divide(*item) for item in items]


def _divide(numerator: int, denominator: int) -> float:
    return numerator / denominator if denominator else math.nan


MAX_PIXELS = 256_000_000
SIGNATURES: tuple[tuple[bytes, type[ImageFile.ImageFile]], ...] = (
    (b"\xff\xd8\xff", JpegImageFile),
    (b"\x89PNG\r\n\x1a\n", PngImageFile),
    (b"GIF8", GifImageFile),
    (b"BM", BmpImageFile),
    *((start, TiffImageFile) for start in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    *((start, Jpeg2KImageFile) for start in (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  ")),
    *((b"P%c" % letter, PpmImageFile) for letter in b"123456f"),
)
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
GAP = 2  # JPEGs are decoded at no less than this many times the wanted size, so that the last reduction is clean
SAMPLE = 1_000_000  # grey values that percentiles are taken over

_warnings_lock = threading.Lock()


@dataclass(frozen=True)
class Decoded:
    pixels: NDArray[np.uint8]  # [H, W, 3] RGB, upright
    size: tuple[int, int]  # width, height of the original, upright
    mode: str  # Pillow's name for how the file keeps its pixels: RGB, L, CMYK, I;16, …
    orientation: int  # EXIF, 1 = as stored
    position: tuple[float, float] | None  # EXIF latitude, longitude
    heading: float | None = None  # EXIF, degrees from north


def decode(data: bytes, name: str, max_side: int | None = None, max_pixels: int = MAX_PIXELS) -> Decoded:
    """The image in `data`, its longer side reduced to `max_side`; `name` is what error messages call it."""
    image = _open(data, name)
    width, height = image.size
    if width * height > max_pixels:
        raise ImageError(
            f"cannot read {name}: its {width * height:,} pixels are more than the limit of {max_pixels:,}",
            expected=f"at most {max_pixels:,} pixels",
            actual=f"{width} × {height} pixels",
            fix="reduce the image, or raise max_pixels if its source is trusted",
        )
    mode = image.mode
    wanted = _fit(image.size, max_side)
    if isinstance(image, JpegImageFile) and wanted != image.size:
        image.draft(None, (wanted[0] * GAP, wanted[1] * GAP))
    _load(image, name)
    is_tiff = isinstance(image, TiffImageFile)
    block = data if is_tiff else strip_prefix(image.info.get("exif", b""))
    orientation = read_orientation(block)
    turned_size = (height, width) if orientation >= 5 else (width, height)
    if is_tiff:  # Pillow turns a TIFF while it loads it, so its size is final only now
        turned_size, wanted = image.size, _fit(image.size, max_side)
    try:
        upright = _to_rgb(image)
        if wanted != upright.size:
            upright = upright.resize(wanted, Image.Resampling.HAMMING, reducing_gap=float(GAP))
        if not is_tiff and orientation in TURNS:
            upright = upright.transpose(TURNS[orientation])
        pixels = np.array(upright)
    except Exception as error:
        raise _refuse(name, f"its colours (mode {mode}) cannot be converted to RGB", error) from error
    return Decoded(pixels, turned_size, mode, orientation, read_position(block), read_heading(block))


def _open(data: bytes, name: str) -> ImageFile.ImageFile:
    """The header, read and judged; no pixel is decoded."""
    if not data:
        raise _refuse(name, "the file is empty")
    decoders = [decoder for start, decoder in SIGNATURES if data.startswith(start)]
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        decoders = [WebPImageFile]
    if not decoders:
        raise _refuse(name, "it is not an image of a known format")
    try:
        with _without_warnings():
            return decoders[0](io.BytesIO(data))
    except Image.DecompressionBombError as error:
        raise _refuse(name, f"Pillow finds it too large: {error}", error) from error
    except Exception as error:  # Pillow's parsers raise whatever a malformed header leads them to
        raise _refuse(name, "its header is truncated or damaged", error) from error


def _load(image: ImageFile.ImageFile, name: str) -> None:
    try:
        if isinstance(image, TiffImageFile):  # the only one that warns while it decodes
            with _without_warnings():
                image.load()
        else:
            image.load()
    except MemoryError as error:
        raise _refuse(name, "there is not enough memory to decode it", error) from error
    except Image.DecompressionBombError as error:
        raise _refuse(name, f"Pillow finds it too large: {error}", error) from error
    except Exception as error:
        said_so = "truncated" in str(error)
        raise _refuse(name, "it is truncated" if said_so else "it is truncated or damaged", error) from error


def _fit(size: tuple[int, int], max_side: int | None) -> tuple[int, int]:
    if max_side is None or max(size) <= max_side:
        return size
    scale = max_side / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return Image.fromarray(_stretch(np.asarray(image))).convert("RGB")
    if image.has_transparency_data:
        seen = image.convert("LA") if image.mode == "La" else image  # Pillow knows no direct way from La
        layer = seen.convert("RGBA")
        paper = Image.new("RGB", layer.size, "white")
        paper.paste(layer, mask=layer.getchannel("A"))
        return paper
    return image.convert("RGB")


def _stretch(grey: NDArray[Any]) -> NDArray[np.uint8]:
    """Grey values of any range [H, W] as 8 bits; see the module's docstring."""
    step = max(1, int(np.ceil(np.sqrt(grey.size / SAMPLE))))
    sample = grey[::step, ::step]
    sample = sample[np.isfinite(sample)]
    if not sample.size:
        return np.zeros(grey.shape, np.uint8)
    low, high = (float(value) for value in np.percentile(sample, (0.1, 99.9)))
    if low == high:
        finite = grey[np.isfinite(grey)]
        low, high = float(finite.min()), float(finite.max())
    scale = 255.0 / (high - low) if high > low else 0.0
    result = np.empty(grey.shape, np.uint8)
    for row, values in enumerate(grey):  # row by row: a large image is not copied as float
        finite_row = np.where(np.isfinite(values), values, low).astype(np.float64)
        result[row] = np.clip(np.rint((finite_row - low) * scale), 0, 255)
    return result


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Pillow's warnings about odd metadata and large images stay inside.

    Python keeps one list of warning filters a process, so threads take turns here. For all formats but TIFF,
    what they do inside is the parsing of a header, which is quick.
    """
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _refuse(name: str, reason: str, cause: Exception | None = None) -> ImageError:
    return ImageError(
        f"cannot read {name}: {reason}",
        expected="a whole JPEG, PNG, WebP, TIFF, GIF, BMP, PNM or JPEG 2000 file",
        actual=f"{type(cause).__name__}: {cause}" if cause else reason,
        fix="open it in an image viewer; copy or export it again if it does not show whole",
    )

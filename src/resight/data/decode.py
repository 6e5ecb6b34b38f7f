"""Bytes of an image file in, RGB pixels and EXIF facts out (`decode`), with Pillow.

- The first bytes choose the format (`formats`), never the file name. pi-heif decodes HEIC, Pillow AVIF, and
  imagecodecs, where it is installed, JPEG XL; these three are imported with the first such image.
- The header's pixel count is checked against `max_pixels` before anything is decoded. Pillow's own limit is a
  process-wide setting that belongs to the application, so its opener, which enforces it, is not used. Pillow's TIFF and
  WebP decoders still refuse more than twice that limit (179 million pixels by default).
- Of an animation or a file of many pages, the first frame is decoded.
- Transparency is composited on white. CMYK is converted without a colour profile.
- Grey of more than 8 bits (16-bit, 32-bit, float) is stretched: the 0.1th percentile becomes 0, the 99.9th becomes 255,
  values beyond are clipped. Values that are not finite count as 0. If the two percentiles are equal, the minimum and
  the maximum replace them. The stretch uses the full-size image, whatever `max_side` is.
- EXIF rotation is applied; orientation in XMP is not (except in TIFF, which Pillow rotates itself). HEIC and JPEG XL
  have an orientation of their own, which their decoders apply and which replaces that in EXIF.
- A raw photo (DNG, NEF, ARW) begins as a TIFF file whose first image is a small preview: it is refused.
- A truncated file is refused rather than half-decoded.

`read_exif` takes three facts from an EXIF block: orientation, GPS position and heading. A damaged or missing block
gives no facts and no error: metadata never makes an image unreadable.
"""

import io
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from resight.data import formats
from resight.errors import ImageError

MAX_PIXELS = 256_000_000
DECODERS: Mapping[str, type[ImageFile.ImageFile]] = {
    "JPEG": JpegImageFile,
    "PNG": PngImageFile,
    "WebP": WebPImageFile,
    "GIF": GifImageFile,
    "BMP": BmpImageFile,
    "TIFF": TiffImageFile,
    "JPEG 2000": Jpeg2KImageFile,
    "PNM": PpmImageFile,
}
TURNED_WHILE_LOADED = ("TIFF", "HEIC", "JPEG XL")  # by the decoder, so that their size is known afterwards
TURNED_BY_PILLOW = ("TIFF", "HEIF", "JPEG XL", "JXL")  # Pillow's and its plug-ins' names
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
GAP = 2  # decode a JPEG at this many times the wanted size or more, so that the last reduction is clean
DNG_VERSION, SUBFILE_TYPE, MAKE = 50706, 254, 271  # tags of TIFF
SAMPLE = 1_000_000  # grey values that the percentiles are computed from
LARGE = 16_000_000  # pixels that a JPEG 2000 file of one tile needs more than 300 MB for
SHORT_OF_MEMORY = "there is not enough memory to decode it"
STRIP = 1_000_000  # pixels that are converted at once

_warnings_lock = threading.Lock()


@dataclass(frozen=True)
class Decoded:
    pixels: NDArray[np.uint8]  # [H, W, 3] RGB, upright
    size: tuple[int, int]  # width, height of the original, upright
    mode: str  # Pillow's name for the pixel format in the file: RGB, L, CMYK, I;16, …
    orientation: int  # EXIF, 1 = as stored
    position: tuple[float, float] | None  # EXIF latitude, longitude
    heading: float | None = None  # EXIF, degrees clockwise from north


@dataclass(frozen=True)
class ExifFacts:
    orientation: int = 1  # 1 (upright) to 8, as EXIF numbers them
    position: tuple[float, float] | None = None  # latitude, longitude in degrees
    heading: float | None = None  # degrees clockwise from north, true or magnetic


def decode(data: bytes, name: str, max_side: int | None = None, max_pixels: int = MAX_PIXELS) -> Decoded:
    """Decode `data` and reduce its longer side to `max_side`; error messages call the image `name`."""
    format = formats.identify(data[: formats.START])
    is_turned = format in TURNED_WHILE_LOADED
    return _decode(_check_pixels(_open(data, name, format), name, max_pixels), name, max_side, is_turned)


def convert_image(image: Image.Image, name: str, max_side: int | None = None) -> Decoded:
    """The same for an image that Pillow has opened, which stays as it is: its present frame, upright by its EXIF."""
    _load(_check_pixels(image, name, MAX_PIXELS), name)
    return _decode(image.copy(), name, max_side, image.format in TURNED_BY_PILLOW)


def _check_pixels(image: Image.Image, name: str, most: int) -> Image.Image:
    width, height = image.size
    if not width * height:
        raise _refuse(name, "it has no pixels")
    if width * height > most:
        raise ImageError(
            f"cannot read {name}: its {width * height:,} pixels are more than the limit of {most:,}",
            expected=f"at most {most:,} pixels",
            actual=f"{width} × {height} pixels",
            fix="reduce the image, or raise max_pixels if its source is trusted",
        )
    return image


def _decode(image: Image.Image, name: str, max_side: int | None, is_turned: bool) -> Decoded:
    width, height = image.size
    mode = image.mode
    wanted = _fit(image.size, max_side)
    if isinstance(image, JpegImageFile) and wanted != image.size:
        image.draft(None, (wanted[0] * GAP, wanted[1] * GAP))
    if isinstance(image, TiffImageFile):  # Pillow forgets its orientation while it loads it
        facts = _read_facts(image.getexif)
        _load(image, name)
    else:
        _load(image, name)
        facts = read_exif(image.info.get("exif", b""))
    orientation = facts.orientation
    turned_size = (height, width) if orientation >= 5 else (width, height)
    if is_turned:
        turned_size, wanted = image.size, _fit(image.size, max_side)
    try:
        upright = _to_rgb(image, wanted)
        del image  # a large one takes memory that the pixels need
        if not is_turned and orientation in TURNS:
            upright = upright.transpose(TURNS[orientation])
        pixels = _to_array(upright)
    except MemoryError as error:
        raise _refuse(name, SHORT_OF_MEMORY, error) from error
    except Exception as error:
        raise _refuse(name, f"its colours (mode {mode}) cannot be converted to RGB", error) from error
    return Decoded(pixels, turned_size, mode, orientation, facts.position, facts.heading)


def read_exif(block: bytes) -> ExifFacts:
    """The facts in an EXIF block, with or without JPEG's `Exif` marker."""

    def parse() -> Image.Exif:
        exif = Image.Exif()
        exif.load(block)
        return exif

    return _read_facts(parse) if block else ExifFacts()


def read_exif_block(data: bytes, name: str) -> bytes:
    """The EXIF block of an image file with the orientation set to upright; empty where the file has none."""
    try:
        block = _open(data, name, formats.identify(data[: formats.START])).getexif()
        block[ExifTags.Base.Orientation] = 1
        return block.tobytes() if len(block) > 1 or block.get_ifd(ExifTags.IFD.GPSInfo) else b""
    except Exception:  # Pillow raises many kinds of errors for malformed metadata; the pixels are intact
        return b""


def _open(data: bytes, name: str, format: str) -> ImageFile.ImageFile:
    """Read and check the header; no pixel is decoded."""
    if not data:
        raise _refuse(name, "the file is empty")
    if not format:
        raise formats.refuse(name, formats.find_other(data[: formats.START]))
    decoder = _find_decoder(format, name)
    try:
        with _without_warnings():
            image = decoder(io.BytesIO(data))
            is_raw = isinstance(image, TiffImageFile) and _is_raw(image)
    except Image.DecompressionBombError as error:
        raise _refuse(name, f"Pillow finds it too large: {error}", error) from error
    except Exception as error:  # a malformed header makes Pillow's parsers raise errors of any class
        raise _refuse(name, "its header is truncated or damaged", error) from error
    if is_raw:
        raise formats.refuse(name, formats.RAW)
    return image


def _find_decoder(format: str, name: str) -> Callable[[io.BytesIO], ImageFile.ImageFile]:
    """Pillow's decoder of a format; those that few images need are imported here."""
    if format in DECODERS:
        return DECODERS[format]
    try:
        if format == "HEIC":
            from pi_heif.as_plugin import HeifImageFile

            return cast("type[ImageFile.ImageFile]", HeifImageFile)
        if format == "AVIF":
            from PIL import AvifImagePlugin

            if not AvifImagePlugin.SUPPORTED:
                raise ImportError("this build of Pillow has no AVIF")
            return AvifImagePlugin.AvifImageFile
        from resight.data import jpeg_xl

        jpeg_xl.load_codec()
        return jpeg_xl.JpegXlFile
    except ImportError as error:
        fixes = {"HEIC": "pip install pi-heif", "AVIF": 'pip install "pillow>=11.3"'}
        raise ImageError(
            f"cannot read {name}: {formats.UNSUPPORTED}: {format}",
            expected=f"a decoder for {format}",
            actual=str(error),
            fix=f"{fixes.get(format, 'pip install imagecodecs')}, or convert it to PNG",
        ) from error


def _is_raw(image: TiffImageFile) -> bool:
    """Whether the first image of a TIFF file is the preview of a raw photo."""
    tags = image.tag_v2
    return DNG_VERSION in tags or (bool(tags.get(SUBFILE_TYPE, 0) & 1) and MAKE in tags)


def _load(image: Image.Image, name: str) -> None:
    try:
        if isinstance(image, TiffImageFile):  # the only format whose decoder warns
            with _without_warnings():
                image.load()
        else:
            image.load()
    except MemoryError as error:
        raise _refuse(name, SHORT_OF_MEMORY, error) from error
    except Image.DecompressionBombError as error:
        raise _refuse(name, f"Pillow finds it too large: {error}", error) from error
    except Exception as error:
        problem = "it is truncated" if "truncated" in str(error) else "it is truncated or damaged"
        if isinstance(image, Jpeg2KImageFile) and image.width * image.height > LARGE:  # its decoder does not say which
            problem += f", or {SHORT_OF_MEMORY}"
        raise _refuse(name, problem, error) from error


def _read_facts(parse: Callable[[], Image.Exif]) -> ExifFacts:
    try:
        with _without_warnings():
            exif = parse()
            orientation = _to_numbers(exif.get(ExifTags.Base.Orientation))
    except Exception:  # a malformed block makes Pillow's parser raise errors of any class
        return ExifFacts()
    upright = not orientation or orientation[0] not in range(1, 9)
    facts = ExifFacts(1 if upright else int(orientation[0]))
    try:
        with _without_warnings():
            gps = exif.get_ifd(ExifTags.IFD.GPSInfo)
    except Exception:
        return facts
    return ExifFacts(facts.orientation, _read_position(gps), _read_heading(gps))


def _read_position(gps: Mapping[int, Any]) -> tuple[float, float] | None:
    """Latitude and longitude in degrees; None if absent or impossible."""
    tags = ExifTags.GPS
    lat = _read_degrees(gps.get(tags.GPSLatitude), gps.get(tags.GPSLatitudeRef), "NS", 90)
    lon = _read_degrees(gps.get(tags.GPSLongitude), gps.get(tags.GPSLongitudeRef), "EW", 180)
    return None if lat is None or lon is None else (lat, lon)


def _read_heading(gps: Mapping[int, Any]) -> float | None:
    """Direction of the camera; None if absent or impossible. North may be the magnetic one: close enough here."""
    values = _to_numbers(gps.get(ExifTags.GPS.GPSImgDirection))
    return values[0] % 360 if values and 0 <= values[0] <= 360 else None  # also None for NaN


def _read_degrees(value: Any, reference: Any, letters: str, limit: float) -> float | None:
    """Degrees, minutes and seconds as signed degrees; `letters` are those of the positive and the negative side."""
    text = reference.decode("latin-1") if isinstance(reference, bytes) else str(reference or "")
    letter, values = text[:1].upper(), _to_numbers(value)
    if not values or not letter or letter not in letters:
        return None
    degrees = math.fsum(value / unit for value, unit in zip(values, (1, 60, 3600), strict=False))
    if not math.isfinite(degrees) or not 0 <= degrees <= limit:
        return None
    return -degrees if letter == letters[1] else degrees


def _to_numbers(value: Any) -> list[float]:
    """An EXIF value as numbers; a fraction with denominator 0 is NaN, and text and bytes are no numbers."""
    items = value if isinstance(value, (tuple, list)) else [value]
    if any(item is None or isinstance(item, (str, bytes, dict)) for item in items):
        return []
    return [float(item) for item in items[:3]]


def _fit(size: tuple[int, int], max_side: int | None) -> tuple[int, int]:
    if max_side is None or max(size) <= max_side:
        return size
    scale = max_side / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _to_rgb(image: Image.Image, wanted: tuple[int, int]) -> Image.Image:
    """The image in RGB and in the wanted size, strip by strip: a large image is never copied whole in another format.

    The result is that of `resize(wanted, HAMMING, reducing_gap=GAP)` of the whole image in RGB.
    """
    width, height = image.size
    if wanted == image.size:
        factor = 1, 1
    else:
        factor = max(1, int(width / wanted[0] / GAP)), max(1, int(height / wanted[1] / GAP))
    if factor == (1, 1) and image.mode == "RGB" and not image.has_transparency_data:
        canvas = image
    else:
        canvas = Image.new("RGB", (-(-width // factor[0]), -(-height // factor[1])))
        convert = _choose_conversion(image)
        for top, strip in _cut_strips(image, factor[1]):
            part = convert(strip)
            canvas.paste(part if factor == (1, 1) else part.reduce(factor), (0, top // factor[1]))
    if wanted == image.size:
        return canvas
    return canvas.resize(wanted, Image.Resampling.HAMMING, (0.0, 0.0, width / factor[0], height / factor[1]))


def _to_array(image: Image.Image) -> NDArray[np.uint8]:
    pixels = np.empty((image.height, image.width, 3), np.uint8)
    for top, strip in _cut_strips(image):
        pixels[top : top + strip.height] = np.asarray(strip)
    return pixels


def _cut_strips(image: Image.Image, unit: int = 1) -> Iterator[tuple[int, Image.Image]]:
    """The first row of each strip, and the strip; a multiple of `unit` rows each, but for the last."""
    width, height = image.size
    rows = max(1, STRIP // (width * unit)) * unit
    for top in range(0, height, rows):
        yield top, image.crop((0, top, width, min(top + rows, height)))


def _choose_conversion(image: Image.Image) -> Callable[[Image.Image], Image.Image]:
    """How a part of this image becomes RGB."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        low, high = _find_levels(image)
        return lambda part: Image.fromarray(_stretch(np.asarray(part), low, high)).convert("RGB")
    if image.has_transparency_data:
        return _put_on_white
    return lambda part: part.convert("RGB")


def _put_on_white(part: Image.Image) -> Image.Image:
    seen = part.convert("LA") if part.mode == "La" else part  # Pillow cannot convert La directly
    layer = seen.convert("RGBA")
    paper = Image.new("RGB", layer.size, "white")
    paper.paste(layer, mask=layer.getchannel("A"))
    return paper


def _find_levels(image: Image.Image) -> tuple[float, float]:
    """The grey values that become black and white, as the module's docstring describes."""
    step = max(1, int(np.ceil(np.sqrt(image.width * image.height / SAMPLE))))
    rows = [np.asarray(image.crop((0, top, image.width, top + 1)))[:, ::step] for top in range(0, image.height, step)]
    sample = np.concatenate(rows)
    sample = sample[np.isfinite(sample)]
    if not sample.size:
        return 0.0, 0.0
    low, high = (float(value) for value in np.percentile(sample, (0.1, 99.9)))
    if low == high:
        strips = (np.asarray(strip) for _, strip in _cut_strips(image))
        finite = [values[np.isfinite(values)] for values in strips]
        low = float(min(values.min() for values in finite if values.size))
        high = float(max(values.max() for values in finite if values.size))
    return low, high


def _stretch(grey: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Grey values [H, W] of any range as 8 bits."""
    scale = 255.0 / (high - low) if high > low else 0.0
    finite = np.where(np.isfinite(grey), grey, low).astype(np.float64)
    return np.clip(np.rint((finite - low) * scale), 0, 255).astype(np.uint8)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence Pillow's warnings about odd metadata and large images.

    Python has one list of warning filters, so threads take turns; for all formats but TIFF they only parse a header.
    """
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _refuse(name: str, reason: str, cause: Exception | None = None) -> ImageError:
    return ImageError(
        f"cannot read {name}: {reason}",
        expected=f"a whole file in one of the formats {', '.join(formats.DECODED)}",
        actual=f"{type(cause).__name__}: {cause}" if cause else reason,
        fix="open it in an image viewer; copy or export it again if it does not show whole",
    )

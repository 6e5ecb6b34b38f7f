"""One decode process: requests with image bytes on standard input, pixels and thumbnails on standard output.

A message is two lengths (4 and 8 bytes), a header in JSON and a body. The body of a request is the image file; that of
a response is the pixels [H, W, 3] uint8, then the thumbnail. The first message of the process lists the protections
that hold (`protection`). `processes` starts it and limits its time. A process decodes HEIC, AVIF and JPEG XL only if it
is started for that: their libraries are large.
"""

import base64
import contextlib
import io
import json
import math
import os
import struct
import sys
import time
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.data.decode import MAX_PIXELS, SHORT_OF_MEMORY, Decoded, decode, read_exif_block
from resight.errors import ImageError

LENGTHS = struct.Struct("<IQ")
HEADER_LIMIT = 2**20
THUMBNAIL_LIMIT = 2**26  # bytes
PROCESSOR_SECONDS = 600  # hard limit of a process; it asks to be replaced at half of it
QUALITY = 82
# Images of 16 × 16 pixels, in base 85, in formats that are decoded but not encoded here.
SAMPLES = (
    # HEIC
    "0000SW^{RQXk}?*00000ZE0pPXk}?*ZE0a<0004eZDn*}000000000XXk=`10000000000aA{+700000000000000000000B57=IV*mgE07O6l0R"
    "RC200001pa1~?00000001fg001LtX>Mi!000000RR916=`l}WdZ;I000310BCk&F#rGn01j|zbZr0t000010002|X>f9I0002oX>en20001WXm(>"
    "m0RwOV0058x000009`FGC{rLC*01pFT0096PKmiN^|NjGU00093kN^M!000939=ZZRVE_RDDMA4O18@KU0|1Z!00RI30{|YNAb|yz>aLpR;31&Ef"
    "B*mtfB*mk0EA)y0RRR>0l{;@i2wiq6Ju{|a&BX6cmM$a4FCp!0000KX>)L8000000000$0000$0000eV{Bn?0000G000010000G00001|NsBc000"
    "02|NsBc000020000GaA|mH000000|*ER0000OX>e^}0000000001009Mo0s{qv0000oZDe6|0000cC;_hp5))M*`npm(pVSfMz+x&kw5a697$<Z_"
    "o3dw1ZifX<)j$",
    # AVIF
    "0000WW^{RQVRmU|00000VRmU|ZE0pPZE0a<O+hh20002%ZDn*}000000000XXk=`10000000000aA{+7000000000000000000004sdC7Z2$lO00"
    "0310016oY;R)#0000)000310RR910RR926951JB>(^bC~0YKW&i*H00031000_kZf0cy000000RRADb}%tRZ)|UJ00000YH4tCZ~y=ROKEUpZvX%"
    "Q6lrsCWdHyG000005C8xG5C8xG5O8UDX#fBK00RgJ2mk;83}JRLLxBJc000006Ju{|a&BX6cmM$a4FCp!0000NX>e^}0000000001009I60)qqq0"
    "01p*WMOm?0162h4FB37A)wHJG8P~AhlLg2|Nr8^004D;S-r$qrr{@m",
    # JPEG XL
    "{|ZAuBnSin08{`=7>gAE)DvUS#5sTnI7n3hQG)^j",
)
Message = tuple[dict[str, Any], bytes]
Buffer = bytes | memoryview


@dataclass(frozen=True)
class DecodeRequest:
    """What to return of an image. `max_side`: None for all pixels, 0 for none of them."""

    name: str  # for error messages
    max_side: int | None = None
    max_pixels: int = MAX_PIXELS
    thumbnail_side: int = 0  # 0: no thumbnail
    keep_metadata: bool = False  # the thumbnail is then a JPEG with the EXIF block of the file


def main() -> None:
    from resight.data.sandbox.protection import protect  # the parent imports this module, too, and needs no protection

    memory, parent, modern = map(int, sys.argv[1:])
    requests, responses = os.fdopen(0, "rb"), os.fdopen(1, "wb")
    rehearse()
    if modern:
        rehearse_modern()
    send(responses, {"protections": protect(memory, PROCESSOR_SECONDS, parent, threads=bool(modern))})
    while True:
        try:
            header, data = receive(requests, 2**63)
        except EOFError:
            return
        answer, *body = respond(data, DecodeRequest(**header))
        send(responses, {**answer, "is_last": time.process_time() > PROCESSOR_SECONDS / 2}, *body)


def rehearse() -> None:
    """Decode and encode an image of each format, so that whatever these import on first use is loaded."""
    exif = Image.Exif()
    exif[0x8825] = {1: "N", 2: (1.0, 2.0, 3.0), 3: "E", 4: (1.0, 2.0, 3.0), 17: 90.0}
    image = Image.new("RGB", (16, 16))
    samples: tuple[tuple[Image.Image, str, dict[str, Any]], ...] = (
        (image, "JPEG", {"exif": exif}),
        (image, "JPEG", {"progressive": True}),
        (image, "PNG", {"exif": exif, "transparency": (0, 0, 0)}),
        (image.convert("P"), "PNG", {"transparency": b"\0"}),
        (Image.fromarray(np.arange(256, dtype=np.uint16).reshape(16, 16)), "PNG", {}),
        (image.convert("RGBA"), "WEBP", {"exif": exif}),
        (image, "GIF", {"save_all": True, "append_images": [Image.new("RGB", (16, 16), "red")]}),
        (image, "BMP", {}),
        (image, "PPM", {}),
        (image, "TIFF", {}),
        (Image.new("F", (16, 16)), "TIFF", {"compression": "tiff_lzw"}),
        (image, "JPEG2000", {}),
    )
    for each, format, options in samples:
        buffer = io.BytesIO()
        try:
            each.save(buffer, format, **options)
            for keep_metadata in (False, True):
                respond(buffer.getvalue(), DecodeRequest("", 8, thumbnail_side=4, keep_metadata=keep_metadata))
                respond(buffer.getvalue()[:-9], DecodeRequest(""))
        except Exception:  # this build of Pillow lacks a format: images of it are refused
            continue


def rehearse_modern() -> None:
    """Load the decoders of HEIC, AVIF and JPEG XL, with as few threads as they can do with."""
    from PIL import AvifImagePlugin

    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    with contextlib.suppress(ImportError):  # a system without its wheel: HEIC is refused
        import pi_heif.options

        pi_heif.options.DECODE_THREADS = 0  # libheif's own; libde265 starts one
    for sample in SAMPLES:
        respond(base64.b85decode(sample), DecodeRequest("", 8))


def respond(data: bytes, request: DecodeRequest) -> tuple[dict[str, Any], Buffer, bytes]:
    """The response to a request: its header, and the two parts of its body."""
    side = request.thumbnail_side if request.max_side == 0 else request.max_side
    try:
        decoded = decode(data, request.name, side, request.max_pixels)
        thumbnail = _make_thumbnail(data, decoded, request) if request.thumbnail_side else b""
    except ImageError as error:
        return {part: getattr(error, part) for part in ("problem", "expected", "actual", "fix")}, b"", b""
    except MemoryError:
        problem = f"cannot read {request.name}: {SHORT_OF_MEMORY}"
        return {"problem": problem, "expected": "a smaller image", "actual": "", "fix": "reduce the image"}, b"", b""
    pixels = decoded.pixels if request.max_side != 0 else decoded.pixels[:0, :0]
    header = {
        "shape": pixels.shape,
        "size": decoded.size,
        "mode": decoded.mode,
        "orientation": decoded.orientation,
        "position": decoded.position,
        "heading": decoded.heading,
    }
    return header, np.ascontiguousarray(pixels).reshape(-1).data, thumbnail


def read_response(header: dict[str, Any], body: bytes) -> tuple[Decoded, bytes]:
    """The image and the thumbnail; a ValueError, KeyError or TypeError where the header is not that of a response.

    The process may have been taken over by the image that it decoded, so that nothing in its response is trusted.
    """
    height, width, channels = map(int, header["shape"])
    full_width, full_height = map(int, header["size"])
    count = height * width * channels
    if channels != 3 or min(height, width) < 0 or min(full_width, full_height) < 1 or count > len(body):
        raise ValueError("not a size")
    position = None if header["position"] is None else _check_degrees(*header["position"])
    heading = None if header["heading"] is None else _check_degrees(0.0, header["heading"])[1]
    orientation = int(header["orientation"])
    pixels: NDArray[np.uint8] = np.frombuffer(body, np.uint8, count).reshape(height, width, 3)
    size = full_width, full_height
    return Decoded(pixels, size, str(header["mode"])[:16], orientation, position, heading), body[count:]


def send(stream: IO[bytes], header: dict[str, Any], *body: Buffer) -> None:
    """Write a message; its body is given in parts, which are not copied."""
    text = json.dumps(header).encode()
    stream.write(LENGTHS.pack(len(text), sum(map(len, body))))
    stream.write(text)
    for part in body:
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes], limit: int) -> Message:
    """The next message, whose body is at most `limit` bytes."""
    text_length, body_length = LENGTHS.unpack(_read(stream, LENGTHS.size))
    if text_length > HEADER_LIMIT or body_length > limit:
        raise ValueError("not a message")
    header = json.loads(_read(stream, text_length))
    if not isinstance(header, dict):
        raise ValueError("not a message")
    return header, _read(stream, body_length)


def _make_thumbnail(data: bytes, decoded: Decoded, request: DecodeRequest) -> bytes:
    """A new file of the pixels alone: nothing hidden in the original passes through."""
    image = Image.fromarray(decoded.pixels)
    image.thumbnail((request.thumbnail_side, request.thumbnail_side), Image.Resampling.HAMMING)
    out = io.BytesIO()
    if request.keep_metadata:
        image.save(out, "JPEG", quality=QUALITY, exif=read_exif_block(data, request.name))
    else:
        image.save(out, "WEBP", quality=QUALITY, method=2)
    return out.getvalue()


def _check_degrees(first: float, second: float) -> tuple[float, float]:
    values = float(first), float(second)
    if not all(math.isfinite(value) and abs(value) <= 360 for value in values):
        raise ValueError("not degrees")
    return values


def _read(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError("the stream ended")
    return data


if __name__ == "__main__":
    main()

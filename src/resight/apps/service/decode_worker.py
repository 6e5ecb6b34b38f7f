"""One decode process: requests with image bytes on standard input, pixels and thumbnails on standard output.

A message is two lengths (4 and 8 bytes), a header in JSON and a body. The body of a request is the image file; that of
a response is the pixels [H, W, 3] uint8, then the thumbnail. The process limits its own memory, and can neither write
files nor dump core; `decode_pool` limits its time.
"""

import io
import json
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.data import image_files
from resight.errors import ImageError
from resight.types import ImageRef, Picture

LENGTHS = struct.Struct("<IQ")
HEADER_LIMIT = 2**20
BASE_MEMORY = 640 * 2**20  # bytes of address space that Python and its libraries need
BYTES_PER_PIXEL = 20  # of the largest image, over all copies that a conversion makes
QUALITY = 82
ORIENTATION, GPS = 0x0112, 0x8825  # EXIF tags
Message = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class DecodeRequest:
    """What to return of an image. `max_side`: None for all pixels, 0 for none of them."""

    name: str  # for error messages
    max_side: int | None = None
    thumbnail_side: int = 0  # 0: no thumbnail
    keep_metadata: bool = False  # the thumbnail is then a JPEG with the EXIF block of the file
    known: tuple[str, ...] = ()  # attributes that the image's EXIF block must not set


def main() -> None:
    max_pixels = int(sys.argv[1])
    limit_memory(BASE_MEMORY + BYTES_PER_PIXEL * max_pixels)
    requests, responses = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            header, data = receive(requests)
        except EOFError:
            return
        send(responses, *decode(data, DecodeRequest(**header), max_pixels))


def decode(data: bytes, request: DecodeRequest, max_pixels: int) -> Message:
    """The response to a request: its header and its body."""
    ref = ImageRef(request.name, Path(request.name), unsaid=frozenset(request.known))
    side = request.thumbnail_side if request.max_side == 0 else request.max_side
    try:
        picture = image_files.read_bytes(data, ref, side, max_pixels)
        thumbnail = _make_thumbnail(data, picture, request) if request.thumbnail_side else b""
    except ImageError as error:
        return {part: getattr(error, part) for part in ("problem", "expected", "actual", "fix")}, b""
    except MemoryError:
        problem = f"cannot read {request.name}: decoding it needs too much memory"
        return {"problem": problem, "expected": "", "actual": "", "fix": ""}, b""
    pixels = picture.pixels if request.max_side != 0 else picture.pixels[:0, :0]
    header = {
        "shape": pixels.shape,
        "size": picture.size,
        "sha256": picture.sha256,
        "attributes": dict(picture.ref.attributes),
    }
    return header, np.ascontiguousarray(pixels).tobytes() + thumbnail


def send(stream: IO[bytes], header: dict[str, Any], body: bytes) -> None:
    text = json.dumps(header).encode()
    stream.write(LENGTHS.pack(len(text), len(body)))
    stream.write(text)
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> Message:
    text_length, body_length = LENGTHS.unpack(_read(stream, LENGTHS.size))
    if text_length > HEADER_LIMIT:
        raise ValueError("not a message")
    return json.loads(_read(stream, text_length)), _read(stream, body_length)


def split_body(header: dict[str, Any], body: bytes) -> tuple[NDArray[np.uint8], bytes]:
    """The pixels and the thumbnail of a response."""
    height, width, channels = header["shape"]
    count = height * width * channels
    return np.frombuffer(body, np.uint8, count).reshape(height, width, channels), body[count:]


def limit_memory(bytes: int) -> None:
    """Limit the address space of this process, where the system supports that."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in ((resource.RLIMIT_AS, bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        _, most = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _make_thumbnail(data: bytes, picture: Picture, request: DecodeRequest) -> bytes:
    """A new file of the pixels alone: nothing hidden in the original passes through."""
    image = Image.fromarray(picture.pixels)
    image.thumbnail((request.thumbnail_side, request.thumbnail_side), Image.Resampling.HAMMING)
    out = io.BytesIO()
    if request.keep_metadata:
        image.save(out, "JPEG", quality=QUALITY, exif=_read_exif(data))
    else:
        image.save(out, "WEBP", quality=QUALITY, method=2)
    return out.getvalue()


def _read_exif(data: bytes) -> bytes:
    """The EXIF block of a file with the orientation set to upright; empty where the file has none."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            block = image.getexif()
            block[ORIENTATION] = 1
            return block.tobytes() if len(block) > 1 or block.get_ifd(GPS) else b""
    except Exception:  # Pillow raises many kinds of errors for malformed metadata; the pixels are intact
        return b""


def _read(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError("the stream ended")
    return data


if __name__ == "__main__":
    main()

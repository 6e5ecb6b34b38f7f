"""One decoding process: orders and bytes on standard input, pixels and small pictures on standard output.

A message is two lengths (4 and 8 bytes), a header in JSON and a body. The body of an order is the image file; that of
an answer is the pixels [H, W, 3] uint8, then the small picture. It runs with a limit on memory, and can neither write
files nor leave a core behind; whoever starts it limits the time.
"""

import io
import json
import struct
import sys
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.data import image_files
from resight.errors import ImageError
from resight.types import Picture

LENGTHS = struct.Struct("<IQ")
HEADER_LIMIT = 2**20
ROOM = 640 * 2**20  # bytes of address space that Python and its libraries take
BYTES_A_PIXEL = 20  # of the largest image, over all copies that a conversion makes
QUALITY = 82
ORIENTATION, GPS = 0x0112, 0x8825  # EXIF tags
Message = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class Order:
    """What is wanted of an image; `max_side` None: all pixels, 0: none of them. The small picture is made from them."""

    name: str  # for messages
    max_side: int | None = None
    small_side: int = 0  # 0: no small picture
    keep_metadata: bool = False  # the small picture is then a JPEG with the EXIF block of the file


def main() -> None:
    max_pixels = int(sys.argv[1])
    limit_memory(ROOM + BYTES_A_PIXEL * max_pixels)
    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            header, data = receive(orders)
        except EOFError:
            return
        send(answers, *work(data, Order(**header), max_pixels))


def work(data: bytes, order: Order, max_pixels: int) -> Message:
    """The answer to an order: its header and its body."""
    try:
        picture = image_files.read_bytes(
            data, order.name, order.small_side if order.max_side == 0 else order.max_side, max_pixels
        )
        small = _draw_small(data, picture, order) if order.small_side else b""
    except ImageError as error:
        return {part: getattr(error, part) for part in ("problem", "expected", "actual", "fix")}, b""
    except MemoryError:
        return {
            "problem": f"cannot read {order.name}: it takes too much memory",
            "expected": "",
            "actual": "",
            "fix": "",
        }, b""
    pixels = picture.pixels if order.max_side != 0 else picture.pixels[:0, :0]
    header = {
        "shape": pixels.shape,
        "size": picture.size,
        "sha256": picture.sha256,
        "attributes": dict(picture.ref.attributes),
    }
    return header, np.ascontiguousarray(pixels).tobytes() + small


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
    """Pixels and small picture of an answer."""
    height, width, channels = header["shape"]
    count = height * width * channels
    return np.frombuffer(body, np.uint8, count).reshape(height, width, channels), body[count:]


def limit_memory(room: int) -> None:
    """Where the system knows such limits."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in ((resource.RLIMIT_AS, room), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        _, most = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _draw_small(data: bytes, picture: Picture, order: Order) -> bytes:
    """A new file of the pixels alone: nothing that the old one hid comes through."""
    image = Image.fromarray(picture.pixels)
    image.thumbnail((order.small_side, order.small_side), Image.Resampling.HAMMING)
    out = io.BytesIO()
    if order.keep_metadata:
        image.save(out, "JPEG", quality=QUALITY, exif=_read_metadata(data))
    else:
        image.save(out, "WEBP", quality=QUALITY, method=2)
    return out.getvalue()


def _read_metadata(data: bytes) -> bytes:
    """The EXIF block of a file, told that the picture is upright now; empty where there is none."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            block = image.getexif()
            block[ORIENTATION] = 1
            return block.tobytes() if len(block) > 1 or block.get_ifd(GPS) else b""
    except Exception:  # Pillow's parsers raise whatever malformed metadata lead them to; the picture itself is whole
        return b""


def _read(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError("the stream ended")
    return data


if __name__ == "__main__":
    main()

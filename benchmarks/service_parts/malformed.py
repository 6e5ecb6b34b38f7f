"""Uploads that are no images, no longer images, or images that nobody should decode.

`make_malformed` gives name, bytes, and whether the upload is certainly not an image: a picture with some bits flipped
may still decode, and then an answer is right.
"""

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from PIL import Image

FORMATS = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP", "tif": "TIFF", "gif": "GIF"}
PAGE = b"<!doctype html><script>alert(1)</script>"
VECTOR = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><rect width="9" height="9"/></svg>'


class Upload(NamedTuple):
    name: str
    data: bytes
    certain: bool  # that it is not an image


def make_malformed(count: int, generator: Generator) -> Iterator[Upload]:
    """`count` uploads, every kind as often as the others, made one at a time."""
    whole = {suffix: draw(format, generator) for suffix, format in FORMATS.items()}
    for number in range(count):
        kind, make = KINDS[number % len(KINDS)]
        suffix = list(FORMATS)[int(generator.integers(len(FORMATS)))]
        data, certain = make(whole[suffix], suffix, generator)
        yield Upload(f"{kind}-{number}.{suffix}", data, certain)


def _truncate(data: bytes, suffix: str, generator: Generator) -> tuple[bytes, bool]:
    # The last bytes of a file may be padding that no decoder misses.
    return data[: int(generator.integers(0, len(data) * 8 // 10))], suffix != "tif"


def _flip(data: bytes, _: str, generator: Generator) -> tuple[bytes, bool]:
    values = np.frombuffer(data, np.uint8).copy()
    places = generator.integers(0, len(values), int(generator.integers(1, 200)))
    values[places] ^= np.uint8(1) << generator.integers(0, 8, len(places)).astype(np.uint8)
    return values.tobytes(), False


def _break_header(data: bytes, _: str, generator: Generator) -> tuple[bytes, bool]:
    return data[:12] + generator.bytes(64) + data[76:], False


def _pretend(data: bytes, suffix: str, generator: Generator) -> tuple[bytes, bool]:
    """The first bytes of a format, then noise."""
    return data[:12] + generator.bytes(int(generator.integers(1, 4000))), suffix not in ("gif", "tif")


def _make_noise(_: bytes, __: str, generator: Generator) -> tuple[bytes, bool]:
    return b"\0" + generator.bytes(int(generator.integers(0, 4000))), True


def _make_bomb(_: bytes, suffix: str, generator: Generator) -> tuple[bytes, bool]:
    side = int(generator.integers(20_000, 65_000))
    return BOMBS[suffix](side), True


def _make_polyglot(data: bytes, suffix: str, generator: Generator) -> tuple[bytes, bool]:
    """What a browser might run if it were served as it came."""
    choice = int(generator.integers(4))
    if choice == 0:
        return PAGE + data, True
    if choice == 1:
        return VECTOR, True
    if choice == 2:
        return data[:8] + PAGE + data[8:], suffix in ("png", "webp")
    return b"%PDF-1.7\n" + data, True


def _make_empty(_: bytes, __: str, generator: Generator) -> tuple[bytes, bool]:
    return b" " * int(generator.integers(0, 3)), True


KINDS: tuple[tuple[str, Callable[[bytes, str, Generator], tuple[bytes, bool]]], ...] = (
    ("truncated", _truncate),
    ("flipped", _flip),
    ("header", _break_header),
    ("pretended", _pretend),
    ("noise", _make_noise),
    ("bomb", _make_bomb),
    ("polyglot", _make_polyglot),
    ("empty", _make_empty),
)


def draw(format: str, generator: Generator) -> bytes:
    rough = generator.integers(0, 256, (12, 16, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(rough).resize((320, 240), Image.Resampling.BICUBIC).save(buffer, format)
    return buffer.getvalue()


def _png_bomb(side: int) -> bytes:
    """One colour that deflates a thousandfold; the rows are a part of what the header promises."""
    rows = zlib.compress(bytes(4_000_000), 9)
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def _jpeg_bomb(side: int) -> bytes:
    data = bytearray(draw("JPEG", np.random.default_rng(0)))
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", side, side)
    return bytes(data)


def _gif_bomb(side: int) -> bytes:
    return (
        b"GIF89a"
        + struct.pack("<HH", side, side)
        + b"\x80\0\0"
        + bytes(6)
        + b","
        + struct.pack("<HHHH", 0, 0, side, side)
        + b"\0\x02\x02\x4c\x01\0;"
    )


def _webp_bomb(side: int) -> bytes:
    width = min(side, 16_383) - 1
    bits = (width | width << 14).to_bytes(4, "little")
    body = b"WEBPVP8L" + struct.pack("<I", 5) + b"\x2f" + bits + b"\0"
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _tiff_bomb(side: int) -> bytes:
    tags = [(256, side), (257, side), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, side), (279, 4)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0" + struct.pack("<I", 12) + bytes(4) + struct.pack("<H", len(tags)) + entries + bytes(4)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


BOMBS = {"jpg": _jpeg_bomb, "png": _png_bomb, "gif": _gif_bomb, "webp": _webp_bomb, "tif": _tiff_bomb}

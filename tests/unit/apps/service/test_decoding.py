"""Decoding in processes of their own: real ones, with files that are whole, broken or dangerous."""

import asyncio
import io
import os
import signal
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.builders import draw_texture

from resight.apps.service.decode_worker import Order
from resight.apps.service.decoding import Decoder, DecoderPool, Upload
from resight.data import image_files
from resight.errors import ImageError

MAX_PIXELS = 4_000_000


def encode(width: int = 320, height: int = 240, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(draw_texture(np.random.default_rng(0), width, height)).save(out, kind)
    return out.getvalue()


@pytest.fixture(scope="module")
def pool() -> Iterator[DecoderPool]:
    pool = DecoderPool(1, MAX_PIXELS)
    pool.start()
    yield pool
    pool.close()


def decode(pool: DecoderPool, data: bytes, max_side: int | None = None, small_side: int = 0) -> Upload:
    return asyncio.run(pool.decode(data, "x.png", max_side=max_side, small_side=small_side))


@pytest.mark.parametrize("max_side", [None, 100, 1000])
def test_a_picture_is_the_one_that_the_library_reads(pool: DecoderPool, max_side: int | None) -> None:
    data = encode(kind="JPEG")
    upload, expected = decode(pool, data, max_side), image_files.read_bytes(data, "x.png", max_side)
    assert np.array_equal(upload.picture.pixels, expected.pixels)
    assert upload.picture.size == (320, 240)
    assert upload.picture.sha256 == expected.sha256
    assert upload.picture.ref == expected.ref
    assert upload.small is None


def test_a_small_picture_comes_along_when_it_is_asked_for(pool: DecoderPool) -> None:
    small = decode(pool, encode(), small_side=96).small
    assert small is not None
    with Image.open(io.BytesIO(small)) as image:
        assert (image.format, image.size) == ("WEBP", (96, 72))


def test_what_is_no_image_is_refused_by_its_name_and_the_decoder_lives_on(pool: DecoderPool) -> None:
    before = pool.replaced
    for data in (b"", b"no image", encode()[:-200], encode(kind="JPEG")[:500]):
        with pytest.raises(ImageError, match="x\\.png"):
            decode(pool, data)
    assert decode(pool, encode()).picture.size == (320, 240)
    assert pool.replaced == before


def test_a_bomb_is_refused_by_its_header(pool: DecoderPool) -> None:
    with pytest.raises(ImageError, match="more than the limit"):
        decode(pool, draw_bomb(60_000, 60_000))


@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGKILL, 20.0), (signal.SIGSTOP, 0.5)])
def test_a_decoder_that_dies_or_hangs_is_replaced_and_only_its_image_is_refused(
    number: signal.Signals, seconds: float
) -> None:
    pool = DecoderPool(1, MAX_PIXELS, seconds)

    def decode_in_trouble(one: Decoder) -> Upload:
        os.kill(one.pid, number)
        return one.decode(encode(), Order("x.png"))

    try:
        with pytest.raises(ImageError, match="too much time or memory"):
            asyncio.run(pool.run(decode_in_trouble))
        assert pool.replaced == 1
        pool.seconds = 20.0
        assert decode(pool, encode()).picture.size == (320, 240)
    finally:
        pool.close()


def test_no_secret_of_the_service_is_in_a_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIGHT_API_KEY", "k" * 20)
    fresh = DecoderPool(1, MAX_PIXELS)
    fresh.start()
    try:
        environment = asyncio.run(fresh.run(lambda one: Path(f"/proc/{one.pid}/environ").read_bytes()))
    finally:
        fresh.close()
    assert b"k" * 20 not in environment
    assert b"OPENBLAS_NUM_THREADS" in environment


def draw_bomb(width: int, height: int) -> bytes:
    """The beginning of a PNG that says it is huge."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")

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

from resight.apps.service.decode_pool import DecodedImage, DecodePool, DecodeProcess
from resight.apps.service.decode_worker import DecodeRequest
from resight.data import image_files
from resight.errors import ImageError
from resight.types import ImageRef

MAX_PIXELS = 4_000_000


def encode(width: int = 320, height: int = 240, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(draw_texture(np.random.default_rng(0), width, height)).save(out, kind)
    return out.getvalue()


@pytest.fixture(scope="module")
def pool() -> Iterator[DecodePool]:
    pool = DecodePool(1, MAX_PIXELS)
    pool.start()
    yield pool
    pool.close()


def decode(pool: DecodePool, data: bytes, max_side: int | None = None, thumbnail_side: int = 0) -> DecodedImage:
    return asyncio.run(pool.decode(data, "x.png", max_side=max_side, thumbnail_side=thumbnail_side))


@pytest.mark.parametrize("max_side", [None, 100, 1000])
def test_a_picture_is_the_one_that_the_library_reads(pool: DecodePool, max_side: int | None) -> None:
    data = encode(kind="JPEG")
    upload, expected = decode(pool, data, max_side), image_files.read_bytes(data, "x.png", max_side)
    assert np.array_equal(upload.picture.pixels, expected.pixels)
    assert upload.picture.size == (320, 240)
    assert upload.picture.sha256 == expected.sha256
    assert upload.picture.ref == expected.ref
    assert upload.thumbnail is None


def test_a_small_picture_comes_along_when_it_is_asked_for(pool: DecodePool) -> None:
    small = decode(pool, encode(), thumbnail_side=96).thumbnail
    assert small is not None
    with Image.open(io.BytesIO(small)) as image:
        assert (image.format, image.size) == ("WEBP", (96, 72))


def test_what_is_no_image_is_refused_by_its_name_and_the_decoder_lives_on(pool: DecodePool) -> None:
    before = pool.replaced
    for data in (b"", b"no image", encode()[:-200], encode(kind="JPEG")[:500]):
        with pytest.raises(ImageError, match="x\\.png"):
            decode(pool, data)
    assert decode(pool, encode()).picture.size == (320, 240)
    assert pool.replaced == before


def test_a_file_is_read_as_the_library_reads_it(pool: DecodePool, tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(encode(kind="JPEG"))
    ref = ImageRef("a", path, attributes={"label": "x", "lat": 1.0}, unsaid=frozenset({"heading"}))
    picture, expected = pool.read(ref, 100), image_files.read(ref, 100)
    assert np.array_equal(picture.pixels, expected.pixels)
    assert (picture.ref, picture.size, picture.sha256) == (expected.ref, expected.size, expected.sha256)
    assert (picture.bytes, picture.modified_ns) == (expected.bytes, expected.modified_ns)
    path.write_bytes(b"no image")
    with pytest.raises(ImageError) as caught:
        pool.read(ref)
    assert caught.value.problem.startswith(f"cannot read {path}: ")


@pytest.mark.parametrize("attributes", [{}, {"heading": 5.0}, {"lat": 1.0}])
def test_a_position_in_exif_fills_only_what_is_not_known(
    pool: DecodePool, tmp_path: Path, attributes: dict[str, float]
) -> None:
    exif = Image.Exif()
    exif[0x8825] = {1: "N", 2: (48.0, 30.0, 0.0), 3: "E", 4: (2.0, 0.0, 0.0), 16: "T", 17: 90.0}
    path = tmp_path / "a.jpg"
    Image.fromarray(draw_texture(np.random.default_rng(0), 32, 32)).save(path, exif=exif)
    ref = ImageRef("a", path, attributes=attributes)
    assert pool.read(ref).ref == image_files.read(ref).ref
    assert set(pool.read(ref).ref.attributes) == set(image_files.read(ref).ref.attributes)


def test_a_bomb_is_refused_by_its_header(pool: DecodePool) -> None:
    with pytest.raises(ImageError, match="more than the limit"):
        decode(pool, draw_bomb(60_000, 60_000))


@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGKILL, 20.0), (signal.SIGSTOP, 0.5)])
def test_a_decoder_that_dies_or_hangs_is_replaced_and_only_its_image_is_refused(
    number: signal.Signals, seconds: float
) -> None:
    pool = DecodePool(1, MAX_PIXELS, seconds)

    def decode_in_trouble(one: DecodeProcess) -> DecodedImage:
        os.kill(one.pid, number)
        return one.decode(encode(), DecodeRequest("x.png"))

    try:
        with pytest.raises(ImageError, match="too much time or memory"):
            asyncio.run(pool.run(decode_in_trouble))
        assert pool.replaced == 1
        pool.timeout = 20.0
        assert decode(pool, encode()).picture.size == (320, 240)
    finally:
        pool.close()


def test_no_secret_of_the_service_is_in_a_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIGHT_API_KEY", "k" * 20)
    fresh = DecodePool(1, MAX_PIXELS)
    fresh.start()
    try:
        decode(fresh, encode())  # the process runs by now
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

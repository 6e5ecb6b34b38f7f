"""How the service uses the sandbox: pictures as the library reads them, thumbnails, and a bound on waiting."""

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.builders import draw_texture
from support.odd_images import png_header

from resight.apps.service import decode_pool
from resight.apps.service.decode_pool import DecodedImage, DecodePool
from resight.apps.service.error_responses import ApiError
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


def test_what_is_no_image_is_refused_by_its_name_and_the_process_lives_on(pool: DecodePool) -> None:
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


def test_the_limits_are_those_of_the_service(pool: DecodePool) -> None:
    assert pool.timeout < 10  # no client waits longer for one image
    assert "limits" in pool.protections
    with pytest.raises(ImageError, match="more than the limit of 4,000,000"):
        decode(pool, png_header(2001, 2000))


def test_images_beyond_those_that_may_wait_are_turned_away(pool: DecodePool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_pool, "WAITING", 2)

    async def send_many() -> list[DecodedImage | BaseException]:
        sent = (pool.decode(encode(), "x.png") for _ in range(4))
        return await asyncio.gather(*sent, return_exceptions=True)

    answers = asyncio.run(send_many())
    assert sum(isinstance(answer, DecodedImage) for answer in answers) == 2
    assert [answer.status for answer in answers if isinstance(answer, ApiError)] == [429, 429]

"""Small pictures of stored images, with a real decoder."""

import asyncio
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.builders import draw_texture
from support.scenes import write_jpeg

from resight.apps.service.decode_pool import DecodePool
from resight.apps.service.error_responses import ApiError
from resight.apps.service.thumbnails import ThumbnailCache, choose_cache_folder, round_up_side
from resight.store import ImageRecord

GPS = 0x8825


@pytest.fixture(scope="module")
def decoders() -> Iterator[DecodePool]:
    pool = DecodePool(1, 4_000_000)
    yield pool
    pool.close()


@pytest.fixture
def record(tmp_path: Path) -> ImageRecord:
    path = write_jpeg(tmp_path / "a.jpg", draw_texture(np.random.default_rng(0), 400, 200), position=(48.5, 2.5))
    return ImageRecord("a", path, hashlib.sha256(path.read_bytes()).hexdigest(), 1, 1, (400, 200))


def test_a_picture_is_made_once_and_holds_no_metadata(
    record: ImageRecord, decoders: DecodePool, tmp_path: Path
) -> None:
    cache = ThumbnailCache(tmp_path)
    data = asyncio.run(cache.read(record, 160, decoders))
    with Image.open(io.BytesIO(data)) as image:
        assert (image.format, image.size, dict(image.getexif())) == ("WEBP", (160, 80), {})
    record.path.unlink()
    assert asyncio.run(cache.read(record, 160, decoders)) == data
    with pytest.raises(ApiError) as caught:
        asyncio.run(cache.read(record, 320, decoders))
    assert caught.value.status == 404
    assert str(tmp_path) not in str(caught.value)


def test_metadata_are_kept_when_they_are_asked_for(record: ImageRecord, decoders: DecodePool, tmp_path: Path) -> None:
    data = asyncio.run(ThumbnailCache(tmp_path).read(record, 160, decoders, keep_metadata=True))
    with Image.open(io.BytesIO(data)) as image:
        assert image.format == "JPEG"
        latitude = image.getexif().get_ifd(GPS)[2]
    assert float(latitude[0]) + float(latitude[1]) / 60 + float(latitude[2]) / 3600 == pytest.approx(48.5)


def test_the_thumbnails_not_used_for_longest_go_first(tmp_path: Path) -> None:
    cache = ThumbnailCache(tmp_path, capacity=1000)
    for age, name in enumerate(["new", "old", "older"]):
        path = cache.folder / "aa" / name
        cache._write(path, bytes(300))
        os.utime(path, (1e9 - age, 1e9 - age))
    cache._write(cache.folder / "aa" / "newest", bytes(300))
    assert sorted(path.name for path in cache.folder.glob("*/*")) == ["new", "newest"]  # 800 bytes are left of 1,000


def test_a_size_is_rounded_up_to_the_next_that_is_kept() -> None:
    assert [round_up_side(side) for side in (1, 96, 97, 640, 641, 99_999)] == [96, 96, 160, 640, 1280, 2048]


def test_where_the_collection_cannot_be_written_to_the_users_cache_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    folder = choose_cache_folder(tmp_path / "photos.resight")
    assert folder.is_relative_to(tmp_path / "cache")
    assert folder != choose_cache_folder(tmp_path / "other.resight")


def test_a_file_that_has_changed_is_not_shown_as_the_one_that_was_added(
    record: ImageRecord, decoders: DecodePool, tmp_path: Path
) -> None:
    cache = ThumbnailCache(tmp_path)
    own = record.path.read_bytes()
    write_jpeg(record.path, draw_texture(np.random.default_rng(1), 400, 200))
    with pytest.raises(ApiError) as caught:
        asyncio.run(cache.read(record, 160, decoders))
    assert caught.value.status == 404
    record.path.write_bytes(own)
    assert asyncio.run(cache.read(record, 160, decoders))


def test_pictures_of_what_is_no_longer_stored_go(record: ImageRecord, decoders: DecodePool, tmp_path: Path) -> None:
    cache = ThumbnailCache(tmp_path)
    asyncio.run(cache.read(record, 160, decoders))
    asyncio.run(cache.read(record, 160, decoders, keep_metadata=True))
    assert cache.remove_unused({record.sha256}) == 0
    assert cache.remove_unused(set()) == 2
    assert not list(cache.folder.glob("*/*"))

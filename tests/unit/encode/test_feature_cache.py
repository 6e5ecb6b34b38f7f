"""The cache of features: what is found again, what is computed, and what has to go."""

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.builders import draw_texture, fill_picture, make_picture

from resight.encode.backbones import sift
from resight.encode.encoder import Encoder
from resight.encode.feature_cache import Cached, FeatureCache, find_folder
from resight.errors import StorageError
from resight.types import Branch, Choice, Features, Picture

PLENTY = 10**9


class Counting:
    """A backbone whose patches are the mean of the picture, and that counts what it is shown."""

    max_side: int | None = 100
    fingerprint = "counting"
    batch = 2

    def __init__(self) -> None:
        self.seen: list[str] = []

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        for picture in pictures:
            self.seen.append(picture.ref.id)
            value = np.full((1, 6, 100), picture.pixels.mean() * scale, np.float32)
            yield Features((picture.ref.id,), value, np.array([picture.size], np.int32), grid=(2, 3), cls=value[:, 0])


def see(backbone: Cached, *pictures: Picture, scale: float = 1.0) -> list[Features]:
    return list(backbone.extract(pictures, scale))


def test_a_picture_is_computed_once_and_comes_back_whole(tmp_path: Path):
    inner = Counting()
    picture = fill_picture(8, 6, "a", grey=40)
    (first,) = see(Cached(inner, FeatureCache(tmp_path, PLENTY)), picture)
    (second,) = see(Cached(inner, FeatureCache(tmp_path, PLENTY)), picture)  # as another process would
    assert inner.seen == ["a"]
    assert second.ids == ("a",)
    assert second.grid == (2, 3)
    assert second.attention is None
    np.testing.assert_array_equal(second.patches, first.patches)
    np.testing.assert_array_equal(second.cls, first.cls)
    np.testing.assert_array_equal(second.sizes, [[8, 6]])


def test_known_and_new_pictures_come_in_the_order_asked_for(tmp_path: Path):
    inner, cache = Counting(), FeatureCache(tmp_path, PLENTY)
    pictures = [fill_picture(4, 4, name, grey=10 * number) for number, name in enumerate("abcd")]
    see(Cached(inner, cache), pictures[1], pictures[3])
    features = see(Cached(inner, cache), *pictures)
    assert [one.ids for one in features] == [("a",), ("b",), ("c",), ("d",)]
    assert [float(one.patches[0, 0, 0]) for one in features] == [0, 10, 20, 30]
    assert inner.seen == ["b", "d", "a", "c"]
    assert (cache.found, cache.computed) == (2, 4)


def test_the_same_pixels_under_another_name_are_known(tmp_path: Path):
    inner = Counting()
    backbone = Cached(inner, FeatureCache(tmp_path, PLENTY))
    see(backbone, fill_picture(4, 4, "a"))
    (again,) = see(backbone, fill_picture(4, 4, "b"))
    assert again.ids == ("b",)
    assert inner.seen == ["a"]


def test_other_pixels_scale_size_or_backbone_are_not_taken_for_it(tmp_path: Path):
    inner, cache = Counting(), FeatureCache(tmp_path, PLENTY)
    backbone, picture = Cached(inner, cache), fill_picture(4, 4, "a")
    see(backbone, picture)
    see(backbone, fill_picture(4, 4, "pixels", grey=129))
    see(backbone, replace(picture, size=(8, 8)))
    see(backbone, picture, scale=0.5)
    inner.fingerprint = "another"
    see(Cached(inner, cache), picture)
    assert len(inner.seen) == 5


def test_key_points_are_kept_exactly(tmp_path: Path):
    picture = make_picture(draw_texture(np.random.default_rng(0)))
    backbone = sift.build(sift.Config(features=50))
    (plain,) = backbone.extract([picture])
    for _ in range(2):
        (kept,) = see(Cached(backbone, FeatureCache(tmp_path, PLENTY)), picture)
        np.testing.assert_array_equal(kept.points, plain.points)
        np.testing.assert_array_equal(kept.patches, plain.patches)
        assert kept.grid is None


def test_above_the_limit_what_was_not_used_for_longest_goes(tmp_path: Path):
    inner = Counting()
    cache = FeatureCache(tmp_path, 20_000)  # about six entries of 3 kB
    backbone = Cached(inner, cache)
    pictures = [fill_picture(4, 4, str(number), grey=number) for number in range(12)]
    for age, picture in enumerate(pictures):
        see(backbone, picture)
        for path in tmp_path.glob("??/*"):  # file times are too coarse for a test
            status = path.stat()
            os.utime(path, (status.st_atime - 10, status.st_mtime - 10))
        if age >= 1:
            see(backbone, pictures[0])  # stays in use
    assert sum(path.stat().st_size for path in tmp_path.glob("??/*")) <= 20_000
    inner.seen.clear()
    see(backbone, pictures[0], pictures[11])
    assert inner.seen == []
    see(backbone, pictures[2])
    assert inner.seen == ["2"]


def test_what_is_larger_than_the_limit_is_not_kept(tmp_path: Path):
    see(Cached(Counting(), FeatureCache(tmp_path, 1000)), fill_picture(4, 4))
    assert list(tmp_path.glob("??/*")) == []


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut off", b"not a file of arrays"])
def test_a_damaged_file_is_computed_again(tmp_path: Path, damage: bytes):
    inner, cache = Counting(), FeatureCache(tmp_path, PLENTY)
    backbone, picture = Cached(inner, cache), fill_picture(4, 4, "a")
    see(backbone, picture)
    (path,) = tmp_path.glob("??/*")
    path.write_bytes(damage)
    (again,) = see(backbone, picture)
    assert again.grid == (2, 3)
    assert inner.seen == ["a", "a"]
    assert path.stat().st_size > len(damage)


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot cache features in"):
        see(Cached(Counting(), FeatureCache(tmp_path / "file", PLENTY)), fill_picture(4, 4))


def test_several_threads_may_use_it_at_once(tmp_path: Path):
    backbone = Cached(Counting(), FeatureCache(tmp_path, 30_000))
    pictures = [fill_picture(4, 4, str(number), grey=number) for number in range(30)]
    wrong: list[str] = []

    def look() -> None:
        for picture in pictures:
            (features,) = see(backbone, picture)
            if features.patches[0, 0, 0] != float(picture.ref.id):
                wrong.append(picture.ref.id)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_encoder_asks_the_cache_and_spaces_do_not_change(tmp_path: Path):
    branch = Branch(Choice("sift", {"features": 30}), Choice("local"))
    cache = FeatureCache(tmp_path, PLENTY)
    picture = make_picture(draw_texture(np.random.default_rng(0)))
    plain, cached = Encoder([branch]), Encoder([branch], cache)
    assert plain.spaces == cached.spaces
    ((rows,),) = plain.encode([picture])
    for _ in range(2):
        ((again,),) = cached.encode([picture])
        np.testing.assert_array_equal(rows.vectors, again.vectors)
    assert (cache.found, cache.computed) == (1, 1)


def test_the_folder_is_the_one_named_or_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("RESIGHT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_folder() == tmp_path / "resight" / "features"
    monkeypatch.setenv("RESIGHT_CACHE", str(tmp_path / "own"))
    assert find_folder() == tmp_path / "own"


def test_a_picture_without_key_points_is_kept_too(tmp_path: Path):
    backbone = sift.build(sift.Config())
    for _ in range(2):
        (kept,) = see(Cached(backbone, FeatureCache(tmp_path, PLENTY)), fill_picture(32, 32))
        assert kept.patches.shape == (1, 0, 128)
        assert kept.points is not None and kept.points.shape == (1, 0, 4)


def test_what_was_kept_can_be_written_to_and_lies_aligned(tmp_path: Path):
    see(Cached(Counting(), FeatureCache(tmp_path, PLENTY)), fill_picture(4, 4))
    (again,) = see(Cached(Counting(), FeatureCache(tmp_path, PLENTY)), fill_picture(4, 4))
    assert again.patches.flags.writeable and again.patches.flags.aligned

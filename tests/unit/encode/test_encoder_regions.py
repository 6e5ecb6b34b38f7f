"""Branches whose images are cut: which parts a backbone sees, and where their rows lie."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.builders import draw_texture, make_picture

from resight.boxes import crop
from resight.encode import encoder as encoders
from resight.encode.encoder import Encoder
from resight.encode.feature_cache import FeatureCache
from resight.encode.regions import join_regions, shift
from resight.errors import SpaceMismatch
from resight.types import Branch, Choice, Descriptors, Features, Picture

LITE = Choice("efficientnet_lite", {"block": 3, "size": 64})
MEAN = Choice("pooled", {"pooling": "mean"})


def cut(level: int, descriptor: Choice = MEAN, **more: Choice) -> Branch:
    return Branch(LITE, descriptor, regions=Choice("grid", {"level": level}), **more)


def draw(id: str = "a", width: int = 320, height: int = 240) -> Picture:
    return make_picture(draw_texture(np.random.default_rng(0), width, height), id)


def encode(branches: Sequence[Branch], pictures: Sequence[Picture], role="database") -> list[tuple[Descriptors, ...]]:
    return list(Encoder(branches).encode(pictures, role))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The sizes of all parts that went through a backbone."""
    sizes: list[tuple[int, int]] = []
    build = encoders.backbones.build

    class Watched:
        def __init__(self, *choice, **settings):
            self._inner = build(*choice, **settings)
            self.max_side, self.fingerprint = self._inner.max_side, self._inner.fingerprint
            self.batch = self._inner.batch

        def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
            sizes.extend(picture.size for picture in pictures)
            return self._inner.extract(pictures, scale)

    monkeypatch.setattr(encoders.backbones, "build", Watched)
    return sizes


def test_each_region_has_the_vector_of_its_crop_and_its_box():
    picture = draw()
    ((rows,),) = encode([cut(1)], [picture])
    assert rows.ids == ("a",) and rows.owners.tolist() == [0] * 5
    assert rows.boxes is not None
    assert rows.boxes[[0, 4]].tolist() == [[0, 0, 320, 240], [160, 120, 320, 240]]
    ((corner,),) = encode([Branch(LITE, MEAN)], [crop(picture, (160, 120, 320, 240))])
    np.testing.assert_allclose(rows.vectors[4], corner.vectors[0], atol=1e-6)


def test_the_whole_image_is_its_own_first_region():
    ((cut_rows, whole),) = encode([cut(2), Branch(LITE, MEAN)], [draw()])
    np.testing.assert_array_equal(cut_rows.vectors[0], whole.vectors[0])
    assert whole.boxes is None


def test_branches_share_the_regions_that_both_cut(seen: list[tuple[int, int]]):
    rows = encode([cut(0), cut(1), cut(2), Branch(LITE, MEAN)], [draw("a"), draw("b")])
    assert [[len(part) for part in image] for image in rows] == [[1, 5, 14, 1]] * 2
    assert len(seen) == 2 * 14


def test_many_regions_go_through_in_portions_and_come_out_in_order(monkeypatch: pytest.MonkeyPatch):
    pictures = [draw(name, 160 + 32 * number, 128) for number, name in enumerate("abcde")]
    together = encode([cut(1)], pictures)
    monkeypatch.setattr("resight.encode.encoder.BATCH", 7)
    apart = encode([cut(1)], pictures)
    assert [rows.ids for (rows,) in apart] == [(name,) for name in "abcde"]
    for (one,), (other,) in zip(together, apart, strict=True):
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-6)


def test_the_query_stays_whole_unless_it_is_cut_too():
    ((whole, both),) = encode([cut(1), cut(1, query_regions=Choice("grid", {"level": 2}))], [draw()], "query")
    assert (len(whole), len(both)) == (1, 14)
    assert whole.boxes is None and both.boxes is None
    spaces = Encoder([cut(1), cut(1, query_regions=Choice("grid", {"level": 2})), cut(2), Branch(LITE, MEAN)]).spaces
    assert spaces[0] == spaces[1] and len(set(spaces)) == 3


def test_tokens_of_a_region_lie_in_it_in_pixels_of_the_whole():
    ((rows,),) = encode([cut(1, Choice("tokens", {"k": 4, "selection": "grid"}))], [draw()])
    assert rows.boxes is not None and len(rows) == 5 * 4
    low, high = rows.boxes[-4:, :2].min(axis=0), rows.boxes[-4:, 2:].max(axis=0)
    assert (low >= (160, 120)).all() and (high <= (320, 240)).all()


def test_key_points_of_a_region_lie_in_pixels_of_the_whole():
    branch = Branch(Choice("sift"), Choice("local"), regions=Choice("grid", {"level": 1}))
    ((rows,),) = encode([branch], [draw()])
    assert rows.points is not None and rows.boxes is None
    assert rows.points[:, 0].max() > 200 and rows.points[:, 1].max() > 150


def test_pictures_are_decoded_large_enough_for_the_finest_region():
    plain, fine = Encoder([Branch(LITE, MEAN)]), Encoder([cut(3)])
    assert plain.max_side is not None and fine.max_side == 4 * plain.max_side
    assert fine.query_side == plain.query_side


def test_a_picture_too_small_to_be_cut_is_described_whole():
    ((rows,),) = encode([cut(3)], [draw("tiny", 9, 9)])
    assert rows.boxes is not None and rows.boxes.tolist() == [[0, 0, 9, 9]]
    ((rows,),) = encode([cut(3)], [make_picture(np.zeros((1, 1, 3), np.uint8))])
    assert rows.boxes is not None and rows.boxes.tolist() == [[0, 0, 1, 1]]


def test_a_panorama_has_cells_of_its_own_proportions_and_square_ones_where_asked_for():
    branches = [cut(1), Branch(LITE, MEAN, regions=Choice("grid", {"level": 1, "cells": "square"}))]
    ((even, square),) = encode(branches, [draw("wide", 1280, 64)])
    assert even.boxes is not None and square.boxes is not None
    assert even.boxes[1].tolist() == [0, 0, 640, 32]
    assert square.boxes[1].tolist() == [0, 0, 320, 64]


def test_regions_come_from_the_cache_of_features(tmp_path: Path):
    cache = FeatureCache(tmp_path, 1 << 30)
    first = [list(Encoder([cut(1)], cache).encode([draw()]))]
    assert (cache.found, cache.computed) == (0, 5)
    again = [list(Encoder([cut(2)], cache).encode([draw()]))]
    assert (cache.found, cache.computed) == (5, 14)
    np.testing.assert_array_equal(first[0][0][0].vectors, again[0][0][0].vectors[:5])


def test_what_was_learnt_from_whole_images_serves_regions_and_the_other_way_round(monkeypatch: pytest.MonkeyPatch):
    whole, regions = Encoder([Branch(LITE, MEAN)]).spaces[0], Encoder([cut(2)]).spaces[0]

    class Learnt:
        fingerprint = "learnt"

        def __init__(self, space: str) -> None:
            self.space = space

        def apply(self, rows: Descriptors, role: str) -> Descriptors:  # noqa: ARG002
            return rows

    for space in (whole, regions):
        monkeypatch.setattr(encoders.transforms, "build", lambda name, space=space: Learnt(space))  # noqa: ARG005
        for branch in (Branch(LITE, MEAN, (Choice("whiten"),)), cut(1, transforms=(Choice("whiten"),))):
            Encoder([branch])
    with pytest.raises(SpaceMismatch):
        Encoder([Branch(LITE, Choice("pooled", {"pooling": "max"}), (Choice("whiten"),))])


def test_rows_are_moved_by_the_corner_of_their_part():
    box, point = np.array([[0, 0, 4, 4]], np.float32), np.array([[1, 2, 8, 90]], np.float32)
    rows = Descriptors(("a",), np.zeros((1, 2)), np.zeros(1, np.int32), boxes=box, points=point, seeds=box)
    moved = shift(rows, 10, 20)
    assert moved.boxes is not None and moved.points is not None and moved.seeds is not None
    assert moved.boxes.tolist() == moved.seeds.tolist() == [[10, 20, 14, 24]]
    assert moved.points.tolist() == [[11, 22, 8, 90]]


def test_joined_rows_keep_what_all_parts_have():
    one = Descriptors(("a",), np.ones((2, 3)), np.zeros(2, np.int32), weights=np.ones(2, np.float32))
    two = Descriptors(("a",), np.zeros((1, 3)), np.zeros(1, np.int32))
    rows = join_regions([one, two], [(0, 0, 8, 8), (2, 2, 4, 4)], "database")
    assert rows.weights is None and rows.owners.tolist() == [0, 0, 0]
    assert rows.boxes is not None and rows.boxes.tolist() == [[0, 0, 8, 8], [0, 0, 8, 8], [2, 2, 4, 4]]

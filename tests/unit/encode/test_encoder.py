from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.builders import draw_texture, fill_picture, make_picture

from resight.encode import codebook as codebooks
from resight.encode.backbones.sift import Sift
from resight.encode.encoder import Encoder, encode_box
from resight.encode.feature_cache import FeatureCache
from resight.types import Branch, Choice, Features, Picture

SIFT = Choice("sift", {"features": 100})


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pictures each pass of a backbone was given."""
    seen: list[int] = []
    extract = Sift.extract

    def count(self: Sift, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        seen.append(len(pictures))
        return extract(self, pictures, scale)

    monkeypatch.setattr(Sift, "extract", count)
    return seen


def branch(encoder: Choice = SIFT, descriptor: str = "local", weight: float = 1.0, **settings: object) -> Branch:
    return Branch(encoder, Choice(descriptor, settings), weight=weight)


def space(part: Branch) -> str:
    return Encoder([part]).spaces[0]


def test_branches_with_the_same_encoder_share_one_pass(passes: list[int]):
    encoder = Encoder([branch(), branch(descriptor="vlad"), branch(limit=5)])
    list(encoder.encode([fill_picture(32, 32)] * 3))
    assert passes == [3]


def test_branches_whose_encoders_differ_have_a_pass_each(passes: list[int]):
    encoder = Encoder([branch(), branch(Choice("sift", {"features": 50}))])
    list(encoder.encode([fill_picture(32, 32)] * 3))
    assert passes == [3, 3]


def test_every_branch_describes_every_picture_in_order():
    encoder = Encoder([branch(), branch(Choice("sift", {"features": 10}), descriptor="vlad")])
    texture = make_picture(draw_texture(np.random.default_rng(0)), "b")
    rows = list(encoder.encode([fill_picture(32, 32, "a"), texture]))
    assert [[part.ids for part in parts] for parts in rows] == [[("a",), ("a",)], [("b",), ("b",)]]
    assert [[len(part) for part in parts] for parts in rows] == [[0, 1], [100, 1]]


def test_rows_carry_the_space_of_their_branch():
    encoder = Encoder([branch(), branch(descriptor="vlad")])
    (rows,) = encoder.encode([fill_picture(32, 32)])
    assert tuple(part.space for part in rows) == encoder.spaces
    assert len(set(encoder.spaces)) == 2


def test_the_role_reaches_the_descriptor():
    encoder = Encoder([branch(descriptor="asmk", query_words=5)])
    picture = make_picture(draw_texture(np.random.default_rng(0)))
    ((image,),), ((query,),) = encoder.encode([picture]), encoder.encode([picture], "query")
    assert len(query) > len(image)


@pytest.mark.parametrize("setting", [{"features": 101}, {"contrast": 0.02}, {"max_side": 801}])
def test_another_setting_of_the_encoder_is_another_space(setting: dict):
    assert space(branch(Choice("sift", {**SIFT.settings, **setting}))) != space(branch())


def test_another_setting_of_the_descriptor_is_another_space():
    assert space(branch(limit=999)) != space(branch(limit=1000)) == space(branch())


def test_another_code_book_is_another_space(tmp_path: Path):
    codebooks.save(codebooks.make(np.zeros((2, 128), np.float32)), tmp_path / "own.npz")
    own = branch(descriptor="vlad", codebook=tmp_path / "own.npz")
    assert space(own) != space(branch(descriptor="vlad"))


def test_what_only_weighs_or_concerns_queries_leaves_the_space_as_it_is():
    assert space(branch(weight=0.5)) == space(branch())
    assert space(branch(descriptor="asmk", query_words=1)) == space(branch(descriptor="asmk", query_words=5))


def test_pictures_are_wanted_as_large_as_the_largest_encoder_wants_them():
    small, large = Choice("sift", {"max_side": 300}), Choice("sift", {"max_side": 500})
    assert Encoder([branch(small), branch(large)]).max_side == 500


def test_a_batch_is_taken_apart_with_what_each_picture_covers():
    from resight.encode.backbones import unbatch
    from resight.types import Features

    covers = np.array([[0, 0, 4, 4], [1, 1, 3, 3]], np.float32)
    batch = Features(("a", "b"), np.zeros((2, 1, 3)), np.ones((2, 2), np.int32), grid=(1, 1), covers=covers)
    assert [one.covers.tolist() for one in unbatch(iter([batch]))] == [[[0, 0, 4, 4]], [[1, 1, 3, 3]]]


def test_a_photometric_step_has_passes_and_a_space_of_its_own(passes: list[int]):
    flat = replace(branch(), photometric=Choice("flatten"))
    encoder = Encoder([branch(), flat, replace(flat, descriptor=Choice("vlad"))])
    list(encoder.encode([fill_picture(32, 32)] * 3))
    assert passes == [3, 3]
    assert len(encoder.networks) == 1
    assert encoder.spaces[1].startswith("flatten(sigma=0.15, low=1, high=99) > sift(")
    assert space(branch()) == encoder.spaces[0]
    assert space(replace(branch(), photometric=Choice("flatten", {"sigma": 0.2}))) != encoder.spaces[1]


def test_regions_are_flattened_one_by_one_and_stay_where_they_are():
    pixels = draw_texture(np.random.default_rng(0), 120, 80)
    pixels[:, 60:] //= 8  # the right half is dark
    flat = replace(branch(), photometric=Choice("flatten"))
    (whole,) = encode_box(make_picture(pixels), (60, 0, 120, 80), Encoder([flat]), "database")
    alone = Encoder([flat]).encode([make_picture(pixels[:, 60:].copy())])
    ((half,),) = alone
    np.testing.assert_array_equal(whole.vectors, half.vectors)
    np.testing.assert_allclose(whole.points[:, :2], half.points[:, :2] + [60, 0], atol=1e-4)


def test_database_and_query_are_flattened_alike():
    picture = make_picture(draw_texture(np.random.default_rng(0)))
    encoder = Encoder([replace(branch(Choice("sift", {"features": 50})), photometric=Choice("flatten"))])
    ((stored,),), ((asked,),) = encoder.encode([picture]), encoder.encode([picture], "query")
    np.testing.assert_array_equal(stored.vectors, asked.vectors)


def test_a_cache_keeps_flattened_features_apart(tmp_path: Path, passes: list[int]):
    cache = FeatureCache(tmp_path, 1 << 20)
    flat = replace(branch(), photometric=Choice("flatten"))
    picture = make_picture(draw_texture(np.random.default_rng(0)))
    for _ in range(2):
        list(Encoder([branch(), flat], cache).encode([picture]))
    assert passes == [1, 1]
    assert (cache.found, cache.computed) == (2, 2)

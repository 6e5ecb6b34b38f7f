import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.builders import keypoint_features

from resight.encode import codebook as codebooks
from resight.encode import descriptors
from resight.encode.descriptors.bow import Bow, Config
from resight.errors import RecipeError
from resight.types import Features

BOOK = codebooks.make(np.array([[0], [1], [4]], np.float32), gap=2.0)


def describe(rows: list[list[float]], **settings) -> dict[int, float]:
    found = Bow(BOOK, Config(**settings)).describe(keypoint_features(rows), "database")
    assert found.words is not None
    return dict(zip(found.words.tolist(), found.vectors[:, 0].tolist(), strict=True))


def test_each_feature_counts_for_its_nearest_word():
    assert describe([[0.2], [3], [9], [-1]]) == {0: 2, 2: 2}


def test_rows_hold_words_that_rise_and_counts():
    rows = Bow(BOOK, Config()).describe(keypoint_features([[5], [0]], "x"), "query")
    assert rows.ids == ("x",)
    assert rows.words is not None and rows.words.tolist() == [0, 2]
    assert rows.vectors.tolist() == [[1], [1]]
    assert (rows.vectors.dtype, rows.words.dtype, rows.owners.tolist()) == (np.float32, np.int32, [0, 0])


def test_soft_assignment_shares_a_feature_out_by_a_gaussian():
    # at 1: squared distances 1, 0 and 9; width 1: exp(-1/2), 1 and exp(-9/2), the last beyond two neighbours
    total = 1 + math.exp(-0.5)
    shares = describe([[1]], assignment="soft", neighbours=2, width=1.0)
    assert shares == pytest.approx({0: math.exp(-0.5) / total, 1: 1 / total})
    three = describe([[1]], assignment="soft", neighbours=3, width=1.0)
    assert three[2] == pytest.approx(math.exp(-4.5) / (total + math.exp(-4.5)))


def test_the_gap_of_the_code_book_is_the_width_where_none_is_set():
    shares = describe([[1]], assignment="soft", neighbours=2)  # 2 width² = 2, as with width 1
    assert shares == pytest.approx(describe([[1]], assignment="soft", neighbours=2, width=1.0))


def test_shares_of_all_features_add_up_to_their_number():
    shares = describe([[0.3], [2], [2.6], [8]], assignment="soft")
    assert sum(shares.values()) == pytest.approx(4)


def test_a_feature_far_from_every_word_is_shared_out_too():
    assert describe([[1e4]], assignment="soft", width=0.01) == {2: 1}


def test_without_gap_and_width_soft_assignment_is_refused():
    with pytest.raises(RecipeError, match="no width for soft assignment"):
        Bow(codebooks.make(BOOK.centres), Config(assignment="soft"))


def test_an_image_without_features_has_no_rows():
    rows = Bow(BOOK, Config(assignment="soft")).describe(keypoint_features(np.zeros((0, 1))), "query")
    assert rows.vectors.shape == (0, 1)
    assert rows.words is not None and rows.words.shape == (0,)


def test_every_image_of_a_batch_has_its_own_counts():
    patches = np.array([[[0], [0]], [[4], [1]]], np.float32)
    batch = Features(("a", "b"), patches, np.full((2, 2), 9, np.int32), grid=(1, 2))
    rows = Bow(BOOK, Config()).describe(batch, "database")
    assert rows.words is not None
    assert (rows.owners.tolist(), rows.words.tolist(), rows.vectors.ravel().tolist()) == (
        [0, 1, 1],
        [0, 1, 2],
        [2, 1, 1],
    )


def test_unit_length_is_what_words_are_found_by_where_it_is_asked_for():
    book = codebooks.make(np.array([[1, 0], [6, 6]], np.float32))
    features = keypoint_features([[8, 1]])
    plain, unit = (Bow(book, Config(normalise=value)).describe(features, "query") for value in (False, True))
    assert plain.words is not None and unit.words is not None
    assert (plain.words.tolist(), unit.words.tolist()) == ([1], [0])


def test_bits_are_counted_by_words_of_bits():
    book = codebooks.make(np.array([[0], [255]], np.uint8))
    features = keypoint_features([[0], [0], [0]])
    bits = replace(features, patches=np.array([[[1], [3], [0b11111011]]], np.uint8))
    rows = Bow(book, Config()).describe(bits, "query")
    assert rows.vectors.ravel().tolist() == [2, 1]


def test_settings_that_change_the_rows_change_the_fingerprint():
    settings = [{}, {"assignment": "soft"}, {"assignment": "soft", "neighbours": 3}, {"normalise": True}]
    settings.append({"assignment": "soft", "width": 0.3})
    assert len({Bow(BOOK, Config(**one)).fingerprint for one in settings}) == 5
    assert Bow(BOOK, Config(neighbours=9)).fingerprint == Bow(BOOK, Config()).fingerprint


@pytest.mark.parametrize("name", ["bow", "vlad", "asmk"])
def test_words_that_are_still_to_be_learnt_are_refused_without_images(name: str):
    with pytest.raises(RecipeError, match="no images to learn from"):
        descriptors.build(name, codebook="learn", words=8)


def test_a_file_with_another_number_of_words_is_refused(tmp_path: Path):
    codebooks.save(BOOK, tmp_path / "words.npz")
    assert descriptors.build("bow", codebook=tmp_path / "words.npz", words=3)
    with pytest.raises(RecipeError, match="does not have 5 words"):
        descriptors.build("bow", codebook=tmp_path / "words.npz", words=5)


@pytest.mark.parametrize("name", ["vlad", "asmk"])
def test_words_of_bits_have_no_residuals(name: str, tmp_path: Path):
    codebooks.save(codebooks.make(np.zeros((2, 32), np.uint8)), tmp_path / "bits.npz")
    with pytest.raises(RecipeError, match="bits have no residuals"):
        descriptors.build(name, codebook=tmp_path / "bits.npz")

"""What chance gives, and which pairs of shades are looked at; the whole is tested in integration/test_dedup.py."""

import numpy as np
import pytest
from support.builders import draw_texture, word_rows

from resight.audit.dedup import candidates
from resight.audit.dedup.branches import Branches, choose_branches
from resight.audit.dedup.candidates import (
    Depth,
    build_buckets,
    choose_sharing,
    exceed_chance,
    find_candidates,
    make_keys,
)
from resight.audit.dedup.grey_thumbnails import Side, Thumbnails, shrink
from resight.recipe import load


@pytest.mark.parametrize(
    ("mean", "images", "least"),
    [
        (0.1, 100, 4),  # 100 · P(≥ 3) = 0.015, and never below 4
        (1.0, 1_000, 6),  # 1,000 · P(≥ 5) = 3.7, 1,000 · P(≥ 6) = 0.59
        (1.0, 1_000_000, 10),  # 10⁶ · P(≥ 9) = 1.1, 10⁶ · P(≥ 10) = 0.11
        (0.0, 0, 4),
    ],
)
def test_more_keys_are_asked_for_than_chance_gives_to_any_image(mean, images, least):
    assert exceed_chance(mean, images) == least


def test_the_image_itself_and_real_partners_do_not_raise_what_chance_gives():
    # The mean of all ten is 86.6, which 30 keys would not exceed; of the unrelated ones it is 2 at most.
    shared = np.array([800, 30, 2, 1, 3, 0, 2, 1, 2, 25], np.int32)
    assert choose_sharing(shared, most=12, itself=0).tolist() == [1, 9]


def test_in_a_large_collection_the_others_say_what_chance_gives():
    # 5,000 images share 1 key each on average: 5,000 · P(≥ 7) = 0.4, 5,000 · P(≥ 6) = 3.
    shared = np.tile(np.array([0, 2, 1, 1], np.int32), 1250)
    shared[[7, 8, 9]] = 6, 7, 90
    assert choose_sharing(shared, most=12).tolist() == [9, 8]


def test_no_more_are_chosen_than_asked_for_and_of_equal_ones_the_first():
    shared = np.zeros(200, np.int32)
    shared[[3, 50, 120, 199]] = 9, 20, 9, 9
    assert choose_sharing(shared, most=3).tolist() == [50, 3, 120]


def make_side(pictures):
    grey = np.stack([shrink(pixels) for pixels in pictures])
    ids = tuple(map(str, range(len(grey))))
    thumbnails = Thumbnails(ids, grey, ids, np.zeros(len(grey), bool), ())
    return Side(None, ids, ((0.0, 0.0, 320.0, 240.0),) * len(grey), thumbnails)


def test_without_words_and_vectors_shades_find_mirrored_and_turned_pictures(tmp_path):
    one, two = (draw_texture(np.random.default_rng(seed)) for seed in (1, 2))
    side = make_side([one, two, one[:, ::-1], np.rot90(two, 2)])
    found = find_candidates(side, side, Branches(None, None, (), False), Depth(), tmp_path)
    assert [(*rows, mirrored) for rows, mirrored in zip(found.rows.tolist(), found.mirrored.tolist(), strict=True)] == [
        (0, 2, True),
        (1, 3, False),
    ]


def test_the_default_preset_has_words_key_points_that_mirror_and_vectors():
    assert choose_branches(load("sift_tokens")) == Branches(0, 2, (1,), True)


def test_a_preset_of_tokens_alone_has_neither_words_nor_key_points():
    found = choose_branches(load("tokens"))
    assert (found.words, found.local, found.mirrors) == (None, None, False)
    assert found.dense


# Codes of 8 bits: every bit is in the key.
IMAGES = {"a": {0: [0b1111_0000], 5: [0b0000_0001]}, "b": {0: [0b1111_0000], 5: [0b0000_0011]}, "c": {7: [0b1]}}


def test_images_share_a_key_when_word_and_bits_agree(tmp_path):
    rows = word_rows(IMAGES, 1)
    lists = build_buckets(lambda: iter([rows]), tmp_path / "lists.npy")
    first = rows.owners == 0
    assert lists.count_shared(rows.words[first], rows.vectors[first]).tolist() == [2, 1, 0]


def test_chunks_make_the_same_lists_as_one_piece(tmp_path):
    one = build_buckets(lambda: iter([word_rows(IMAGES, 1)]), tmp_path / "one.npy")
    parts = [word_rows({name: words}, 1) for name, words in IMAGES.items()]
    many = build_buckets(lambda: iter(parts), tmp_path / "many.npy")
    assert one.starts.tolist() == many.starts.tolist()
    assert one.images.tolist() == many.images.tolist()


def test_words_that_no_image_has_are_shared_by_none(tmp_path):
    lists = build_buckets(lambda: iter([word_rows(IMAGES, 1)]), tmp_path / "lists.npy")
    assert lists.count_shared(np.array([4000], np.int32), np.array([[1]], np.uint8)).tolist() == [0, 0, 0]


def test_no_images_make_empty_lists(tmp_path):
    assert build_buckets(lambda: iter([]), tmp_path / "lists.npy").count == 0


def test_longer_codes_give_eight_bits_from_all_over():
    low, high = np.zeros((1, 16), np.uint8), np.full((1, 16), 255, np.uint8)
    word = np.array([3], np.int32)
    assert make_keys(word, low).tolist() == [3 * 256]
    assert make_keys(word, high).tolist() == [3 * 256 + 255]


def test_blocks_give_what_the_whole_matrix_gives(monkeypatch):
    monkeypatch.setattr(candidates, "QUERIES", 7)
    monkeypatch.setattr(candidates, "ROWS", 5)
    rng = np.random.default_rng(0)
    queries, rows = rng.normal(size=(20, 6)).astype(np.float32), rng.normal(size=(33, 6)).astype(np.float32)
    found, products = candidates.find_nearest(queries, rows, 4)
    whole = queries @ rows.T
    assert (found == np.argsort(-whole, axis=1)[:, :4]).all()
    assert np.allclose(products, -np.sort(-whole, axis=1)[:, :4])


def test_no_more_are_found_than_there_are():
    found, _ = candidates.find_nearest(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), 5)
    assert found.tolist() == [[0, 1], [1, 0]]

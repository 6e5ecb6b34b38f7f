import numpy as np
from builders import word_rows

from resight.audit.dedup.candidates import build_lists, make_keys

# Codes of 8 bits: every bit is in the key.
IMAGES = {"a": {0: [0b1111_0000], 5: [0b0000_0001]}, "b": {0: [0b1111_0000], 5: [0b0000_0011]}, "c": {7: [0b1]}}


def test_images_share_a_key_when_word_and_bits_agree(tmp_path):
    rows = word_rows(IMAGES, 1)
    lists = build_lists(lambda: iter([rows]), tmp_path / "lists.npy")
    first = rows.owners == 0
    assert lists.count_shared(rows.words[first], rows.vectors[first]).tolist() == [2, 1, 0]


def test_chunks_make_the_same_lists_as_one_piece(tmp_path):
    one = build_lists(lambda: iter([word_rows(IMAGES, 1)]), tmp_path / "one.npy")
    parts = [word_rows({name: words}, 1) for name, words in IMAGES.items()]
    many = build_lists(lambda: iter(parts), tmp_path / "many.npy")
    assert one.starts.tolist() == many.starts.tolist()
    assert one.images.tolist() == many.images.tolist()


def test_words_that_no_image_has_are_shared_by_none(tmp_path):
    lists = build_lists(lambda: iter([word_rows(IMAGES, 1)]), tmp_path / "lists.npy")
    assert lists.count_shared(np.array([4000], np.int32), np.array([[1]], np.uint8)).tolist() == [0, 0, 0]


def test_no_images_make_empty_lists(tmp_path):
    assert build_lists(lambda: iter([]), tmp_path / "lists.npy").count == 0


def test_longer_codes_give_eight_bits_from_all_over():
    low, high = np.zeros((1, 16), np.uint8), np.full((1, 16), 255, np.uint8)
    word = np.array([3], np.int32)
    assert make_keys(word, low).tolist() == [3 * 256]
    assert make_keys(word, high).tolist() == [3 * 256 + 255]

import numpy as np

from resight.encode.vocabulary.kmeans import find_majorities, find_nearest_codes, vote


def codes(*bits: str) -> np.ndarray:
    return np.array([[int(part, 2) for part in row.split()] for row in bits], np.uint8)


def test_the_nearest_centre_has_the_fewest_bits_that_differ_and_of_equal_ones_it_is_the_first():
    centres = codes("00000000", "11110000", "11111111")
    assert find_nearest_codes(codes("11100000", "11000000", "11111101"), centres).tolist() == [1, 0, 2]


def test_a_bit_is_what_most_rows_have():
    rows = codes("11100000", "11000001", "10000001")
    assert vote(rows, np.zeros(3, np.int64), codes("00000000")).tolist() == codes("11000001").tolist()


def test_an_even_vote_leaves_the_bit_as_it_was():
    rows = codes("11000000", "10100000")
    assert vote(rows, np.zeros(2, np.int64), codes("01000000")).tolist() == codes("11000000").tolist()


def test_a_centre_without_rows_starts_again_at_the_farthest_row():
    rows = codes("00000000", "00000000", "00000111")
    moved = vote(rows, np.zeros(3, np.int64), codes("00000000", "11111111"))
    assert moved.tolist() == codes("00000000", "00000111").tolist()


def test_codes_with_a_few_flipped_bits_lead_back_to_their_origins():
    rng = np.random.default_rng(0)
    origins = rng.integers(0, 256, (3, 32)).astype(np.uint8)
    rows = np.repeat(origins, 50, axis=0)
    for row in range(len(rows)):
        for bit in rng.integers(0, 256, 8):
            rows[row, bit // 8] ^= 1 << (bit % 8)
    found = find_majorities(rows, 3, 20, np.random.default_rng(4))
    assert sorted(found.tolist()) == sorted(origins.tolist())

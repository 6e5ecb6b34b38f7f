import numpy as np
import pytest

from resight import kmeans
from resight.kmeans import assign_codes, find_majorities, update_majorities


def measure_inertia(rows: np.ndarray, centres: np.ndarray) -> float:
    return float(((rows[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1).sum())


def run_lloyd(rows: np.ndarray, centres: np.ndarray, rounds: int) -> np.ndarray:
    for _ in range(rounds):
        nearest = ((rows[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        held = [rows[nearest == word] for word in range(len(centres))]
        centres = np.array([own.mean(axis=0) if len(own) else centres[word] for word, own in enumerate(held)])
    return centres


def test_a_centre_moves_to_the_mean_of_its_rows_and_an_idle_one_to_the_farthest_row():
    rows = np.array([[0, 0], [2, 0], [10, 0], [16, 0]], np.float32)
    centres = np.array([[0, 0], [10, 0], [99, 99]], np.float32)
    moved = kmeans.update_centres(rows, np.array([0, 0, 1, 1]), centres)
    assert moved.tolist() == [[1, 0], [13, 0], [10, 0]]  # 10 and 16 are 3 from their centre; the first of them


def test_clusters_that_lie_apart_are_found():
    places = np.array([[0, 0], [50, 0], [0, 50], [50, 50]], np.float32)
    rows = np.concatenate([place + np.random.default_rng(0).normal(size=(60, 2)) for place in places])
    found = kmeans.find_centres(rows.astype(np.float32), 4, 20, np.random.default_rng(3))
    assert sorted(np.round(found / 50).tolist()) == [[0, 0], [0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("sample", [4, 1000])
def test_the_short_way_ends_within_a_few_per_cent_of_plain_rounds(monkeypatch: pytest.MonkeyPatch, sample: int):
    monkeypatch.setattr(kmeans, "SAMPLE", sample)
    monkeypatch.setattr(kmeans, "NEIGHBOURS", 8)
    rng = np.random.default_rng(1)
    rows = (rng.normal(size=(60, 8))[rng.integers(0, 60, 4000)] + 0.3 * rng.normal(size=(4000, 8))).astype(np.float32)
    plain = run_lloyd(rows, rows[rng.permutation(4000)[:40]], 25)
    short = kmeans.find_centres(rows, 40, 25, np.random.default_rng(2))
    assert measure_inertia(rows, short) < 1.05 * measure_inertia(rows, plain)


def test_rows_that_are_all_alike_give_that_row_again_and_again():
    found = kmeans.find_centres(np.ones((9, 3), np.float32), 4, 5, np.random.default_rng(0))
    assert found.tolist() == [[1, 1, 1]] * 4


def test_as_many_words_as_rows_are_the_rows():
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    assert sorted(kmeans.find_centres(rows, 5, 5, np.random.default_rng(0)).tolist()) == rows.tolist()


def codes(*bits: str) -> np.ndarray:
    return np.array([[int(part, 2) for part in row.split()] for row in bits], np.uint8)


def test_the_nearest_centre_has_the_fewest_bits_that_differ_and_of_equal_ones_it_is_the_first():
    centres = codes("00000000", "11110000", "11111111")
    assert assign_codes(codes("11100000", "11000000", "11111101"), centres).tolist() == [1, 0, 2]


def test_a_bit_is_what_most_rows_have():
    rows = codes("11100000", "11000001", "10000001")
    assert update_majorities(rows, np.zeros(3, np.int64), codes("00000000")).tolist() == codes("11000001").tolist()


def test_an_even_vote_leaves_the_bit_as_it_was():
    rows = codes("11000000", "10100000")
    assert update_majorities(rows, np.zeros(2, np.int64), codes("01000000")).tolist() == codes("11000000").tolist()


def test_a_centre_without_rows_starts_again_at_the_farthest_row():
    rows = codes("00000000", "00000000", "00000111")
    moved = update_majorities(rows, np.zeros(3, np.int64), codes("00000000", "11111111"))
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

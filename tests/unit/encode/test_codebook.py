from pathlib import Path

import numpy as np
import pytest

from resight import kmeans
from resight.encode import codebook as codebooks
from resight.encode.codebook import Words
from resight.errors import InputError


def nearest_by_distance(vectors: np.ndarray, centres: np.ndarray, count: int) -> list[list[int]]:
    distances = np.linalg.norm(vectors[:, None, :] - centres[None, :, :], axis=2)
    return np.argsort(distances, axis=1, kind="stable")[:, :count].tolist()


@pytest.mark.parametrize("count", [1, 3, 8])
def test_words_are_the_nearest_centres_nearest_first(count: int):
    rng = np.random.default_rng(0)
    book = codebooks.make(rng.normal(size=(8, 5)).astype(np.float32))
    vectors = rng.normal(size=(50, 5)).astype(np.float32)
    assert book.assign(vectors, count).tolist() == nearest_by_distance(vectors, book.centres, count)


def test_a_long_centre_does_not_attract_what_is_nearer_to_a_short_one():
    book = codebooks.make(np.array([[1, 0], [10, 0]], np.float32))
    assert book.assign(np.array([[2, 0], [9, 0]], np.float32)).tolist() == [[0], [1]]


def test_more_words_than_there_are_give_all_of_them():
    book = codebooks.make(np.array([[0, 0], [4, 0]], np.float32))
    assert book.assign(np.array([[3, 0]], np.float32), 5).tolist() == [[1, 0]]


def test_no_rows_get_no_words():
    book = codebooks.make(np.zeros((4, 2), np.float32))
    words = book.assign(np.zeros((0, 2), np.float32), 3)
    assert words.shape == (0, 3)
    assert words.dtype == np.int32


def test_rows_beyond_one_block_are_assigned_too(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(1)
    book = codebooks.make(rng.normal(size=(6, 3)).astype(np.float32))
    vectors = rng.normal(size=(25, 3)).astype(np.float32)
    whole = book.assign(vectors, 2).tolist()
    monkeypatch.setattr(kmeans, "BLOCK", 7)
    assert book.assign(vectors, 2).tolist() == whole


def test_one_word_is_the_mean():
    vectors = np.array([[0, 0], [4, 0], [2, 6]], np.float32)
    assert codebooks.learn(vectors, 1).centres.tolist() == [[2, 2]]


def test_each_learnt_word_is_the_mean_of_the_features_given_to_it():
    vectors = np.random.default_rng(2).normal(size=(300, 2)).astype(np.float32)
    book = codebooks.learn(vectors, 4, rounds=100)
    words = book.assign(vectors)[:, 0]
    means = [vectors[words == word].mean(axis=0) for word in range(4)]
    np.testing.assert_allclose(book.centres, means, atol=0.01)


def test_learning_twice_gives_the_same_code_book():
    vectors = np.random.default_rng(3).normal(size=(200, 4)).astype(np.float32)
    assert codebooks.learn(vectors, 10).fingerprint == codebooks.learn(vectors, 10).fingerprint
    assert codebooks.learn(vectors, 10).fingerprint != codebooks.learn(vectors, 11).fingerprint


def test_too_few_features_for_the_words_are_refused():
    with pytest.raises(InputError) as caught:
        codebooks.learn(np.zeros((3, 4), np.float32), 4)
    assert (caught.value.expected, caught.value.actual) == ("at least 4", "3")


def test_what_was_learnt_and_saved_is_loaded_with_the_same_fingerprint(tmp_path: Path):
    learnt = codebooks.learn(np.random.default_rng(4).normal(size=(100, 4)).astype(np.float32), 5)
    codebooks.save(learnt, tmp_path / "words.npz")
    loaded = codebooks.load(tmp_path / "words.npz", "vlad_256")
    assert loaded.fingerprint == learnt.fingerprint
    assert np.array_equal(loaded.centres, learnt.centres)
    assert [path.name for path in tmp_path.iterdir()] == ["words.npz"]


def test_another_centre_gives_another_fingerprint():
    centres = np.zeros((2, 2), np.float32)
    other = np.array([[0, 0], [0, 1]], np.float32)
    assert codebooks.make(centres).fingerprint != codebooks.make(other).fingerprint


@pytest.mark.parametrize(("name", "words"), [("vlad_256", 256), ("asmk_4096", 4096)])
def test_the_shipped_code_books_are_for_sift(name: str, words: int):
    book = codebooks.load(None, name)
    assert book.centres.shape == (words, 128)
    assert book.centres.dtype == np.float32


@pytest.mark.parametrize(
    "content",
    [
        {"words": np.zeros((2, 2))},
        {"centres": np.zeros(3)},
        {"centres": np.array([[np.nan, 0]])},
        {"centres": np.array([["a", "b"]])},
        {"centres": np.array([[None]], dtype=object)},
    ],
    ids=["another name", "one row", "not a number", "text", "objects"],
)
def test_a_file_with_something_else_is_no_code_book(tmp_path: Path, content: dict):
    np.savez(tmp_path / "bad.npz", **content)
    with pytest.raises(InputError, match="not a code book"):
        codebooks.load(tmp_path / "bad.npz", "vlad_256")


def test_a_missing_file_and_a_text_file_are_no_code_books(tmp_path: Path):
    (tmp_path / "text.npz").write_text("centres")
    for name in ("text.npz", "missing.npz"):
        with pytest.raises(InputError, match=name):
            codebooks.load(tmp_path / name, "vlad_256")


@pytest.mark.parametrize("damage", [lambda data: data[:0], lambda data: data[:-20], lambda data: data[:30] + data[60:]])
def test_a_damaged_file_is_no_code_book(tmp_path: Path, damage):
    path = tmp_path / "words.npz"
    codebooks.save(codebooks.make(np.ones((4, 4), np.float32)), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="not a code book"):
        codebooks.load(path, "vlad_256")


@pytest.mark.parametrize("centres", [np.zeros((0, 128)), np.full((2, 3), 1e6), np.full((2, 3), np.nan)])
def test_no_words_and_unusable_numbers_are_no_code_book(centres):
    with pytest.raises(InputError, match="not a code book"):
        codebooks.make(centres.astype(np.float32))


def test_features_of_another_width_are_refused():
    book = codebooks.make(np.ones((4, 64), np.float32))
    with pytest.raises(InputError, match="64 dimensions"):
        book.assign(np.ones((3, 128), np.float32))


def test_words_of_bits_are_nearest_where_the_fewest_differ():
    book = codebooks.make(np.array([[0b00000000], [0b11110000], [0b11111111]], np.uint8))
    words, squares = book.find_nearest(np.array([[0b11100001]], np.uint8), 3)
    assert words.tolist() == [[1, 0, 2]]
    assert squares.tolist() == [[2, 4, 4]]


def test_squared_distances_come_with_the_words():
    book = codebooks.make(np.array([[0, 0], [3, 4]], np.float32))
    words, squares = book.find_nearest(np.array([[3, 0]], np.float32), 2)
    assert words.tolist() == [[0, 1]]
    np.testing.assert_allclose(squares, [[9, 16]], rtol=1e-5)


def test_numbers_do_not_fit_a_book_of_bits_nor_bits_one_of_numbers():
    with pytest.raises(InputError, match="32 bits"):
        codebooks.make(np.zeros((2, 4), np.uint8)).assign(np.zeros((1, 4), np.float32))
    with pytest.raises(InputError, match="4 dimensions"):
        codebooks.make(np.zeros((2, 4), np.float32)).assign(np.zeros((1, 4), np.uint8))


def test_bits_are_learnt_saved_and_loaded_as_bits(tmp_path: Path):
    rows = np.random.default_rng(5).integers(0, 256, (60, 4)).astype(np.uint8)
    book = codebooks.learn(rows, 6)
    codebooks.save(book, tmp_path / "bits.npz")
    loaded = codebooks.load(tmp_path / "bits.npz", "vlad_256")
    assert loaded.is_binary and loaded.centres.dtype == np.uint8
    assert (loaded.fingerprint, loaded.gap) == (book.fingerprint, book.gap)


def test_the_gap_is_how_much_farther_the_second_word_is():
    # the words are 0.5 and 10.5; squared distances 0.25 and 110.25 or 90.25, each twice
    vectors = np.array([[0], [1], [10], [11]], np.float32)
    book = codebooks.learn(vectors, 2)
    assert sorted(book.centres.ravel().tolist()) == [0.5, 10.5]
    assert book.gap == pytest.approx((110.25 + 90.25) / 2 - 0.25)


def test_one_word_has_no_gap():
    assert codebooks.learn(np.ones((3, 2), np.float32), 1).gap is None


@pytest.mark.parametrize("kernels", ["0", "numpy"])
@pytest.mark.parametrize(
    ("rows", "centres", "d", "count"), [(40, 900, 128, 5), (7, 3, 8, 3), (20, 400, 6, 1), (5, 50, 4, 20)]
)
def test_prepared_centres_find_the_same_as_distances(
    rows: int, centres: int, d: int, count: int, kernels: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RESIGHT_KERNELS", kernels)
    rng = np.random.default_rng(rows)
    asked, book = (rng.normal(size=(many, d)).astype(np.float32) for many in (rows, centres))
    numbers, squares = Words(book).find_nearest(asked, count)
    every = np.square(asked[:, None].astype(np.float64) - book).sum(axis=2)
    np.testing.assert_array_equal(numbers, np.argsort(every, axis=1)[:, :count])
    np.testing.assert_allclose(squares, np.sort(every, axis=1)[:, :count], rtol=1e-4, atol=1e-4)
    assert Words(book).find_nearest(asked[:0], count)[0].shape == (0, count)


def test_of_equal_centres_the_first_counts_and_a_row_of_zeros_has_a_nearest():
    book = np.tile(np.float32([[1, 2, 3, 4]]), (600, 1))
    numbers, squares = Words(book).find_nearest(np.float32([[1, 2, 3, 4], [0, 0, 0, 0]]), 2)
    assert numbers.tolist() == [[0, 1], [0, 1]]
    np.testing.assert_allclose(squares, [[0, 0], [30, 30]], atol=1e-4)

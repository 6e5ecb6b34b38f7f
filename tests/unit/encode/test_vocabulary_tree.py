import itertools

import numpy as np
import pytest

from resight.encode import codebook as codebooks
from resight.encode.vocabulary_tree import Tree

LINE = codebooks.make(
    np.array([[0], [2], [5.5], [8], [20], [30]], np.float32),
    Tree((np.array([[1], [8], [25]], np.float32),), (np.array([0, 2, 4, 6]),)),
)


def test_the_word_is_found_below_the_nearest_node():
    # 4.2 is nearer to the node at 1 than to the one at 8, and nearer to the word at 5.5 than to that at 2
    words, squares = LINE.find_nearest(np.array([[0.4], [4.2], [26]], np.float32), 1)
    assert words.tolist() == [[0], [1], [5]]
    np.testing.assert_allclose(squares, [[0.16], [2.2**2], [16]], rtol=1e-5)


def test_two_words_are_looked_for_below_two_nodes():
    words, squares = LINE.find_nearest(np.array([[4.2]], np.float32), 2)
    assert words.tolist() == [[2, 1]]
    np.testing.assert_allclose(squares, [[1.3**2, 2.2**2]], rtol=1e-5)


def test_more_words_than_there_are_give_all_of_them_nearest_first():
    assert LINE.assign(np.array([[9]], np.float32), 99).tolist() == [[3, 2, 1, 0, 4, 5]]


@pytest.mark.parametrize(("words", "branching"), [(20, 3), (17, 4), (9, 8), (64, 4)])
def test_a_tree_has_as_many_words_as_asked_for_and_no_node_too_many_children(words: int, branching: int):
    rows = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    book = codebooks.learn(rows, words, branching=branching)
    assert book.centres.shape == (words, 4)
    assert book.tree is not None
    for starts, below in zip(book.tree.starts, [*book.tree.nodes[1:], book.centres], strict=True):
        assert starts[-1] == len(below)
        assert all(1 <= size <= branching for size in np.diff(starts))
    assert len(book.tree.nodes[0]) <= branching


def test_keeping_all_nodes_finds_what_looking_at_every_word_finds():
    rows = np.random.default_rng(1).normal(size=(400, 3)).astype(np.float32)
    book = codebooks.learn(rows, 30, branching=3)
    flat = codebooks.make(book.centres)
    whole = book.find_nearest(rows[:50], 30)
    assert whole[0].tolist() == flat.assign(rows[:50], 30).tolist()


def test_trees_of_bits_are_compared_by_bits():
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 256, (300, 4)).astype(np.uint8)
    book = codebooks.learn(rows, 12, branching=3)
    words, squares = book.find_nearest(rows[:20], 12)
    for row, (found, distances) in enumerate(zip(words.tolist(), squares.tolist(), strict=True)):
        differing = np.bitwise_count(rows[row] ^ book.centres).sum(axis=1)
        assert distances == [differing[word] for word in found] == sorted(differing)


def test_rows_that_are_all_alike_still_give_so_many_words():
    book = codebooks.learn(np.ones((40, 2), np.float32), 10, branching=3)
    assert book.centres.tolist() == [[1, 1]] * 10


def test_a_tree_is_saved_and_loaded_with_the_same_answers(tmp_path):
    rows = np.random.default_rng(3).normal(size=(200, 3)).astype(np.float32)
    book = codebooks.learn(rows, 20, branching=4)
    codebooks.save(book, tmp_path / "tree.npz")
    loaded = codebooks.load(tmp_path / "tree.npz", "vlad_256")
    assert (loaded.fingerprint, loaded.gap) == (book.fingerprint, book.gap)
    assert loaded.fingerprint != codebooks.make(book.centres).fingerprint
    assert np.array_equal(loaded.assign(rows, 3), book.assign(rows, 3))


def test_children_of_every_node_lie_behind_each_other():
    book = codebooks.learn(np.random.default_rng(4).normal(size=(200, 3)).astype(np.float32), 20, branching=4)
    assert book.tree is not None
    for starts in book.tree.starts:
        assert starts[0] == 0
        assert all(first < second for first, second in itertools.pairwise(starts.tolist()))

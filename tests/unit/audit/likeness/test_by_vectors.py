import numpy as np

from resight.audit.likeness.by_vectors import choose_diverse

# Two that are nearly the same, and a third that is less like the query.
VECTORS = np.array([[1, 0], [0.995, 0.0999], [0, 1]], np.float32)
SIMILARITY = np.array([0.9, 0.89, 0.5], np.float32)


def test_without_diversity_the_nearest_come_first():
    assert choose_diverse(SIMILARITY, VECTORS, 3, 0.0) == [0, 1, 2]


def test_diversity_puts_the_other_one_before_the_twin():
    # After 0: the twin has 0.5 · 0.89 - 0.5 · 0.995 = -0.05, the other 0.5 · 0.5 - 0 = 0.25.
    assert choose_diverse(SIMILARITY, VECTORS, 3, 0.5) == [0, 2, 1]


def test_no_more_are_chosen_than_there_are():
    assert choose_diverse(SIMILARITY, VECTORS, 10, 0.3) != []
    assert sorted(choose_diverse(SIMILARITY, VECTORS, 10, 0.3)) == [0, 1, 2]

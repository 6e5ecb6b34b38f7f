import numpy as np
import pytest

from resight.search import matchers
from resight.search.matchers import LocalFeatures

ANGLES = np.array([0, 40, 100])  # degrees of the query's vectors
OTHERS = np.array([10, 45, 170])  # of the image's


def make_local(degrees: np.ndarray) -> LocalFeatures:
    vectors = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1).astype(np.float32)
    return LocalFeatures("a", vectors, np.zeros((len(vectors), 4), np.float32))


def test_pairs_that_choose_each_other_come_best_first():
    # 5° apart, 10° apart; 100° is nearest to 45°, which 40° has taken.
    assert matchers.build("mutual").match(make_local(ANGLES), make_local(OTHERS)).tolist() == [[1, 1], [0, 0]]


def test_several_may_choose_the_same_if_asked():
    pairs = matchers.build("mutual").match(make_local(ANGLES), make_local(OTHERS), mutual=False)
    assert pairs.tolist() == [[1, 1], [0, 0], [2, 1]]


@pytest.mark.parametrize(("least", "count"), [(np.cos(np.radians(4)), 0), (np.cos(np.radians(6)), 1), (0.9, 2)])
def test_a_pair_needs_the_least_cosine(least: float, count: int):
    assert len(matchers.build("mutual", least=float(least)).match(make_local(ANGLES), make_local(OTHERS))) == count


def test_without_key_points_there_are_no_pairs():
    none = make_local(np.zeros(0))
    for query, image in ((none, make_local(ANGLES)), (make_local(ANGLES), none)):
        assert matchers.build("mutual").match(query, image).shape == (0, 2)

import numpy as np
import pytest

from resight.errors import RecipeError
from resight.search import fusions

SCORES = np.array([[0.9, 0.5, 0.1], [10, 30, 20]], np.float32)


def test_scores_are_added_up_with_their_weights():
    fused = fusions.build("score").fuse(SCORES, np.array([10, 0.1], np.float32))
    assert fused == pytest.approx([10, 8, 3])


def test_ranks_count_whatever_the_scale_of_the_scores():
    # Ranks 1, 2, 3 and 3, 1, 2.
    fused = fusions.build("rank", depth=1).fuse(SCORES, np.array([1, 2], np.float32))
    assert fused == pytest.approx([1 / 2 + 2 / 4, 1 / 3 + 2 / 2, 1 / 4 + 2 / 3])


def test_equal_scores_share_the_best_of_their_ranks():
    fused = fusions.build("rank", depth=0).fuse(np.array([[0, 2, 0, 1]], np.float32), np.ones(1, np.float32))
    assert fused == pytest.approx([1 / 3, 1, 1 / 3, 1 / 2])


def test_standouts_are_added_up_with_their_weights():
    one = np.array([9, 5, 4, 4, 3, 3, 2, 2], np.float32)
    fused = fusions.build("robust_zscore").fuse(np.stack([one, 1000 * one[::-1]]), np.array([1, 2], np.float32))
    assert fused[0] == pytest.approx(5.5 / 1.4826, rel=1e-4)
    assert fused[-1] == pytest.approx(2 * 5.5 / 1.4826, rel=1e-4)


def test_a_depth_below_zero_is_refused():
    with pytest.raises(RecipeError):
        fusions.build("rank", depth=-1)

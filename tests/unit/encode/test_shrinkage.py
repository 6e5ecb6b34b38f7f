import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.encode import shrinkage
from resight.encode.shrinkage import choose_intensity, choose_shrinkage, group_images, measure, measure_pairs, shrink
from resight.errors import InputError


def array(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


def make_pairs(rng: np.random.Generator, things: int, signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Two views of each thing: rows 0, 1 of the first, 2, 3 of the second, …"""
    centres = np.repeat(rng.normal(size=(things, len(signal))) * signal, 2, axis=0)
    return (centres + rng.normal(size=centres.shape) * noise).astype(np.float32)


@pytest.mark.parametrize(
    ("pairs", "groups"),
    [
        ([(0, 1)], [0, 0, -1, -1, -1]),
        ([(3, 4), (0, 2)], [0, -1, 0, 3, 3]),
        ([(3, 4), (1, 2), (4, 1)], [-1, 1, 1, 1, 1]),
        ([(4, 3), (3, 2), (2, 1), (1, 0)], [0, 0, 0, 0, 0]),
    ],
)
def test_images_that_pairs_tie_together_are_a_group(pairs: list[tuple[int, int]], groups: list[int]):
    assert group_images(array(pairs), 5).tolist() == groups


def test_the_covariance_of_differences_is_about_zero_and_not_their_mean():
    gallery = np.array([[2, 0], [0, 0], [3, 1], [3, 0]], np.float32)
    covariance, _ = measure_pairs(gallery, array([(0, 1), (2, 3)]))
    assert covariance.tolist() == [[2, 0], [0, 0.5]]  # differences (2, 0) and (0, 1)


def test_pairs_that_follow_from_others_are_no_more_to_go_by():
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(20, 6)).astype(np.float32)
    apart = array([(row, row + 1) for row in range(0, 20, 2)])
    star = array([(0, other) for other in range(1, 11)])
    everything = array([(a, b) for b in range(11) for a in range(b)])
    assert measure_pairs(gallery, apart)[1] < 1
    few, many = measure_pairs(gallery, star)[1], measure_pairs(gallery, everything)[1]
    assert many >= 0.5 * few  # 55 pairs of the same 11 images are not five times the evidence


def test_the_analytic_intensity_stays_where_whitening_helps():
    rng = np.random.default_rng(1)
    noise = np.where(np.arange(16) < 4, 3.0, 0.1)
    gallery = make_pairs(rng, 60, np.ones(16), noise)
    pairs = array([(row, row + 1) for row in range(0, 120, 2)])
    verdict = choose_shrinkage(gallery, pairs, gallery.mean(axis=0), 0.5, rng)
    assert verdict.shrinkage == measure_pairs(gallery, pairs)[1]
    assert verdict.before is not None and verdict.after is not None
    assert verdict.after > verdict.before + 0.2


def test_vectors_that_are_best_as_they_are_are_left_so():
    rng = np.random.default_rng(2)
    # Views differ in length alone, which the cosine does not see; taken off a common mean, their directions differ too.
    directions = np.repeat(rng.uniform(1, 2, size=(60, 6)), 2, axis=0)
    gallery = (directions * rng.uniform(0.2, 1, size=(120, 1))).astype(np.float32)
    pairs = array([(row, row + 1) for row in range(0, 120, 2)])
    verdict = choose_shrinkage(gallery, pairs, gallery.mean(axis=0), 0.5, rng)
    assert verdict.shrinkage is None
    assert (verdict.before, verdict.after) == (1, 1)


def test_too_few_pairs_to_compare_take_the_analytic_intensity():
    rng = np.random.default_rng(3)
    gallery = make_pairs(rng, 9, np.ones(4), np.ones(4))
    pairs = array([(row, row + 1) for row in range(0, 18, 2)])
    verdict = choose_shrinkage(gallery, pairs, gallery.mean(axis=0), 0.5, rng)
    assert (verdict.shrinkage, verdict.before, verdict.after) == (measure_pairs(gallery, pairs)[1], None, None)


def test_partners_of_a_partner_are_not_wrong_answers():
    """Three views of each thing lie together, so that either partner comes first: the score is 1 for both."""
    rng = np.random.default_rng(4)
    gallery = np.repeat(rng.normal(size=(12, 8)), 3, axis=0).astype(np.float32)
    gallery += rng.normal(size=gallery.shape).astype(np.float32) * 0.01
    pairs = array([(row + a, row + b) for row in range(0, 36, 3) for a, b in ((0, 1), (0, 2), (1, 2))])
    assert choose_shrinkage(gallery, pairs, gallery.mean(axis=0), 0.5, rng).before == 1


def test_what_is_asked_was_not_learnt_from_and_everything_is_asked_once(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(5)
    gallery = make_pairs(rng, 24, np.ones(4), np.ones(4))
    pairs = array([(row, row + step) for row in range(0, 48, 4) for step in (1, 2, 3)])  # twelve groups of four images
    seen: list[tuple[int, int]] = []
    attempt = shrinkage._score_choices

    def watch(gallery: np.ndarray, learnt: np.ndarray, asked: np.ndarray, *rest: object) -> np.ndarray:
        assert set(learnt.ravel() // 4).isdisjoint(asked.ravel() // 4)
        assert len(learnt) + len(asked) == len(pairs)
        seen.extend(map(tuple, asked.tolist()))
        return attempt(gallery, learnt, asked, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(shrinkage, "_score_choices", watch)
    choose_shrinkage(gallery, pairs, gallery.mean(axis=0), 0.5, rng)
    assert sorted(seen) == sorted(map(tuple, pairs.tolist()))


def test_moments_of_the_corners_of_a_square():
    corners = np.array([[0, 0], [2, 0], [0, 2], [2, 2]], np.float32)
    moments = measure(lambda: [corners[:3], corners[3:]])
    assert (moments.rows, moments.mean.tolist(), moments.covariance.tolist()) == (4, [1, 1], [[1, 0], [0, 1]])
    assert moments.fourth == 4  # every corner is √2 from the middle


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), at_once=st.integers(1, 5))
def test_blocks_of_any_size_give_the_covariance_of_all_rows(sizes: list[int], at_once: int):
    rows = np.random.default_rng(sum(sizes)).normal(5, 1, (sum(sizes), 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shrinkage, "ROWS_AT_ONCE", at_once)
        moments = measure(lambda: np.split(rows, np.cumsum(sizes)[:-1]))
    np.testing.assert_allclose(moments.covariance, np.cov(rows.T, bias=True), atol=1e-9)
    np.testing.assert_allclose(moments.fourth, (np.linalg.norm(rows - rows.mean(axis=0), axis=1) ** 4).mean())


@pytest.mark.parametrize(
    ("fourth", "independent", "intensity"),
    [
        (20, 10, 0.8),  # Ledoit-Wolf (20 - 10) / (10 × 2) = 0.5, OAS 16 / (10 × 2)
        (20, 100, 0.08),  # 0.05, 16 / (100 × 2)
        (110, 100, 0.5),  # heavy tails: (110 - 10) / (100 × 2), 0.08
        (20, 1, 1.0),
        (20, 0, 1.0),
    ],
)
def test_the_intensity_is_the_larger_of_two_estimates(fourth: float, independent: int, intensity: float):
    assert choose_intensity(np.diag([3.0, 1.0]), fourth, independent) == pytest.approx(intensity)


def test_what_is_round_already_is_shrunk_wholly():
    assert choose_intensity(np.eye(3), 9.0, 1000) == 1
    assert choose_intensity(np.array([[7.0]]), 49.0, 1000) == 1
    assert choose_intensity(np.zeros((2, 2)), 0.0, 5) == 1


def test_normal_rows_need_less_shrinkage_the_more_there_are():
    rng = np.random.default_rng(0)
    scales = np.geomspace(1, 10, 20)
    found = [measure(lambda n=n: [rng.normal(size=(n, 20)) * scales]).shrinkage for n in (3, 30, 300, 3000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.5 and found[-1] < 0.02


def test_eigenvalues_move_towards_their_mean():
    assert shrink(np.array([0.0, 4.0]), 0.5).tolist() == [1, 3]
    assert shrink(np.array([0.0, 4.0]), 1).tolist() == [2, 2]
    assert shrink(np.array([1.0, 4.0]), 0).tolist() == [1, 4]


def test_eigenvalues_stay_above_zero():
    assert shrink(np.array([0.0, 4.0]), 0).min() > 0
    assert shrink(np.array([0.0, 0.0]), 0.5).tolist() == [1, 1]


def test_vectors_too_long_for_a_covariance_are_refused():
    with pytest.raises(InputError, match="at most 4,096"):
        measure(lambda: [np.zeros((2, 4097), np.float32)])


def test_vectors_that_are_not_numbers_are_refused():
    with pytest.raises(InputError, match="finite"):
        measure(lambda: [np.array([[1.0, np.nan], [0.0, 1.0]])])

import numpy as np
import pytest

from resight.encode import shrinkage
from resight.encode.shrinkage import choose_shrinkage, group_images, measure_pairs


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
    attempt = shrinkage._try

    def watch(gallery: np.ndarray, learnt: np.ndarray, asked: np.ndarray, *rest: object) -> np.ndarray:
        assert set(learnt.ravel() // 4).isdisjoint(asked.ravel() // 4)
        assert len(learnt) + len(asked) == len(pairs)
        seen.extend(map(tuple, asked.tolist()))
        return attempt(gallery, learnt, asked, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(shrinkage, "_try", watch)
    choose_shrinkage(gallery, pairs, gallery.mean(axis=0), 0.5, rng)
    assert sorted(seen) == sorted(map(tuple, pairs.tolist()))

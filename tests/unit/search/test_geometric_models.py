"""Models from matched key points whose true motion is known."""

import numpy as np
import pytest

from resight.search.a_contrario import Extent
from resight.search.geometric_models import choose, fit_fundamental, fit_homography, fit_similarity
from resight.types import Box

OUTLINE: Box = (0.0, 0.0, 600.0, 400.0)
Points = np.ndarray


def make_points(rng: np.random.Generator, count: int) -> Points:
    """Key points of size 8 and angle 20."""
    return np.column_stack([rng.uniform((0, 0), OUTLINE[2:], (count, 2)), np.full(count, 8), np.full(count, 20)])


def move(points: Points, scale: float, degrees: float, shift: tuple[float, float]) -> Points:
    turn = np.radians(degrees)
    matrix = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return np.column_stack([points[:, :2] @ matrix.T + shift, points[:, 2] * scale, points[:, 3] + degrees])


def add_wrong(rng: np.random.Generator, query: Points, image: Points, count: int) -> tuple[Points, Points]:
    wrong = make_points(rng, count)
    wrong[:, 3] = rng.uniform(0, 360, count)
    wrong[:, 2] = 2 ** rng.uniform(1, 5, count)
    mixed = np.vstack([query, make_points(rng, count)]), np.vstack([image, wrong])
    order = rng.permutation(len(mixed[0]))
    return mixed[0][order].astype(np.float32), mixed[1][order].astype(np.float32)


@pytest.mark.parametrize("shaped", [True, False])
def test_with_and_without_the_compiled_kernels_the_same_model_is_found(shaped: bool, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(4)
    query = make_points(rng, 30)
    ends = add_wrong(rng, query, move(query, 1.5, 170, (90, -20)), 120)
    for points in ends:
        points[:, 2:] = points[:, 2:] if shaped else np.nan
    fits = []
    for kernels in ("0", "numpy"):
        monkeypatch.setenv("RESIGHT_KERNELS", kernels)
        fits.append(fit_similarity(*ends, Extent(ends[1])))
    one, other = fits
    assert one is not None and other is not None and one.significance == pytest.approx(other.significance)
    assert one.inliers.sum() >= 28 and (one.inliers == other.inliers).all()


def test_eight_of_a_hundred_matches_give_the_similarity_that_moved_them():
    rng = np.random.default_rng(1)
    query = make_points(rng, 8)
    ends = add_wrong(rng, query, move(query, 0.5, 30, (200, 50)), 92)
    fit = fit_similarity(*ends, Extent(ends[1]))
    assert fit is not None and fit.model == "similarity"
    assert fit.inliers.sum() == pytest.approx(8, abs=1)
    assert np.degrees(np.arctan2(fit.transform[1, 0], fit.transform[0, 0])) == pytest.approx(30, abs=1)
    assert np.sqrt(np.linalg.det(fit.transform[:2, :2])) == pytest.approx(0.5, rel=0.02)
    assert fit.significance > 3


def test_random_matches_are_not_significant():
    rng = np.random.default_rng(2)
    none = np.zeros((0, 4))
    for _ in range(20):
        ends = add_wrong(rng, none, none, 60)
        fit = fit_similarity(*ends, Extent(ends[1]))
        assert fit is None or fit.significance < 1.5


def test_points_at_many_depths_agree_with_a_loose_similarity_where_no_homography_fits():
    """A walk to the side: what is near moves up to 40 pixels further than what is far."""
    rng = np.random.default_rng(3)
    query = make_points(rng, 60)
    image = move(query, 1.0, 0, (30, 0))
    image[:, 0] += rng.uniform(0, 40, 60)
    ends = query.astype(np.float32), image.astype(np.float32)
    extent = Extent(ends[1])
    similarity, homography = fit_similarity(*ends, extent), fit_homography(*ends, OUTLINE, extent, 6.0, 2000)
    chosen = choose([homography, similarity])
    assert similarity is not None and chosen is similarity
    assert similarity.inliers.sum() > 50
    fundamental = fit_fundamental(*ends, extent, 6.0, 2000)
    assert fundamental is not None and fundamental.inliers.sum() > 50  # they moved along lines


def test_a_tilted_plane_is_a_homography():
    rng = np.random.default_rng(4)
    query = make_points(rng, 60)
    tilt = np.array([[0.9, 0.1, 20], [0.05, 0.8, 30], [0.0006, 0.0002, 1]])
    mapped = np.column_stack([query[:, :2], np.ones(60)]) @ tilt.T
    from resight.search.homography_checks import local_similarity

    scale, turn = local_similarity(tilt, query[:, :2])
    image = np.column_stack([mapped[:, :2] / mapped[:, 2:], query[:, 2] * scale, query[:, 3] + turn])
    ends = query.astype(np.float32), image.astype(np.float32)
    extent = Extent(ends[1])
    chosen = choose([fit_homography(*ends, OUTLINE, extent, 6.0, 2000), fit_similarity(*ends, extent)])
    assert chosen is not None and chosen.model == "homography"
    assert chosen.inliers.all()


def test_ten_matches_at_one_point_are_one_piece_of_evidence():
    rng = np.random.default_rng(5)
    query = np.repeat(make_points(rng, 3), 10, axis=0).astype(np.float32)
    image = move(query, 1.0, 0, (5, 5)).astype(np.float32)
    assert fit_similarity(query, image, Extent(image)) is None  # three distinct matches are too few


def test_nothing_is_chosen_among_no_fits_and_the_first_of_equals():
    assert choose([None, None]) is None
    rng = np.random.default_rng(6)
    query = make_points(rng, 30).astype(np.float32)
    fit = fit_similarity(query, query, Extent(query))
    other = fit_similarity(query, query, Extent(query))
    assert choose([fit, other]) is fit


def forget_shapes(points: Points) -> Points:
    """Key points of a detector that estimates neither size nor angle."""
    return np.column_stack([points[:, :2], np.full((len(points), 2), np.nan)]).astype(np.float32)


def test_without_sizes_and_angles_pairs_of_matches_give_the_similarity():
    rng = np.random.default_rng(7)
    query = make_points(rng, 25)
    ends = [forget_shapes(points) for points in add_wrong(rng, query, move(query, 0.5, 30, (200, 50)), 50)]
    fit = fit_similarity(ends[0], ends[1], Extent(ends[1]))
    assert fit is not None and fit.significance > 3
    assert fit.inliers.sum() == pytest.approx(25, abs=2)
    assert np.degrees(np.arctan2(fit.transform[1, 0], fit.transform[0, 0])) == pytest.approx(30, abs=2)


def test_without_sizes_and_angles_random_matches_are_not_significant_either():
    rng = np.random.default_rng(8)
    none = np.zeros((0, 4))
    for _ in range(20):
        ends = [forget_shapes(points) for points in add_wrong(rng, none, none, 60)]
        fit = fit_similarity(ends[0], ends[1], Extent(ends[1]))
        assert fit is None or fit.significance < 1.5


def test_sizes_and_angles_that_agree_make_a_model_more_significant():
    rng = np.random.default_rng(9)
    query = make_points(rng, 30)
    shaped = query.astype(np.float32), move(query, 0.8, 10, (40, 50)).astype(np.float32)
    plain = [forget_shapes(points) for points in shaped]
    for fit in (
        lambda one, two: fit_similarity(one, two, Extent(two)),
        lambda one, two: fit_homography(one, two, OUTLINE, Extent(two), 6.0, 2000),
        lambda one, two: fit_fundamental(one, two, Extent(two), 6.0, 2000),
    ):
        known, unknown = fit(*shaped), fit(*plain)
        assert known is not None and unknown is not None
        assert unknown.inliers.sum() == known.inliers.sum() == 30
        assert known.significance > unknown.significance + 10  # a factor of 0.1 or 0.18 for each of 30 matches


def test_matches_on_one_spot_of_the_query_give_no_pairs():
    spot = np.column_stack([np.full((6, 2), 50) + 4 * np.eye(6)[:, :2], np.full((6, 2), np.nan)]).astype(np.float32)
    spread = forget_shapes(make_points(np.random.default_rng(10), 6))
    assert fit_similarity(np.vstack([spot[:1]] * 6), spread, Extent(spread)) is None

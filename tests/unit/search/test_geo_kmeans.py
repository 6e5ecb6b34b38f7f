import numpy as np
import pytest

from resight.geodesy import Positions, to_degrees, to_vectors
from resight.search.geo_kmeans import cluster_positions


def cluster(lats: list[float], lons: list[float], k: int, seed: int = 0) -> list[int]:
    places = Positions(
        tuple(map(str, range(len(lats)))), np.array(lats, float), np.array(lons, float), np.full(len(lats), np.nan)
    )
    return cluster_positions(places, k, np.random.default_rng(seed)).tolist()


def share_clusters(numbers: list[int]) -> set[frozenset[int]]:
    return {frozenset(row for row, other in enumerate(numbers) if other == number) for number in set(numbers)}


@pytest.mark.parametrize("seed", range(5))
def test_places_a_few_metres_apart_are_told_from_those_far_away(seed):
    # Each pair is 11 m apart (0.0001 degrees of latitude), the pairs lie 1.1 km from each other and in Tokyo.
    lats = [52.5, 52.5001, 52.51, 52.5101, 35.6, 35.6001]
    lons = [13.0, 13.0, 13.0, 13.0, 139.7, 139.7]
    numbers = cluster(lats, lons, 3, seed)
    assert share_clusters(numbers) == {frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5})}


def test_a_cluster_may_lie_on_the_antimeridian_and_on_a_pole():
    lats = [0.0, 0.0, 89.9, 89.9, 89.9]
    lons = [179.9, -179.9, 0.0, 120.0, -120.0]
    assert share_clusters(cluster(lats, lons, 2)) == {frozenset({0, 1}), frozenset({2, 3, 4})}


def test_more_clusters_than_places_are_one_a_place():
    assert share_clusters(cluster([1.0, 1.0, 2.0], [0.0, 0.0, 0.0], 50)) == {frozenset({0, 1}), frozenset({2})}


def test_equal_positions_are_one_cluster():
    assert cluster([48.0] * 4, [2.0] * 4, 3) == [0, 0, 0, 0]


def test_no_positions_have_no_clusters():
    assert cluster([], [], 3) == []


def test_numbers_have_no_gaps_and_a_seed_repeats_them():
    rng = np.random.default_rng(1)
    lats, lons = rng.uniform(-90, 90, 500).tolist(), rng.uniform(-180, 180, 500).tolist()
    numbers = cluster(lats, lons, 20)
    assert sorted(set(numbers)) == list(range(20))
    assert numbers == cluster(lats, lons, 20)


def test_every_place_is_with_the_centroid_that_is_nearest_to_it():
    rng = np.random.default_rng(2)
    lats, lons = rng.uniform(-90, 90, 300), rng.uniform(-180, 180, 300)
    numbers = np.array(cluster(lats.tolist(), lons.tolist(), 7))
    vectors = to_vectors(lats, lons)
    means = np.stack([vectors[numbers == number].mean(axis=0) for number in range(7)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    assert (np.argmax(vectors @ means.T, axis=1) == numbers).mean() > 0.97  # Lloyd's rounds may end just before rest


def test_vectors_and_degrees_are_each_others_inverse():
    lats, lons = np.array([0.0, 52.5, -90.0]), np.array([-180.0, 13.25, 0.0])
    back = to_degrees(to_vectors(lats, lons))
    np.testing.assert_allclose(back[0], lats, atol=1e-9)
    np.testing.assert_allclose(np.abs(back[1]), np.abs(lons), atol=1e-9)


def test_many_clusters_are_found_in_two_steps_and_stay_together():
    # 1,000 streets of 4 photos, 10 m apart; the streets are a degree apart or more.
    rng = np.random.default_rng(3)
    corners = rng.choice(90 * 180, 1000, replace=False)
    lats = np.repeat(corners // 180 - 45.0, 4) + np.tile(np.arange(4) * 1e-4, 1000)
    lons = np.repeat((corners % 180) * 2.0 - 180.0, 4)
    numbers = cluster(lats.tolist(), lons.tolist(), 1000)
    assert sorted(set(numbers)) == list(range(max(numbers) + 1))
    assert 900 <= max(numbers) + 1 <= 1000
    whole = np.array(numbers).reshape(1000, 4)
    assert (whole == whole[:, :1]).all(axis=1).mean() > 0.6

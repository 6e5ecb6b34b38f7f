"""Matching of descriptors: mutual nearest neighbours that pass the ratio test."""

import numpy as np
import pytest

from resight.search.matchers import LocalFeatures
from resight.search.matchers.ratio import Ratio


def make_local(vectors: np.ndarray) -> LocalFeatures:
    return LocalFeatures("a", vectors, np.zeros((len(vectors), 4), np.float32))


def match(query: np.ndarray, image: np.ndarray, ratio: float = 0.9, mutual: bool = True) -> np.ndarray:
    return Ratio(ratio, mutual).match(make_local(query), make_local(image))


def unit(rows: object) -> np.ndarray:
    vectors = np.array(rows, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def match_by_distances(query: np.ndarray, image: np.ndarray, ratio: float, mutual: bool) -> list[list[int]]:
    """Every distance, one pair at a time."""
    found = []
    for row, vector in enumerate(query.astype(np.float64)):
        distances = np.linalg.norm(image - vector, axis=1)
        nearest, second = np.argsort(distances)[:2]
        back = np.linalg.norm(query - image[nearest], axis=1).argmin()
        if distances[nearest] <= ratio * distances[second] and (back == row or not mutual):
            found.append((distances[nearest], [row, int(nearest)]))
    return [pair for _, pair in sorted(found)]


def test_nearest_neighbours_that_choose_each_other_are_a_pair():
    query = unit([[1, 0, 0], [0, 1, 0.1]])
    image = unit([[0, 1, 0], [0, 0, 1], [1, 0.05, 0]])
    assert match(query, image).tolist() == [[0, 2], [1, 0]]


def test_pairs_come_best_first():
    query = unit([[1, 0.3, 0], [0, 0.1, 1]])
    image = unit([[1, 0, 0], [0, 0, 1]])
    assert match(query, image).tolist() == [[1, 1], [0, 0]]


def test_of_two_that_choose_the_same_only_the_nearer_is_kept():
    query = unit([[1, 0.2, 0], [1, 0.1, 0]])
    image = unit([[1, 0, 0], [0, 0, 1]])
    assert match(query, image).tolist() == [[1, 0]]
    assert match(query, image, mutual=False).tolist() == [[1, 0], [0, 0]]


def test_a_neighbour_that_is_hardly_nearer_than_the_second_is_dropped():
    # Squared distances of 45° and 60°: 2 - 2·0.7071 = 0.5858 and 2 - 2·0.5 = 1, so that the ratio is 0.765.
    query = unit([[1, 0], [-1, 0]])
    image = unit([[np.cos(np.pi / 4), np.sin(np.pi / 4)], [np.cos(np.pi / 3), -np.sin(np.pi / 3)]])
    assert [0, 0] in match(query, image, ratio=0.77).tolist()
    assert [0, 0] not in match(query, image, ratio=0.76).tolist()


@pytest.mark.parametrize("mutual", [True, False])
@pytest.mark.parametrize("ratio", [0.8, 0.95, 1.0])
@pytest.mark.parametrize(("n", "m"), [(40, 60), (60, 40), (2, 2), (2, 50)])
def test_it_equals_the_comparison_of_all_distances(n: int, m: int, ratio: float, mutual: bool):
    rng = np.random.default_rng(n * m)
    query = unit(rng.normal(size=(n, 6)))
    copies = query[: m // 2] + rng.normal(scale=0.1, size=query[: m // 2].shape)
    image = unit(np.concatenate([copies, rng.normal(size=(m, 6))])[:m])
    assert match(query, image, ratio, mutual).tolist() == match_by_distances(query, image, ratio, mutual)


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (0, 0), (1, 5), (5, 1)])
def test_without_a_second_neighbour_nothing_can_be_told_apart(n: int, m: int):
    pairs = match(np.ones((n, 3), np.float32), np.ones((m, 3), np.float32))
    assert pairs.shape == (0, 2)
    assert pairs.dtype == np.int64


def test_zero_rows_match_nothing():
    assert len(match(np.zeros((3, 4), np.float32), unit(np.eye(4)))) == 0


def test_the_rows_that_were_given_stay_as_they_were():
    query, image = unit(np.eye(3)), unit(np.eye(3))
    match(query, image)
    assert query.tolist() == image.tolist() == np.eye(3).tolist()


def test_two_equal_neighbours_are_ambiguous():
    image = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
    assert match(np.eye(3, dtype=np.float32)[:2], image).tolist() == [[1, 2]]

"""Points on a plane: what is near in the space is near on the map."""

import numpy as np
import pytest

from resight.evaluate.embedding import find_affinities, lay_out, pick_evenly, project, summarise_rows
from resight.types import Descriptors


def test_groups_that_are_apart_stay_apart_and_the_same_vectors_give_the_same_map() -> None:
    generator = np.random.default_rng(0)
    centres = np.repeat(np.eye(3, 8) * 10, 20, axis=0)
    vectors = centres + generator.normal(size=centres.shape) * 0.1
    places, method = lay_out(vectors, np.random.default_rng(0))
    assert method.startswith("t-SNE, perplexity 15,")
    assert places.min() >= -1e-9
    assert places.max() <= 1 + 1e-9
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.eye(60) * 9
    nearest = distances.argmin(axis=1)
    assert (nearest // 20 == np.arange(60) // 20).all()
    again, _ = lay_out(vectors, np.random.default_rng(0))
    assert np.array_equal(places, again)


def test_few_images_are_laid_out_by_their_principal_components() -> None:
    places, method = lay_out(np.array([[0.0, 0, 0], [4, 0, 0], [2, 1, 0]]), np.random.default_rng(0))
    assert method == "the first two principal components"
    assert abs(places[0, 0] - places[1, 0]) == pytest.approx(1)  # the longest axis fills the square
    assert lay_out(np.ones((1, 4)), np.random.default_rng(0))[0].shape == (1, 2)
    assert project(np.array([[1.0], [2.0]]), 5).shape == (2, 2)


def test_every_row_of_the_neighbours_has_the_chosen_perplexity() -> None:
    vectors = np.random.default_rng(1).normal(size=(40, 5))
    joint = find_affinities(vectors, 8.0)
    assert joint.sum() == pytest.approx(1, abs=1e-6)
    assert np.array_equal(joint, joint.T)


def test_an_image_is_the_mean_of_its_rows_or_its_counts_of_words() -> None:
    owners = np.array([0, 0, 1], np.int32)
    rows = Descriptors(("a", "b"), np.array([[2.0, 0], [0, 3.0], [0, 5.0]], np.float32), owners)
    half = np.sqrt(0.5)
    assert summarise_rows(rows) == pytest.approx(np.array([[half, half], [0, 1]]))
    words = Descriptors(("a", "b"), np.zeros((3, 2), np.uint8), owners, words=np.array([7, 9, 7], np.int32))
    counts = summarise_rows(words)
    assert counts[0, [7, 9]] == pytest.approx([half, half])
    assert counts[1, 7] == 1


def test_a_part_is_taken_evenly() -> None:
    assert pick_evenly(range(10), 5) == [0, 2, 4, 6, 8]
    assert pick_evenly([1, 2], 5) == [1, 2]

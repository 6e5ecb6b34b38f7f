import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.builders import keypoint_features

from resight.encode import descriptors
from resight.encode.descriptors.pooled import Config, pool
from resight.errors import RecipeError
from resight.types import Features

PATCHES = np.array([[[1, 0], [3, -4], [2, 1]]], np.float32)
CLS = np.array([[2, 7]], np.float32)


def make_features(cls: np.ndarray | None = CLS) -> Features:
    return Features(("a",), PATCHES, np.array([[30, 10]], np.int32), grid=(1, 3), cls=cls)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"pooling": "cls"}, [2, 7]),
        ({"pooling": "mean"}, [2, -1]),
        ({"pooling": "mean_all"}, [2, 1]),
        ({"pooling": "max"}, [3, 1]),
        ({"pooling": "max", "include_cls": True}, [3, 7]),
        ({"pooling": "gem"}, [12 ** (1 / 3), (1 / 3) ** (1 / 3)]),  # (1 + 27 + 8) / 3; -4 counts as 0.000001
        ({"pooling": "gem", "p": 1.0, "negative": "signed"}, [2, -1]),
        ({"pooling": "gem", "negative": "signed"}, [12 ** (1 / 3), -(21 ** (1 / 3))]),  # (-64 + 1) / 3
        ({"pooling": "gem", "include_cls": True}, [11 ** (1 / 3), 86 ** (1 / 3)]),  # (36 + 8) / 4, (1 + 343) / 4
    ],
)
def test_a_pooling_gives_the_number_of_its_formula(settings: dict[str, object], expected: list[float]):
    np.testing.assert_allclose(pool(PATCHES, CLS, Config(**settings)), [expected], rtol=1e-5)


def test_the_row_of_an_image_has_unit_length():
    rows = descriptors.build("pooled").describe(make_features(), "database")
    np.testing.assert_allclose(rows.vectors, [[2 / 5**0.5, -1 / 5**0.5]], rtol=1e-6)
    assert rows.owners.tolist() == [0] and rows.vectors.dtype == np.float32


def test_an_image_of_zeros_stays_zero():
    features = Features(("a",), np.zeros((1, 2, 2), np.float32), np.array([[9, 9]], np.int32), grid=(1, 2))
    assert descriptors.build("pooled").describe(features, "query").vectors.tolist() == [[0, 0]]


def test_gem_of_large_activations_does_not_overflow():
    patches = np.full((1, 2, 1), 3e30, np.float32)
    np.testing.assert_allclose(pool(patches, None, Config("gem", p=4.0)), [[3e30]], rtol=1e-5)


@given(arrays(np.float32, (1, 5, 3), elements=st.floats(0.125, 100, width=32)))
def test_gem_lies_between_the_mean_and_the_maximum(patches: np.ndarray):
    mean, gem, top = (pool(patches, None, Config(kind)) for kind in ("mean", "gem", "max"))
    assert (gem >= mean * (1 - 1e-4)).all() and (gem <= top * (1 + 1e-4)).all()


@pytest.mark.parametrize(
    "settings", [{"pooling": "cls"}, {"pooling": "mean_all"}, {"pooling": "gem", "include_cls": True}]
)
def test_a_pooling_with_cls_is_refused_without_one_and_names_the_others(settings: dict[str, object]):
    with pytest.raises(RecipeError, match="mean, max or gem"):
        descriptors.build("pooled", **settings).describe(make_features(cls=None), "database")


@pytest.mark.parametrize("settings", [{"p": 0.0}, {"include_cls": True}, {"pooling": "median"}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object]):
    with pytest.raises(RecipeError):
        descriptors.build("pooled", **settings)


def test_key_points_are_refused():
    with pytest.raises(RecipeError, match="grid of patches"):
        descriptors.build("pooled").describe(keypoint_features([[1, 0]]), "database")

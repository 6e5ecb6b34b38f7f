import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import keypoint_features

from resight.encode import descriptors
from resight.encode.descriptors.tokens import box_patches, space_evenly
from resight.errors import RecipeError
from resight.types import Descriptors, Features

PATCHES = [[3, 4], [0, 1], [-2, 0], [1, 1]]  # lengths 5, 1, 2, 1.41; cosines with (1, 0) 0.6, 0, -1, 0.71


def make_features(id: str = "a", **parts: object) -> Features:
    known = {"cls": np.array([[1, 0]], np.float32), "attention": np.array([[0.1, 0.4, 0.3, 0.2]], np.float32)}
    return Features(
        (id,), np.array([PATCHES], np.float32), np.array([[80, 40]], np.int32), grid=(2, 2), **known | parts
    )


def make_plain(count: int, id: str = "a") -> Features:
    """A row of patches whose only entry is their number plus one."""
    return Features(
        (id,),
        np.arange(1, count + 1, dtype=np.float32).reshape(1, count, 1),
        np.array([[10, 10]], np.int32),
        grid=(1, count),
    )


def describe(features: Features, **settings: object) -> Descriptors:
    return descriptors.build("tokens", normalise=False, **settings).describe(features, "database")


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("attention", [1, 2]),
        ("norm_attention", [2, 0]),  # products 0.5, 0.4, 0.6, 0.28
        ("norm", [0, 2]),
        ("cls_similarity", [3, 0]),
        ("cls_distance", [2, 1]),
        ("grid", [2, 3]),
        ("all", [0, 1, 2, 3]),
    ],
)
def test_a_selection_keeps_the_patches_that_it_names(selection: str, expected: list[int]):
    rows = describe(make_features(), selection=selection, k=2)
    assert rows.vectors.tolist() == [PATCHES[row] for row in expected]


def test_the_default_is_all_tokens_at_unit_length():
    rows = descriptors.build("tokens").describe(make_features(), "query")
    np.testing.assert_allclose(rows.vectors, [[0.6, 0.8], [0, 1], [-1, 0], [0.5**0.5, 0.5**0.5]], rtol=1e-6)
    assert rows.owners.tolist() == [0, 0, 0, 0]


def test_a_grid_selection_is_spread_over_the_image():
    assert space_evenly(4, 4, 4).tolist() == [5, 7, 13, 15]
    assert space_evenly(14, 14, 1).tolist() == [7 * 14 + 7]
    assert space_evenly(1, 8, 4).tolist() == [1, 3, 5, 7]
    assert space_evenly(3, 3, 5).tolist() == [0, 2, 6, 7, 8]


@given(st.integers(1, 20), st.integers(1, 20), st.data())
def test_a_grid_selection_has_exactly_as_many_different_cells_as_asked_for(
    rows: int, columns: int, data: st.DataObject
):
    count = data.draw(st.integers(1, rows * columns))
    cells = space_evenly(rows, columns, count).tolist()
    assert len(cells) == len(set(cells)) == count
    assert min(cells) >= 0 and max(cells) < rows * columns


def test_a_random_selection_depends_on_the_id_and_the_seed_alone():
    kept = [
        describe(make_plain(50, id), selection="random", k=5, seed=seed).vectors.ravel().tolist()
        for id, seed in (("a", 0), ("a", 0), ("b", 0), ("a", 1))
    ]
    assert kept[0] == kept[1]
    assert kept[0] != kept[2] and kept[0] != kept[3]
    assert len(set(kept[0])) == 5


def test_a_random_selection_reaches_all_patches():
    seen = {
        v for n in range(60) for v in describe(make_plain(9, str(n)), selection="random", k=2).vectors.ravel().tolist()
    }
    assert len(seen) == 9


def test_more_tokens_than_there_are_gives_all_of_them():
    for selection in ("attention", "norm", "random", "grid", "cls_distance"):
        assert len(describe(make_features(), selection=selection, k=99)) == 4


def test_fewer_tokens_are_the_first_of_more():
    many, few = (describe(make_features(), selection="norm_attention", k=k) for k in (3, 1))
    assert few.vectors.tolist() == many.vectors.tolist()[:1]


def test_equal_patches_are_taken_in_their_order():
    features = Features(("a",), np.ones((1, 4, 2), np.float32), np.array([[40, 10]], np.int32), grid=(1, 4))
    assert describe(features, selection="norm", k=2).boxes.tolist() == [[0, 0, 10, 10], [10, 0, 20, 10]]


def test_boxes_tile_the_original():
    boxes = box_patches(
        Features(("a",), np.zeros((1, 16, 1), np.float32), np.array([[80, 40]], np.int32), grid=(4, 4))
    )[0]
    assert boxes[0].tolist() == [0, 0, 20, 10]
    assert boxes[3].tolist() == [60, 0, 80, 10]
    assert boxes[6].tolist() == [40, 10, 60, 20]
    assert boxes[15].tolist() == [60, 30, 80, 40]


def test_boxes_lie_in_the_part_that_the_network_saw():
    covers = np.array([[20, 0, 60, 40]], np.float32)
    boxes = box_patches(make_features(covers=covers))[0]
    assert boxes.tolist() == [[20, 0, 40, 20], [40, 0, 60, 20], [20, 20, 40, 40], [40, 20, 60, 40]]


def test_a_kept_token_keeps_the_box_of_its_patch():
    rows = describe(make_features(), selection="norm", k=2)
    assert rows.boxes.tolist() == [[0, 0, 40, 20], [0, 20, 40, 40]]


@pytest.mark.parametrize("selection", ["attention", "norm_attention"])
def test_without_attention_the_error_names_the_selections_that_work(selection: str):
    with pytest.raises(RecipeError, match="one of cls_similarity, cls_distance, all, norm, random, grid"):
        describe(make_features(attention=None), selection=selection)
    with pytest.raises(RecipeError, match="one of all, norm, random, grid"):
        describe(make_features(attention=None, cls=None), selection=selection)


@pytest.mark.parametrize("selection", ["cls_similarity", "cls_distance"])
def test_without_cls_the_error_names_the_selections_that_work(selection: str):
    with pytest.raises(RecipeError, match="one of all, norm, random, grid"):
        describe(make_features(cls=None), selection=selection)


@pytest.mark.parametrize("settings", [{"k": 0}, {"selection": "best"}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object]):
    with pytest.raises(RecipeError):
        descriptors.build("tokens", **settings)


def test_key_points_are_refused():
    with pytest.raises(RecipeError, match="grid of patches"):
        descriptors.build("tokens").describe(keypoint_features([[1, 0]]), "database")

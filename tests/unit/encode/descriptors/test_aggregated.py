"""The toy: seven directions in the plane, in degrees. Seed 0 is where attention is highest.

From 0°: the farthest is 170° (token 6), then of 10, 20, 90, 100, 160 the one whose nearest seed is least like it is
90° (token 3; its cosines with the seeds are 0 and 0.17; 100° has 0.34 with 170°).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import keypoint_features

from resight.encode import descriptors
from resight.encode.descriptors.aggregated import Members, aggregate, enclose
from resight.errors import RecipeError
from resight.types import Features

DEGREES = (0, 10, 20, 90, 100, 160, 170)
ATTENTION = np.array([0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], np.float32)


def point(*degrees: float) -> np.ndarray:
    """Unit vectors [n, 2] float64."""
    angles = np.radians(np.array(degrees, np.float64))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


TOKENS = point(*DEGREES).astype(np.float32)


def test_farthest_point_sampling_starts_where_cls_looks_and_then_goes_as_far_away_as_it_can():
    _, members = aggregate(TOKENS, ATTENTION, k=3)
    assert members.seeds.tolist() == [0, 6, 3]


def test_without_attention_it_starts_at_the_token_nearest_the_mean():
    # The mean of the seven has x = 0.040, y = 0.503, which is 85 degrees.
    _, members = aggregate(TOKENS, None, k=1)
    assert members.seeds.tolist() == [3]


def test_attention_seeds_are_the_most_looked_at_in_that_order():
    _, members = aggregate(TOKENS, ATTENTION, k=3, seeds="attention")
    assert members.seeds.tolist() == [0, 6, 5]


def test_hard_assignment_gives_every_other_token_to_its_nearest_seed():
    _, members = aggregate(TOKENS, ATTENTION, k=3)
    assert [rows.tolist() for rows in members] == [[1, 2], [5], [4]]
    assert [weights.tolist() for weights in members.weights] == [[1, 1], [1], [1]]


def test_seed_plus_mean_is_the_sum_of_the_seed_and_its_members_mean():
    vectors, _ = aggregate(TOKENS, ATTENTION, k=3)
    np.testing.assert_allclose(vectors[0], unit(point(0)[0] + point(10, 20).mean(axis=0)), atol=1e-6)
    np.testing.assert_allclose(vectors[1:], point(165, 95), atol=1e-6)


def test_mean_weighs_the_seed_like_a_member():
    vectors, _ = aggregate(TOKENS, ATTENTION, k=3, merge="mean")
    np.testing.assert_allclose(vectors, point(10, 165, 95), atol=1e-6)


def test_soft_assignment_shares_a_token_by_the_softmax_of_its_cosines():
    vectors, members = aggregate(TOKENS, ATTENTION, k=3, assignment="soft_top2", temperature=0.5)
    # Token 4 (100°): cosine 0.985 with 90° and 0.342 with 170°; 0° is its third and gets nothing.
    shares = np.exp(np.cos(np.radians([70, 10])) / 0.5)
    np.testing.assert_allclose(members.shares[:, 4], [0, *(shares / shares.sum())], atol=1e-5)
    first = members.shares[0].astype(np.float64)
    mean = (first[:, None] * point(*DEGREES)).sum(axis=0) / first.sum()
    np.testing.assert_allclose(vectors[0], unit(point(0)[0] + mean), atol=1e-5)


def test_dense_assignment_shares_every_token_among_all_seeds():
    _, members = aggregate(TOKENS, ATTENTION, k=3, assignment="group_dense", temperature=0.5)
    shares = np.exp(np.cos(np.radians([100, 70, 10])) / 0.5)
    np.testing.assert_allclose(members.shares[:, 4], shares / shares.sum(), atol=1e-5)
    assert [rows.tolist() for rows in members] == [[1, 2, 4, 5]] * 3


def test_four_shares_among_three_seeds_are_three():
    four, _ = aggregate(TOKENS, ATTENTION, k=3, assignment="soft_top4")
    dense, _ = aggregate(TOKENS, ATTENTION, k=3, assignment="group_dense")
    np.testing.assert_allclose(four, dense, atol=1e-6)


def test_a_low_temperature_makes_soft_assignment_hard():
    soft, _ = aggregate(TOKENS, ATTENTION, k=3, assignment="group_dense", temperature=1e-3)
    hard, _ = aggregate(TOKENS, ATTENTION, k=3)
    np.testing.assert_allclose(soft, hard, atol=1e-5)


@pytest.mark.parametrize("merge", ["seed_plus_mean", "mean"])
def test_a_seed_without_members_stays_itself(merge: str):
    vectors, members = aggregate(point(0, 5, 90).astype(np.float32), np.array([3, 1, 2]), k=2, merge=merge)
    assert [rows.tolist() for rows in members] == [[1], []]
    np.testing.assert_allclose(vectors[1], [0, 1], atol=1e-6)


def test_more_tokens_than_there_are_gives_each_by_itself():
    vectors, members = aggregate(2 * TOKENS, ATTENTION, k=99)
    assert sorted(members.seeds.tolist()) == list(range(7))
    assert all(len(rows) == 0 for rows in members)
    np.testing.assert_allclose(vectors, TOKENS[members.seeds], atol=1e-6)


def test_the_length_of_a_token_does_not_matter():
    lengths = np.linspace(0.1, 50, 7, dtype=np.float32)[:, None]
    np.testing.assert_allclose(
        aggregate(TOKENS * lengths, ATTENTION, k=3)[0], aggregate(TOKENS, ATTENTION, k=3)[0], atol=1e-5
    )


def test_tokens_that_are_all_alike_can_be_aggregated():
    vectors, members = aggregate(np.ones((6, 4), np.float32), None, k=3)
    assert members.seeds.tolist() == [0, 1, 2]
    np.testing.assert_allclose(vectors, 0.5, atol=1e-6)


@given(
    st.integers(1, 40),
    st.integers(1, 50),
    st.sampled_from(["hard_top1", "soft_top2", "soft_top4", "group_dense"]),
    st.sampled_from(["seed_plus_mean", "mean"]),
    st.sampled_from(["fps", "attention"]),
    st.integers(0, 1000),
)
def test_whatever_the_settings_every_token_is_seed_or_fully_shared_out(
    count: int, k: int, assignment: str, merge: str, seeds: str, number: int
):
    rng = np.random.default_rng(number)
    tokens, attention = rng.normal(size=(count, 6)).astype(np.float32), rng.random(count).astype(np.float32)
    vectors, members = aggregate(tokens, attention, k, seeds, assignment, merge)
    assert vectors.shape == (min(k, count), 6) and vectors.dtype == np.float32
    assert len(set(members.seeds.tolist())) == len(members) == min(k, count)
    shared = members.shares.sum(axis=0)
    assert np.all(shared[members.seeds] == 0)
    np.testing.assert_allclose(np.delete(shared, members.seeds), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    again, _ = aggregate(tokens, attention, k, seeds, assignment, merge)
    assert np.array_equal(vectors, again)


def test_a_box_holds_the_seeds_patch_and_those_of_its_members_and_the_seeds_own_is_kept_too():
    # A 4 × 4 grid over 80 × 40 pixels; the seeds are the corners 0 and 15, patch 5 goes to the first.
    directions = np.zeros((16, 3), np.float32)
    directions[:, 2] = 1
    directions[[0, 5]] = [1, 0, 0]
    directions[15] = [0, 1, 0]
    features = Features(
        ("a",),
        directions[None],
        np.array([[80, 40]], np.int32),
        grid=(4, 4),
        attention=np.array([[3, *[0] * 13, 1, 2]], np.float32),
    )
    rows = descriptors.build("aggregated", k=3, seeds="attention").describe(features, "database")
    assert rows.boxes.tolist() == [[0, 0, 40, 20], [60, 30, 80, 40], [0, 0, 80, 40]]
    assert rows.seeds.tolist() == [[0, 0, 20, 10], [60, 30, 80, 40], [40, 30, 60, 40]]
    assert rows.owners.tolist() == [0, 0, 0]


def test_a_shared_patch_counts_for_the_box_of_the_seed_with_the_largest_share():
    places = np.array([[0, 0, 1, 1], [1, 0, 2, 1], [2, 0, 3, 1]], np.float32)
    members = Members(np.array([0, 2]), np.array([[0, 0.4, 0], [0, 0.6, 0]], np.float32))
    assert enclose(members, places).tolist() == [[0, 0, 1, 1], [1, 0, 3, 1]]


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        # Three merged tokens, at 0 + mean(10, 20) → about 7.5, 165 and 95 degrees; see above.
        ("mean", unit(unit(point(0)[0] + point(10, 20).mean(axis=0)) + point(165)[0] + point(95)[0])),
        # The largest x is that of the first, the largest y that of the token at 95 degrees.
        ("max", unit(np.array([unit(point(0)[0] + point(10, 20).mean(axis=0))[0], point(95)[0, 1]]))),
    ],
)
def test_pooled_tokens_are_one_vector_of_unit_length_without_a_box(pool: str, expected: np.ndarray):
    features = Features(("a",), TOKENS[None], np.array([[70, 10]], np.int32), (1, 7), attention=ATTENTION[None])
    found = descriptors.build("aggregated", k=3, pool=pool).describe(features, "query")
    assert found.owners.tolist() == [0]
    np.testing.assert_allclose(found.vectors, [expected], atol=1e-6)
    assert found.boxes is None and found.seeds is None


def test_pooling_changes_the_fingerprint_and_its_absence_does_not():
    plain, pooled = (descriptors.build("aggregated", pool=pool).fingerprint for pool in ("none", "max"))
    assert "pool" not in plain  # collections of earlier releases stay searchable
    assert plain != pooled


def test_a_blank_image_has_no_pooled_vector_either():
    patches = np.stack([np.ones((4, 2), np.float32), TOKENS[[0, 1, 3, 6]]])
    features = Features(("blank", "b"), patches, np.full((2, 2), 20, np.int32), (2, 2))
    found = descriptors.build("aggregated", k=2, pool="mean", blank=0.99).describe(features, "database")
    assert found.owners.tolist() == [1]


def test_attention_seeds_without_attention_are_refused_with_what_works():
    with pytest.raises(RecipeError, match="one of fps"):
        aggregate(TOKENS, None, seeds="attention")


@pytest.mark.parametrize(
    "settings",
    [{"k": 0}, {"temperature": 0.0}, {"seeds": "best"}, {"assignment": "soft_top3"}, {"merge": "sum"}],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object]):
    with pytest.raises(RecipeError):
        descriptors.build("aggregated", **settings)
    with pytest.raises(RecipeError):
        aggregate(TOKENS, ATTENTION, **settings)


def test_key_points_are_refused():
    with pytest.raises(RecipeError, match="grid of patches"):
        descriptors.build("aggregated").describe(keypoint_features([[1, 0]]), "database")


def test_an_image_whose_tokens_are_all_alike_gets_none():
    # Mean cosines: 1 for four equal tokens, 1/2 for two and two at right angles.
    tokens = np.array([[[1, 0]] * 4, [[1, 0]] * 2 + [[0, 1]] * 2], np.float32)
    features = Features(("blank", "scene"), tokens, np.array([[20, 20]] * 2, np.int32), grid=(2, 2))
    rows = descriptors.build("aggregated", k=2, blank=0.6).describe(features, "database")
    assert rows.ids == ("blank", "scene")
    assert rows.owners.tolist() == [1, 1]
    assert rows.vectors.shape == rows.boxes[:, :2].shape == rows.seeds[:, :2].shape == (2, 2)
    kept = descriptors.build("aggregated", k=2).describe(features, "database")
    assert kept.owners.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("blank", [1.1, -2.0, float("nan")])
def test_a_limit_that_is_no_cosine_is_refused(blank: float):
    with pytest.raises(RecipeError, match="blank"):
        descriptors.build("aggregated", blank=blank)

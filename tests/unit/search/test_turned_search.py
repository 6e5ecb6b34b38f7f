"""Rankings of several rotations joined: each image has its best score and the rotation that gave it."""

from dataclasses import replace

import numpy as np
import pytest

from resight.search.turned_search import is_convincing, merge
from resight.types import Match, Ranking


def rank(scores: dict[str, float]) -> Ranking:
    return Ranking(
        "q",
        tuple(scores),
        np.array(list(scores.values()), np.float32),
        signals={name: {"layout": s} for name, s in scores.items()},
    )


def test_each_image_keeps_its_best_rotation() -> None:
    upright = replace(rank({"a": 0.5, "b": 0.4, "c": 0.1}), boxes={"a": (0, 0, 1, 1), "b": (0, 0, 2, 2)})
    turned = replace(rank({"b": 0.9, "d": 0.45, "a": 0.5}), boxes={"b": (5, 5, 9, 9)})
    merged = merge([upright, turned], [0.0, 90.0])
    assert merged.ids == ("b", "a", "d")
    np.testing.assert_allclose(merged.scores, [0.9, 0.5, 0.45])
    assert [merged.signals[name]["rotation"] for name in merged.ids] == [90.0, 0.0, 90.0]
    assert merged.signals["b"]["layout"] == pytest.approx(0.9)
    assert merged.boxes == {"b": (5, 5, 9, 9), "a": (0, 0, 1, 1)}


def test_points_matched_by_a_turned_query_are_left_out() -> None:
    match = Match("q", "a", 9, np.eye(3), np.zeros((9, 4), np.float32))
    upright = replace(rank({"a": 0.2, "b": 0.1}), matches={"a": match, "b": replace(match, image_id="b")})
    turned = replace(rank({"a": 0.8}), matches={"a": match})
    assert set(merge([upright, turned], [0.0, 180.0]).matches) == {"b"}


def test_an_answer_convinces_by_its_probability_alone() -> None:
    answer = rank({"a": 5.0})
    assert not is_convincing(answer)
    assert not is_convincing(replace(answer, probabilities={"a": 0.89}))
    assert is_convincing(replace(answer, probabilities={"a": 0.9}))
    assert not is_convincing(rank({}))

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from resight.audit.leaks.overlap import find_ambiguities, share_part
from resight.types import FloatArray, Hit, Match


def spread(count: int, left: float, right: float) -> FloatArray:
    """Points of a match on a diagonal of the query from (left, left) to (right, right)."""
    position = np.linspace(left, right, count, dtype=np.float32)
    return np.stack([position] * 4, axis=1)


def doubt(*found: tuple[str, str | None, int, tuple[float, float]], geometry: bool = True) -> Mapping[str, str]:
    """The doubts about hits with an id, a class, a number of inliers, and where in the query these lie."""
    matches = {
        id: Match("q", id, inliers, np.eye(3), spread(inliers, *span)) for id, _, inliers, span in found if inliers
    }
    hits = [
        Hit(
            id,
            Path(id),
            1.0,
            0.99,
            attributes={} if label is None else {"label": label},
            stages={"inliers": float(inliers)} if geometry else {},
        )
        for id, label, inliers, _ in found
    ]
    return find_ambiguities(hits, matches, "label")


def test_a_weaker_match_of_the_same_part_by_another_class_waits_for_a_person() -> None:
    doubts = doubt(("x", "X", 100, (0, 50)), ("y", "Y", 40, (5, 45)))
    assert doubts == {"y": "x matches the same part better"}


def test_one_that_is_about_as_strong_does_not() -> None:
    assert doubt(("x", "X", 100, (0, 50)), ("y", "Y", 50, (5, 45))) == {}


def test_another_part_is_another_thing() -> None:
    assert doubt(("x", "X", 100, (0, 50)), ("y", "Y", 10, (60, 90))) == {}


def test_images_of_one_class_do_not_compete() -> None:
    assert doubt(("x", "X", 100, (0, 50)), ("y", "X", 10, (5, 45))) == {}


def test_images_without_a_class_do() -> None:
    assert list(doubt(("x", None, 100, (0, 50)), ("y", None, 10, (5, 45)))) == ["y"]


def test_what_geometry_does_not_confirm_waits_for_a_person() -> None:
    assert doubt(("x", "X", 0, (0, 0))) == {"x": "no believable geometry"}


def test_without_geometry_in_a_recipe_there_is_nothing_to_doubt_by() -> None:
    assert doubt(("x", "X", 0, (0, 0)), geometry=False) == {}


def test_how_much_of_the_smaller_part_is_shared() -> None:
    large, small = spread(5, 0, 10)[:, :2], spread(5, 5, 11)[:, :2]
    assert share_part(large, small) == pytest.approx(25 / 36)
    assert share_part(small, large) == pytest.approx(25 / 36)
    assert share_part(large, large + 20) == 0

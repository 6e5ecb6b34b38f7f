"""The evidence for a pair, from what two collections hold."""

from pathlib import Path

import numpy as np
import pytest
from support.scenes import HEIGHT, WIDTH, draw_scene, write_jpeg

from resight.audit.review.pair_match import match_stored
from resight.collection import Collection, open_collection
from resight.types import Branch, Choice, Recipe

CORNERS = np.array([[60.0, 50, 1], [420, 60, 1], [400, 300, 1]])


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collection, Collection]:
    """A scene, its mirror image and another scene; and the scene again."""
    root = tmp_path_factory.mktemp("evidence")
    pictures = {"same": draw_scene(1), "mirrored": draw_scene(1)[:, ::-1], "other": draw_scene(2)}
    for folder, names in (("a", pictures), ("b", ("same",))):
        (root / folder).mkdir()
        for name in names:
            write_jpeg(root / folder / f"{name}.jpg", np.ascontiguousarray(pictures[name]))
    made = [open_collection(root / f"{name}.resight", "sift") for name in ("a", "b")]
    for name, collection in zip(("a", "b"), made, strict=True):
        collection.add(root / name)
    return made[0], made[1]


@pytest.mark.parametrize(("name", "mirror"), [("same", False), ("mirrored", True)])
def test_points_of_the_first_are_led_to_those_of_the_second(
    collections: tuple[Collection, Collection], name: str, mirror: bool
) -> None:
    match = match_stored(collections[0], f"{name}.jpg", collections[1], "same.jpg")
    assert match is not None and match.inliers > 50
    expected = np.column_stack([WIDTH - match.points[:, 0] if mirror else match.points[:, 0], match.points[:, 1]])
    assert np.abs(match.points[:, 2:] - expected).max() < 4
    led = CORNERS @ match.transform.T
    truth = np.column_stack([WIDTH - CORNERS[:, 0] if mirror else CORNERS[:, 0], CORNERS[:, 1]])
    assert np.abs(led[:, :2] / led[:, 2:] - truth).max() < 0.02 * HEIGHT


def test_other_pictures_have_no_match(collections: tuple[Collection, Collection]) -> None:
    assert match_stored(collections[0], "other.jpg", collections[1], "same.jpg") is None


def test_collections_without_key_points_have_no_match(
    collections: tuple[Collection, Collection], tmp_path: Path
) -> None:
    recipe = Recipe("plain", (Branch(Choice("sift"), Choice("vlad")),))
    plain = open_collection(tmp_path / "plain.resight", recipe)
    plain.add([record.ref for record in collections[0].records()])
    assert match_stored(plain, "same.jpg", collections[1], "same.jpg") is None

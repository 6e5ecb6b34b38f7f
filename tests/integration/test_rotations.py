"""A turned picture is found by a recipe with rotations, and the answer reports by how much it was turned."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.builders import draw_texture

from resight import recipe as recipes
from resight.collection import Collection, open_collection
from resight.search.request import SearchRequest, StoredImage

TABLE = {
    "name": "turned",
    "rotations": 4,
    "branches": [
        {
            "encoder": {"name": "efficientnet_lite", "variant": "lite0", "block": 8, "size": 64},
            "descriptor": "cells",
            "photometric": "flatten",
        },
        {
            "encoder": {"name": "efficientnet_lite", "variant": "lite0", "block": 8, "size": 64},
            "descriptor": "tokens",
            "photometric": "flatten",
            "transforms": ["centre"],
            "weight": 0,
        },
    ],
    "rerankers": ["layout"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for number in range(6):
        cv2.imwrite(str(folder / f"{number}.png"), draw_texture(rng, 160, 160))
    (folder / "turned").mkdir()
    picture = cv2.imread(str(folder / "3.png"))
    cv2.imwrite(str(folder / "turned" / "query.png"), np.rot90(picture, -1))  # clockwise
    return folder


@pytest.fixture(scope="module")
def collection(folder: Path) -> Collection:
    collection = open_collection(folder / "c.resight", recipes.parse(TABLE))
    collection.add(*sorted(folder.glob("*.png")))
    return collection


def test_the_turn_that_finds_a_picture_is_reported_with_its_box_and_without_maps(
    folder: Path, collection: Collection
) -> None:
    answer = collection.ask(folder / "turned" / "query.png", k=2)
    assert answer.hits[0].id == "3.png"
    assert answer.hits[0].stages["rotation"] == 90.0
    assert answer.hits[0].stages["layout"] > 1.5 * answer.hits[1].stages["layout"]
    x0, y0, x1, y1 = answer.hits[0].box or (0, 0, 0, 0)
    assert 0 <= x0 < x1 <= 160 and 0 <= y0 < y1 <= 160
    evidence = answer.explain(answer.hits[0])
    assert evidence.heat is None and evidence.tokens is None


def test_a_picture_that_is_not_turned_is_found_upright(folder: Path, collection: Collection) -> None:
    answer = collection.ask(folder / "3.png", k=1)
    assert answer.hits[0].stages["rotation"] == 0.0
    assert answer.explain(answer.hits[0]).heat is not None


@pytest.mark.parametrize("rows_only", [False, True])
def test_a_stored_picture_of_another_collection_is_turned_too(
    folder: Path, collection: Collection, tmp_path: Path, rows_only: bool
) -> None:
    other = open_collection(tmp_path / "other.resight", recipes.parse(TABLE))
    other.add(folder / "turned")
    query = other.view().encode_query(SearchRequest(StoredImage("query.png", rows_only)))
    hit = collection.view().ask(SearchRequest(query, 1)).hits[0]
    assert (hit.id, hit.stages["rotation"]) == ("3.png", 90.0)


def test_rotations_are_a_setting_of_the_search_alone(folder: Path, collection: Collection) -> None:
    upright = open_collection(collection.path, replace(collection.recipe, rotations=1))
    assert upright.metadata.spaces == collection.metadata.spaces
    hits = upright.search(folder / "turned" / "query.png", k=6)
    assert all("rotation" not in hit.stages for hit in hits)
    assert collection.search(folder / "turned" / "query.png", k=1)[0].score > hits[0].score

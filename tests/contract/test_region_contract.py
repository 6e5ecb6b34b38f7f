"""What every region source keeps to, on pictures of all kinds. A new module in the folder is tested by being there."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builders import draw_texture, fill_picture, make_picture
from support.region_networks import draw_detector, draw_sam, write_grounding_dino

from resight import plugins
from resight.encode.descriptors import regions
from resight.encode.descriptors.regions import Proposals, RegionSource
from resight.encode.regions import choose_regions
from resight.types import Picture

PACKAGE = "resight.encode.descriptors.regions"


def prepare_settings(name: str, folder: Path) -> dict[str, Any]:
    """What a source cannot do without: files."""
    if name == "file":
        (folder / "boxes.csv").write_text("id,x0,y0,x1,y1\ntexture,10,10,200,200\npoint,-5,-5,90,90\n")
        return {"path": folder / "boxes.csv"}
    if name == "detector":
        return {"model": str(write_grounding_dino(folder)), "untrained": True, "size": 96, "device": "cpu"}
    if name == "onnx_detector":
        return {"model": draw_detector(folder, [[0, 0, 40, 40], [-9, 8, 90, 20]], [0.5, 0.9])}
    if name == "masks":
        encoder, decoder = draw_sam(folder)
        return {"encoder": encoder, "decoder": decoder, "points": 2}
    if name == "cider":
        return {"encoder": {"name": "cider", "backbone": "resnet18", "untrained": True, "size": 96, "device": "cpu"}}
    if name == "saliency":
        return {"size": 112}  # for speed
    return {"sources": ["grid", {"name": "sliding", "level": 1}]} if name == "union" else {}


def draw_pictures() -> dict[str, Picture]:
    rng = np.random.default_rng(0)
    drawn = {
        "texture": draw_texture(rng),
        "panorama": draw_texture(rng, 1000, 50),
        "needle": draw_texture(rng, 3, 2000),
        "lying needle": draw_texture(rng, 2000, 3),
        "tiny": draw_texture(rng, 9, 7),
        "point": np.full((1, 1, 3), 200, np.uint8),
    }
    pictures = {name: make_picture(pixels, name) for name, pixels in drawn.items()}
    pictures["half"] = make_picture(draw_texture(rng, 160, 120), "half", size=(320, 240))
    return {**pictures, "blank": fill_picture(200, 150), "black": fill_picture(60, 60, "black", 0)}


@pytest.fixture(scope="module", params=plugins.names(PACKAGE))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def settings(name: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return prepare_settings(name, tmp_path_factory.mktemp(name))


@pytest.fixture(scope="module")
def source(name: str, settings: dict[str, Any]) -> RegionSource:
    return regions.build(name, **settings)


@pytest.fixture(scope="module")
def answers(source: RegionSource) -> dict[str, Proposals]:
    return {kind: source.propose(picture) for kind, picture in draw_pictures().items()}


def test_boxes_and_scores_fit_together(answers: dict[str, Proposals]):
    for kind, found in answers.items():
        assert found.boxes.dtype == np.float32 and found.scores.dtype == np.float32, kind
        assert found.boxes.shape == (len(found.scores), 4), kind
        assert np.isfinite(found.boxes).all() and np.isfinite(found.scores).all(), kind


def test_there_is_always_a_region_and_all_lie_inside(answers: dict[str, Proposals]):
    for kind, picture in draw_pictures().items():
        boxes = choose_regions(answers[kind], picture.size)
        assert len(boxes) >= 1, kind
        assert (boxes[:, :2] >= 0).all() and (boxes[:, 2:] <= picture.size).all(), kind
        assert (boxes[:, 2:] > boxes[:, :2]).all(), kind


@pytest.mark.parametrize("kind", ["needle", "lying needle", "point"])
def test_what_is_too_thin_to_be_cut_stays_whole(answers: dict[str, Proposals], kind: str):
    size = draw_pictures()[kind].size
    assert choose_regions(answers[kind], size).tolist() == [[0, 0, *size]]


def test_boxes_are_those_of_the_original_when_it_was_decoded_reduced(source: RegionSource):
    pixels = draw_texture(np.random.default_rng(1), 160, 120)
    whole = source.propose(make_picture(pixels, "texture"))
    reduced = source.propose(make_picture(pixels, "texture", size=(320, 240)))
    if "file(" in source.fingerprint:  # whose boxes are in pixels of the original already
        np.testing.assert_allclose(reduced.boxes, whole.boxes)
    else:
        np.testing.assert_allclose(reduced.boxes, 2 * whole.boxes, rtol=1e-3, atol=0.1)


def test_the_same_picture_gives_the_same_boxes_in_several_threads(source: RegionSource):
    picture = draw_pictures()["texture"]
    alone = source.propose(picture)
    with ThreadPoolExecutor(3) as pool:
        for other in pool.map(source.propose, [picture] * 6):
            np.testing.assert_allclose(other.boxes, alone.boxes, atol=1e-2)


def test_the_pixels_are_only_read(source: RegionSource):
    pixels = draw_texture(np.random.default_rng(1))
    pixels.flags.writeable = False
    source.propose(make_picture(pixels, "texture"))


def test_the_fingerprint_names_the_source_and_does_not_change(
    name: str, settings: dict[str, Any], source: RegionSource
):
    first = {"union": "joined"}.get(name, name)  # collections on disk know it by this name
    assert source.fingerprint.startswith(f"{first}(")
    assert regions.build(name, **settings).fingerprint == source.fingerprint
    assert source.finest >= 1

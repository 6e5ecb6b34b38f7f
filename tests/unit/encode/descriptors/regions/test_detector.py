"""Region sources that run a network: tiny ones, drawn in the tests, whose answers can be worked out by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builders import draw_texture, fill_picture, make_picture
from support.region_networks import draw_detector, draw_saliency, draw_sam, write_grounding_dino

from resight.boxes import iou
from resight.encode.descriptors import regions
from resight.errors import MissingWeights, RecipeError
from resight.types import Picture

LITE = {"name": "efficientnet_lite", "block": 16}


def draw_spot(width: int = 400, height: int = 200) -> Picture:
    """A white square of 100 pixels from (240, 40) on black."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[40:140, 240:340] = 255
    return make_picture(pixels)


def overlap(box: Any, other: tuple[float, ...]) -> float:
    return float(iou(np.float32(box), np.float32(other)))


def test_saliency_boxes_what_is_bright_in_a_map_of_ones_own(tmp_path: Path):
    found = regions.build("saliency", model=draw_saliency(tmp_path)).propose(draw_spot())
    assert len(found.boxes) == 1 and overlap(found.boxes[0], (240, 40, 340, 140)) > 0.9


def test_a_saliency_network_of_one_size_is_shown_that_size(tmp_path: Path):
    found = regions.build("saliency", model=draw_saliency(tmp_path, side=100)).propose(draw_spot())
    assert overlap(found.boxes[0], (240, 40, 340, 140)) > 0.9


def test_an_output_that_is_no_map_is_refused(tmp_path: Path):
    with pytest.raises(RecipeError, match=r"\[1, 3, "):
        regions.build("saliency", model=draw_saliency(tmp_path, channels=3)).propose(draw_spot())


def test_the_saliency_of_the_wheel_finds_a_thing_on_plain_ground():
    pixels = np.full((300, 400, 3), 190, np.uint8)
    pixels[80:220, 220:360] = draw_texture(np.random.default_rng(0), 140, 140)
    found = regions.build("saliency").propose(make_picture(pixels, size=(800, 600)))
    assert max(overlap(box, (440, 160, 720, 440)) for box in found.boxes) > 0.6


def test_a_network_s_energy_finds_a_thing_on_plain_ground():
    pixels = np.full((300, 400, 3), 128, np.uint8)
    pixels[80:220, 220:360] = draw_texture(np.random.default_rng(0), 140, 140)
    for kind in ("activation", "standout"):
        found = regions.build("activation", encoder=LITE, map=kind).propose(make_picture(pixels))
        assert max(overlap(box, (220, 80, 360, 220)) for box in found.boxes) > 0.35
        assert len(found.boxes) <= 20


def test_attention_comes_from_encoders_that_have_it():
    found = regions.build("activation", encoder="onnx_vit", map="attention", most=3).propose(draw_spot())
    assert 1 <= len(found.boxes) <= 3
    without = regions.build("activation", encoder=LITE, map="attention")
    with pytest.raises(RecipeError, match="onnx_vit"):
        without.propose(draw_spot())
    with pytest.raises(RecipeError, match="activation"):
        regions.build("activation", encoder="sift").propose(make_picture(draw_texture(np.random.default_rng(0))))


def test_the_fingerprint_of_activation_names_map_and_encoder():
    one = regions.build("activation", encoder=LITE).fingerprint
    assert one != regions.build("activation", encoder={**LITE, "block": 15}).fingerprint
    kinds = {regions.build("activation", encoder=LITE, map=kind).fingerprint for kind in ("activation", "standout")}
    assert len(kinds) == 2 and one in kinds
    with pytest.raises(RecipeError, match="encoder is not a plug-in"):
        regions.build("activation", encoder=3)


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, [[[16, 0, 48, 32]]]),
        ({"units": "shares"}, [[[0.25, 0, 0.75, 0.5]]]),
        ({"form": "centre"}, [[[32, 16, 32, 32]]]),
        ({"units": "shares", "form": "centre"}, [[0.5, 0.25, 0.5, 0.5]]),
    ],
)
def test_a_detector_may_write_its_boxes_in_four_ways(settings: dict[str, str], given: Any, tmp_path: Path):
    scores = [0.9] if np.ndim(given) == 2 else [[0.9]]
    source = regions.build("onnx_detector", model=draw_detector(tmp_path, given, scores), **settings)
    found = source.propose(fill_picture(200, 100))
    np.testing.assert_allclose(found.boxes, [[50, 0, 150, 50]], atol=1e-4)
    np.testing.assert_allclose(found.scores, [0.9])


def test_a_picture_in_the_corner_of_a_detectors_input_keeps_its_proportions(tmp_path: Path):
    path = draw_detector(tmp_path, [[16, 0, 48, 32]], [0.9], side=None)
    source = regions.build("onnx_detector", model=path, fit="corner", size=64)
    np.testing.assert_allclose(source.propose(fill_picture(200, 100)).boxes, [[50, 0, 150, 100]], atol=1e-4)


def test_a_detectors_best_class_counts_and_weak_boxes_are_left_out(tmp_path: Path):
    boxes = [[[0, 0, 32, 32], [32, 32, 64, 64], [0, 32, 32, 64]]]
    path = draw_detector(tmp_path, boxes, [[[0.1, 0.8], [0.2, 0.1], [0.6, 0.5]]])
    found = regions.build("onnx_detector", model=path).propose(fill_picture(64, 64))
    np.testing.assert_allclose(found.scores, [0.8, 0.6])
    assert len(regions.build("onnx_detector", model=path, most=1).propose(fill_picture(64, 64)).boxes) == 1
    assert len(regions.build("onnx_detector", model=path, scores="").propose(fill_picture(64, 64)).boxes) == 3


def test_detectors_that_give_no_boxes_are_refused(tmp_path: Path):
    with pytest.raises(RecipeError, match="has no boxes, scores among its outputs"):
        regions.build("onnx_detector", model=draw_detector(tmp_path, [[0, 0, 1, 1]], names=("dets",)))
    source = regions.build("onnx_detector", model=draw_detector(tmp_path, [[1, 2, 3]], [1]))
    with pytest.raises(RecipeError, match=r"\[1, 3\] and \[1\]"):
        source.propose(fill_picture(9, 9))
    with pytest.raises(RecipeError, match="cannot read"):
        regions.build("onnx_detector", model=tmp_path / "absent.onnx")


def test_masks_under_a_grid_of_points_become_boxes(tmp_path: Path):
    encoder, decoder = draw_sam(tmp_path)
    source = regions.build("masks", encoder=encoder, decoder=decoder, points=2)
    found = source.propose(fill_picture(128, 64))
    expected = [[8, 0, 56, 40], [72, 0, 120, 40], [8, 24, 56, 64], [72, 24, 120, 64]]
    np.testing.assert_allclose(found.boxes, expected, atol=0.6)
    np.testing.assert_allclose(found.scores, [0.9] * 4)


def test_masks_that_fit_badly_or_are_small_are_left_out(tmp_path: Path):
    encoder, decoder = draw_sam(tmp_path, extent=2.0)
    strict = regions.build("masks", encoder=encoder, decoder=decoder, points=2, threshold=0.95)
    assert strict.propose(fill_picture(64, 64)).boxes.shape == (0, 4)
    large = regions.build("masks", encoder=encoder, decoder=decoder, points=2, least=0.5, threshold=0.0)
    assert large.propose(fill_picture(64, 64)).boxes.tolist() == [[0, 0, 64, 64]]
    with pytest.raises(RecipeError, match="has no image_embeddings"):
        regions.build("masks", encoder=encoder, decoder=encoder)


def test_grounding_dino_proposes_boxes_and_is_the_same_from_a_folder(tmp_path: Path):
    folder = write_grounding_dino(tmp_path / "network")
    settings: dict[str, Any] = {"model": str(folder), "size": 96, "prompt": "Object", "device": "cpu", "threshold": 0.0}
    random = regions.build("detector", **settings, untrained=True)
    picture = make_picture(draw_texture(np.random.default_rng(0)), size=(640, 480))
    found = random.propose(picture)
    assert 1 <= len(found.boxes) <= 10 and ((found.scores > 0) & (found.scores < 1)).all()

    from safetensors.torch import save_file

    weights = random._module.state_dict()  # type: ignore[attr-defined]
    save_file({name: tensor.clone() for name, tensor in weights.items()}, folder / "model.safetensors")
    loaded = regions.build("detector", **settings)
    assert loaded.fingerprint == random.fingerprint
    np.testing.assert_allclose(loaded.propose(picture).boxes, found.boxes, atol=1e-2)
    assert regions.build("detector", **{**settings, "prompt": "?"}).fingerprint != random.fingerprint
    assert regions.build("detector", **{**settings, "threshold": 1.0}).propose(picture).boxes.shape == (0, 4)

    save_file({name: tensor.clone() for name, tensor in list(weights.items())[5:]}, folder / "model.safetensors")
    with pytest.raises(RecipeError, match=r"model\.safetensors"):
        regions.build("detector", **settings)


def test_a_detector_that_is_not_here_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from resight.encode.networks import hub

    monkeypatch.setattr(hub, "find_obstacle", lambda: "no network in tests")
    with pytest.raises(MissingWeights, match=r"vocab\.txt"):
        regions.build("detector", model="nobody/nothing")
    with pytest.raises(RecipeError, match=r"holds no config\.json"):
        regions.build("detector", model=str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(RecipeError, match="onnx_detector"):
        regions.build("detector", model=str(tmp_path))
    with pytest.raises(RecipeError, match="empty prompt"):
        regions.build("detector", prompt=" . ")

"""Every family, in the smallest published size at random weights, against the library itself on the same input."""

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support.builders import draw_texture, make_picture

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from resight.encode import backbones  # noqa: E402
from resight.encode.backbones.transformers import Config  # noqa: E402
from resight.encode.networks.architectures import Architecture, Preparation, describe  # noqa: E402
from resight.encode.networks.pretrained import make_module  # noqa: E402
from resight.encode.networks.torch_backbone import TorchBackbone  # noqa: E402
from resight.encode.networks.transformers_network import TransformersNetwork  # noqa: E402
from resight.encode.preprocess import Statistics, choose_input, prepare  # noqa: E402
from resight.errors import RecipeError  # noqa: E402
from resight.types import Features, Picture  # noqa: E402

WIDE = make_picture(draw_texture(np.random.default_rng(0), 300, 180), "wide")
SQUARE = make_picture(draw_texture(np.random.default_rng(1), 200, 200), "square")
ANY_SIZE = {"interpolate_pos_encoding": True}


@dataclass(frozen=True)
class Case:
    model: str
    grid: int  # rows of a square input
    dimensions: int
    before: int  # tokens before the patches
    attention: bool
    extras: dict[str, Any]  # what the library must be told


CASES = [
    Case("facebook/dino-vits16", 14, 384, 1, True, ANY_SIZE),
    Case("facebook/deit-tiny-patch16-224", 14, 192, 1, True, ANY_SIZE),
    Case("facebook/deit-tiny-distilled-patch16-224", 14, 192, 2, True, ANY_SIZE),
    Case("facebook/dinov2-small", 16, 384, 1, True, {}),
    Case("facebook/dinov2-with-registers-small", 16, 384, 5, True, {}),
    Case("facebook/dinov3-vits16-pretrain-lvd1689m", 14, 384, 5, True, {}),
    Case("facebook/dinov3-vits16plus-pretrain-lvd1689m", 14, 384, 5, True, {}),
    Case("facebook/dinov3-convnext-tiny-pretrain-lvd1689m", 7, 768, 1, False, {}),
    Case("openai/clip-vit-base-patch32", 7, 768, 1, True, ANY_SIZE),
    Case("google/siglip-base-patch16-224", 14, 768, 0, False, ANY_SIZE),
    Case("facebook/vit-mae-base", 14, 768, 1, True, ANY_SIZE),
    Case("microsoft/resnet-18", 7, 512, 0, False, {}),
    Case("facebook/convnext-tiny-224", 7, 768, 0, False, {}),
    Case("facebook/convnextv2-tiny-1k-224", 7, 768, 0, False, {}),
]


def shake(module: Any) -> Any:
    """Weights large enough that attention is far from even and no block is the identity."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith(("lambda1", "gamma", "layer_scale_parameter")):
                parameter.fill_(0.5)
            elif parameter.ndim == 2 and parameter.std() < 0.03:
                parameter.mul_(3)
            elif name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return module.eval()


def encode(backbone: TorchBackbone, picture: Picture, scale: float = 1.0) -> Features:
    (features,) = backbone.extract([picture], scale)
    return features


def prepare_planes(architecture: Architecture, picture: Picture, cell: int, fit: Any) -> Any:
    shown = architecture.preparation
    width, height = choose_input(picture, shown.size, cell, fit)
    red, green, blue = (255 * value for value in shown.mean)
    wide_red, wide_green, wide_blue = (255 * value for value in shown.deviation)
    statistics = Statistics((red, green, blue), (wide_red, wide_green, wide_blue))
    return torch.from_numpy(prepare(picture, width, height, fit, statistics, shown.interpolation)[0])


def ask_library(module: Any, case: Case, planes: Any) -> Any:
    extras = dict(case.extras)
    if "mae" in case.model:
        extras["noise"] = torch.linspace(0, 1, (planes.shape[2] // 16) * (planes.shape[3] // 16))[None]
    if case.attention:
        extras["output_attentions"] = True
    with torch.inference_mode():
        return module(pixel_values=planes, **extras)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model)
def test_tokens_cls_attention_and_head_are_the_librarys_own(case: Case):
    architecture = describe(case.model)
    module = shake(make_module(architecture))
    library = copy.deepcopy(module)
    library.set_attn_implementation("eager")
    settings = Config(untrained=True, fit="keep")
    backbone = TorchBackbone(TransformersNetwork(module, architecture, settings), settings, "x")
    for picture in (SQUARE, WIDE):
        found = encode(backbone, picture)
        planes = prepare_planes(architecture, picture, 224 // case.grid, "keep")
        expected = ask_library(library, case, planes)
        tokens = expected.last_hidden_state
        if tokens.ndim == 4:
            tokens = tokens.flatten(2).transpose(1, 2)
        assert found.grid is not None
        assert found.grid == (case.grid, case.grid) if picture is SQUARE else found.grid[0] < found.grid[1]
        assert found.patches.shape == (1, found.grid[0] * found.grid[1], case.dimensions)
        assert np.allclose(found.patches, tokens[:, case.before :], atol=1e-4, rtol=1e-4)
        assert (found.cls is None) == (case.before == 0)
        if found.cls is not None:
            assert np.allclose(found.cls, tokens[:, 0], atol=1e-4, rtol=1e-4)
        head = getattr(expected, "pooler_output", None)
        assert found.head is not None
        assert np.allclose(found.head, tokens[:, 0] if head is None else head.flatten(1), atol=1e-4, rtol=1e-4)
        assert (found.attention is not None) == case.attention
        if found.attention is not None:
            row = expected.attentions[-1][:, :, 0, case.before :].mean(1)
            assert np.allclose(found.attention, row, atol=1e-6, rtol=1e-4)
            assert found.attention.std() > 1e-6 and found.attention.sum() < 1


def test_the_projection_is_clips_vector_shared_with_texts():
    architecture = describe("openai/clip-vit-base-patch32")
    module = shake(make_module(architecture, projection=True))
    library = copy.deepcopy(module)
    settings = Config(untrained=True, projection=True)
    found = encode(TorchBackbone(TransformersNetwork(module, architecture, settings), settings, "x"), SQUARE)
    with torch.inference_mode():
        expected = library(pixel_values=prepare_planes(architecture, SQUARE, 32, "squash"))
    assert found.head is not None and found.head.shape == (1, 512)
    assert np.allclose(found.head, expected.image_embeds, atol=1e-4)
    assert np.allclose(found.patches, expected.last_hidden_state[:, 1:], atol=1e-4)
    assert found.attention is not None


SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 48, "image_size": 64}
STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "embedding_size": 8}
TINY = {
    family: Architecture("tiny", family, values, Preparation(size=64))
    for family, values in {
        "vit": {**SMALL, "patch_size": 16},
        "deit": {**SMALL, "patch_size": 16},
        "vit_mae": {**SMALL, "patch_size": 16},
        "dinov2": {**SMALL, "patch_size": 16},
        "dinov2_with_registers": {**SMALL, "patch_size": 16, "num_register_tokens": 2},
        "dinov3_vit": {**SMALL, "patch_size": 16, "num_register_tokens": 2},
        "clip": {**SMALL, "patch_size": 16},
        "siglip": {**SMALL, "patch_size": 16},
        "dinov3_convnext": STAGES,
        "resnet": {**STAGES, "layer_type": "basic"},
        "convnext": STAGES,
        "convnextv2": STAGES,
    }.items()
}


def build_tiny(family: str, **settings: Any) -> tuple[TorchBackbone, Any]:
    """The backbone and the library's module with the same weights."""
    module = shake(make_module(TINY[family]))
    config = Config(untrained=True, **settings)
    network = TransformersNetwork(copy.deepcopy(module), TINY[family], config)
    return TorchBackbone(network, config, "x"), module


@pytest.mark.parametrize("family", [family for family, tiny in TINY.items() if tiny.config is not STAGES])
def test_a_block_is_its_hidden_state_without_the_final_norm(family: str):
    backbone, library = build_tiny(family, block=1)
    library.set_attn_implementation("eager")
    found = encode(backbone, SQUARE)
    planes = prepare_planes(TINY[family], SQUARE, 16, "squash")
    extras = {"noise": torch.arange(16.0)[None]} if family == "vit_mae" else {}
    with torch.inference_mode():
        expected = library(pixel_values=planes, output_hidden_states=True, **extras)
    states = expected.hidden_states[2]
    if states.ndim == 4:  # a feature map: [1, 16, 8, 8]
        assert found.grid == (8, 8) and found.cls is None
        assert np.allclose(found.patches, states.flatten(2).transpose(1, 2), atol=1e-5)
        return
    assert np.allclose(found.patches, states[:, -16:], atol=1e-5)
    assert found.head is None
    assert (found.attention is None) == (family == "siglip")
    if found.attention is not None:
        assert found.cls is not None and np.allclose(found.cls, states[:, 0], atol=1e-5)
        with torch.inference_mode():
            weights = library(pixel_values=planes, output_attentions=True, **extras).attentions[1]
        assert np.allclose(found.attention, weights[:, :, 0, -16:].mean(1), atol=1e-6)


@pytest.mark.parametrize("family", ["dinov3_convnext", "convnext", "convnextv2", "resnet"])
def test_a_block_of_a_convolutional_network_is_the_map_of_a_stage(family: str):
    backbone, library = build_tiny(family, block=2)
    found = encode(backbone, SQUARE)
    with torch.inference_mode():
        library_maps = library(
            pixel_values=prepare_planes(TINY[family], SQUARE, 32, "squash"), output_hidden_states=True
        ).hidden_states
    (expected,) = [one for one in library_maps if tuple(one.shape[1:]) == (24, 4, 4)]
    assert found.grid == (4, 4) and found.cls is None and found.attention is None
    assert np.allclose(found.patches, expected.flatten(2).transpose(1, 2), atol=1e-5)


@pytest.mark.parametrize("family", TINY)
def test_a_block_that_is_not_there_is_refused_with_the_range(family: str):
    last = 2 if "num_hidden_layers" in TINY[family].config else 3
    for block in (-1, last + 1):
        with pytest.raises(RecipeError, match=f"no block {block}") as caught:
            build_tiny(family, block=block)
        assert caught.value.expected == f"a block from 0 to {last}"


@pytest.mark.parametrize("family", TINY)
def test_without_attention_every_block_stays_fast_and_the_tokens_the_same(family: str):
    slow, _ = build_tiny(family)
    fast, _ = build_tiny(family, attention=False)
    given, bare = encode(slow, SQUARE), encode(fast, SQUARE)
    assert bare.attention is None
    assert np.allclose(given.patches, bare.patches, atol=1e-5)


@pytest.mark.parametrize("family", TINY)
def test_another_scale_is_another_grid(family: str):
    backbone, _ = build_tiny(family, fit="keep")
    usual, double = encode(backbone, WIDE), encode(backbone, WIDE, scale=2.0)
    assert usual.grid is not None and double.grid is not None
    assert double.grid[0] > usual.grid[0] and double.grid[1] > usual.grid[1]
    assert double.attention is None or double.attention.shape == double.patches.shape[:2]


@pytest.mark.parametrize("family", TINY)
def test_half_precision_stays_near(family: str):
    exact, half = (encode(build_tiny(family, precision=precision)[0], SQUARE) for precision in ("fp32", "bf16"))
    assert half.patches.dtype == np.float32
    cosines = (exact.patches * half.patches).sum(-1) / (
        np.linalg.norm(exact.patches, axis=-1) * np.linalg.norm(half.patches, axis=-1)
    )
    assert cosines.min() > 0.99


def test_threads_do_not_mix_up_each_others_attention():
    backbone, _ = build_tiny("dinov2")
    rng = np.random.default_rng(5)
    pictures = [make_picture(draw_texture(rng, 80, 60), str(number)) for number in range(24)]
    alone = [encode(backbone, picture).attention for picture in pictures]
    with ThreadPoolExecutor(4) as pool:
        together = [one.attention for one in pool.map(lambda picture: encode(backbone, picture), pictures)]
    assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))
    assert not np.array_equal(alone[0], alone[1])


def test_a_batch_gives_what_its_pictures_give_alone():
    backbone, _ = build_tiny("vit_mae", batch=4)
    together = list(backbone.extract([SQUARE, WIDE]))
    for features, picture in zip(together, (SQUARE, WIDE), strict=True):
        assert np.allclose(features.patches, encode(backbone, picture).patches, atol=1e-5)


def test_untrained_weights_are_always_the_same_and_leave_the_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    names = {backbones.build("transformers", model="microsoft/resnet-18", untrained=True).fingerprint for _ in "ab"}
    assert len(names) == 1
    assert torch.equal(before, torch.get_rng_state())


def test_a_size_that_patches_do_not_tile_is_refused():
    with pytest.raises(RecipeError, match="not whole cells") as caught:
        backbones.build("transformers", model="facebook/deit-tiny-patch16-224", untrained=True, size=225)
    assert "multiple of 16" in caught.value.expected

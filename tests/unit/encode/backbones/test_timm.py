"""The real architectures with random weights, against what timm itself gives for the same planes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.builders import draw_texture, make_picture

torch = pytest.importorskip("torch")
plugin = pytest.importorskip("resight.encode.backbones.timm")
timm = pytest.importorskip("timm")

from safetensors.torch import save_file  # noqa: E402

from resight.encode import backbones  # noqa: E402
from resight.encode.backbones import Backbone  # noqa: E402
from resight.errors import RecipeError  # noqa: E402
from resight.types import Features, Picture  # noqa: E402

SMALL = 40e6  # parameters: these go through a checkpoint, with numbers that make every layer count
WITH_CLS = {
    "vit_small_patch16_224.dino": 1,
    "vit_small_patch14_reg4_dinov2.lvd142m": 5,
    "vit_small_patch16_dinov3.lvd1689m": 5,
    "vit_base_patch32_clip_224.openai": 1,
    "deit3_small_patch16_224.fb_in1k": 1,
    "deit_small_distilled_patch16_224.fb_in1k": 2,
    "vit_base_patch16_224.mae": 1,
    "vit_pe_core_tiny_patch16_384.fb": 1,
}  # leading tokens
WITHOUT_CLS = {"vit_base_patch16_siglip_224.webli": 0}
CNNS = (
    "convnext_tiny.dinov3_lvd1689m",
    "resnet18.tv_in1k",
    "vgg16.tv_in1k",
    "convnext_tiny.fb_in1k",
    "inception_v3.tv_in1k",
    "densenet121.tv_in1k",
    "efficientnet_b0.ra_in1k",
    "mobilenetv3_large_100.ra_in1k",
)
PREFIX = WITH_CLS | WITHOUT_CLS


SIZES = {"vit_small_patch14_reg4_dinov2.lvd142m": 140, "vit_pe_core_tiny_patch16_384.fb": 192}  # smaller, for time


@dataclass(frozen=True)
class Pair:
    name: str
    backbone: Backbone
    reference: Any
    planes: Any
    given: Features
    features: Any  # of the reference, for the same planes
    softmax: list[Any]


@pytest.fixture(params=[*PREFIX, *CNNS], scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    name = str(request.param)
    settings: dict[str, Any] = {"model": name, "size": SIZES.get(name)}
    reference = create(name) if name in CNNS else create(name, dynamic_img_size=True)
    path = tmp_path_factory.mktemp("weights") / "own.safetensors"
    if count(reference) < SMALL:
        shake(reference)
        save_file(reference.state_dict(), path)
        backbone = backbones.build("timm", **settings, weights=path)
        path.unlink()
    else:
        backbone = backbones.build("timm", **settings, untrained=True)
    planes = make_planes(reference, SIZES.get(name))
    yield Pair(name, backbone, reference, planes, show(backbone), *watch_attention(reference, planes))


def test_patches_cls_and_head_are_those_of_timm(pair: Pair):
    given, features, prefix = pair.given, pair.features, PREFIX.get(pair.name)
    patches = features.permute(0, 2, 3, 1).flatten(1, 2) if prefix is None else features[:, prefix:]
    compare(given.patches, patches.numpy())
    with torch.inference_mode():
        head = pair.reference.forward_head(features, pre_logits=True)
    compare(given.head, head.numpy())
    if pair.name in WITH_CLS:
        compare(given.cls, features[:, 0].numpy())
    else:
        assert given.cls is None


def test_attention_is_the_row_of_cls_in_the_last_block(pair: Pair):
    if pair.name not in WITH_CLS:
        assert pair.given.attention is None
        return
    expected = pair.softmax[-1][:, :, 0, WITH_CLS[pair.name] :].mean(1)
    assert pair.given.attention is not None and pair.given.attention.sum() < 1
    compare(pair.given.attention, expected.numpy())


def test_a_wide_picture_keeps_its_proportions(pair: Pair):
    cell = pair.reference.feature_info[-1]["reduction"]
    planes = torch.randn(1, 3, 4 * cell, 6 * cell, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        outputs = pair.backbone._network.run(planes)  # type: ignore[attr-defined]
    expected = forward(pair.reference, planes)
    if pair.name in CNNS:
        assert outputs.grid == tuple(expected.shape[2:])
        compare(outputs.patches.numpy(), expected.permute(0, 2, 3, 1).flatten(1, 2))
    else:
        assert outputs.grid == (4, 6)
        compare(outputs.patches.numpy(), expected[:, PREFIX[pair.name] :])


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("vit_small_patch16_224.dino", 0),
        ("vit_small_patch14_reg4_dinov2.lvd142m", 7),
        ("vit_small_patch16_dinov3.lvd1689m", 11),
        ("vit_pe_core_tiny_patch16_384.fb", 5),
    ],
)
def test_a_block_gives_its_own_tokens_and_attention_before_any_norm(name: str, block: int):
    reference, size = create(name, dynamic_img_size=True), 7 * 16 if "patch16" in name else 7 * 14
    backbone = backbones.build("timm", model=name, untrained=True, block=block, size=size)
    given = show(backbone)
    planes = make_planes(reference, size)
    with torch.inference_mode():
        ((tokens, prefix),) = reference.forward_intermediates(
            planes, indices=[block], return_prefix_tokens=True, output_fmt="NLC", intermediates_only=True
        )
    compare(given.patches, tokens.numpy())
    compare(given.cls, prefix[:, 0].numpy())
    softmax = watch_attention(reference, planes)[1][block]
    compare(given.attention, softmax[:, :, 0, prefix.shape[1] :].mean(1).numpy())
    assert given.head is None


@pytest.mark.parametrize("name", [name for name in CNNS if "dinov3" not in name and "vgg" not in name])
def test_a_block_of_a_convolutional_network_is_a_feature_map(name: str):
    reference = create(name)
    planes = make_planes(reference, 128)
    with torch.inference_mode():
        if hasattr(reference, "forward_intermediates"):
            expected = reference.forward_intermediates(planes, intermediates_only=True)
        else:
            expected = create(name, features_only=True)(planes)
    for block in (1, len(expected) - 1):
        given = show(backbones.build("timm", model=name, untrained=True, block=block, size=128))
        assert given.grid == tuple(expected[block].shape[2:])
        compare(given.patches, expected[block].permute(0, 2, 3, 1).flatten(1, 2).numpy())


def test_a_block_that_does_not_exist_is_refused_with_the_range():
    for block in (-1, 5):
        with pytest.raises(RecipeError, match="a block from 0 to 4"):
            backbones.build("timm", model="resnet18", untrained=True, block=block)
    with pytest.raises(RecipeError, match="either block or projection"):
        backbones.build("timm", model="resnet18", untrained=True, block=1, projection=True)


@pytest.mark.parametrize(
    ("name", "dimensions"),
    [("vit_medium_patch32_clip_224.tinyclip_laion400m", 512), ("vit_pe_core_tiny_patch16_384.fb", 512)],
)
def test_a_projection_is_the_vector_that_is_shared_with_texts(name: str, dimensions: int):
    reference = create(name)
    given = show(backbones.build("timm", model=name, untrained=True, projection=True))
    with torch.inference_mode():
        expected = reference(make_planes(reference))
    assert given.head is not None and given.head.shape == (1, dimensions)
    compare(given.head, expected.numpy())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("resnet18.tv_in1k", "a classifier of 1000 classes"),
        ("vit_small_patch16_224.augreg_in21k", "a classifier of 21843 classes"),
        ("vit_small_patch16_224.dino", "no last layer"),
    ],
)
def test_a_classifier_is_no_projection(name: str, reason: str):
    with pytest.raises(RecipeError, match=reason):
        backbones.build("timm", model=name, untrained=True, projection=True)


def test_a_network_of_one_size_refuses_others_and_scales():
    name = "mixer_s32_224"
    assert show(backbones.build("timm", model=name, untrained=True)).grid == (7, 7)
    with pytest.raises(RecipeError, match="224 × 224 pixels"):
        backbones.build("timm", model=name, untrained=True, size=256)
    with pytest.raises(RecipeError, match="one size only"):
        list(backbones.build("timm", model=name, untrained=True).extract([picture()], scale=0.5))


def test_a_network_whose_tokens_lie_on_no_grid_is_refused():
    with pytest.raises(RecipeError, match="no grid"):
        show(backbones.build("timm", model="cait_xxs24_224", untrained=True))


def test_channels_that_come_last_are_read_as_such():
    name = "swin_tiny_patch4_window7_224.ms_in1k"
    reference = create(name)
    given = show(backbones.build("timm", model=name, untrained=True))
    compare(given.patches, forward(reference, make_planes(reference)).flatten(1, 2).numpy())


def test_a_strip_is_widened_to_what_the_convolutions_need():
    backbone = backbones.build("timm", model="inception_v3", untrained=True, fit="keep", size=128)
    (given,) = backbone.extract([make_picture(draw_texture(np.random.default_rng(0), 400, 24))])
    assert given.grid is not None and given.grid[0] == 1 < given.grid[1]


def test_a_size_that_patches_do_not_tile_or_that_leaves_no_map_is_refused():
    with pytest.raises(RecipeError, match="a multiple of 16"):
        backbones.build("timm", model="vit_tiny_patch16_224", untrained=True, size=100)
    with pytest.raises(RecipeError, match="96 or more"):
        backbones.build("timm", model="inception_v3", untrained=True, size=64)


def test_a_scale_changes_the_grid():
    backbone = backbones.build("timm", model="vit_tiny_patch16_224", untrained=True, size=160, fit="keep")
    (given,) = backbone.extract([picture()], scale=0.5)
    assert given.grid == (4, 6)


def test_size_crop_and_statistics_are_those_of_the_weights_unless_set():
    made_for = plugin.timm_network.load_model("resnet18.tv_in1k", plugin.Config(untrained=True))
    given = plugin.TimmNetwork(made_for, plugin.Config()).input
    assert (given.size, given.interpolation, given.share, given.cell) == (224, "bilinear", 0.875, 32)
    assert given.mean == (0.485, 0.456, 0.406) and given.deviation == (0.229, 0.224, 0.225)
    tiny = {"model": "resnet10t", "untrained": True, "size": 64}
    (whole,) = backbones.build("timm", **tiny, fit="crop", share=1.0).extract([picture()])
    (usual,) = backbones.build("timm", **tiny, fit="crop").extract([picture()])
    assert whole.covers is not None and whole.covers.tolist() == [[48, 0, 272, 224]]
    assert usual.covers is not None and usual.covers[0, 0] > 48


def test_half_the_precision_is_nearly_the_same():
    tiny = {"model": "vit_tiny_patch16_224", "untrained": True, "size": 96}
    full, half = (show(backbones.build("timm", **tiny, precision=kind)) for kind in ("fp32", "bf16"))
    assert half.patches.dtype == np.float32
    assert not np.array_equal(full.patches, half.patches)
    np.testing.assert_allclose(half.patches, full.patches, atol=0.15)
    np.testing.assert_allclose(half.attention, full.attention, atol=0.01)


def test_random_weights_are_always_the_same_and_leave_the_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    prints = {backbones.build("timm", model="resnet10t", untrained=True).fingerprint for _ in range(2)}
    assert len(prints) == 1 and torch.equal(torch.rand(1), expected)


def compare(given: Any, expected: Any) -> None:
    """To 1e-4 of the largest number: a float32 sum of large numbers is no closer to 0 than that."""
    wanted = np.asarray(expected)
    assert given is not None and given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(wanted).max())))


def picture() -> Picture:
    return make_picture(draw_texture(np.random.default_rng(0), 320, 224))


def show(backbone: Backbone) -> Features:
    (features,) = backbone.extract([picture()])
    return features


def make_planes(reference: Any, size: int | None = None) -> Any:
    """The picture as timm's own configuration wants it, squashed."""
    made_for = reference.pretrained_cfg
    side = size or made_for["input_size"][-1]
    kernel = Image.Resampling.BILINEAR if made_for["interpolation"] == "bilinear" else Image.Resampling.BICUBIC
    pixels = np.asarray(Image.fromarray(picture().pixels).resize((side, side), kernel), np.float32) / 255
    planes = (pixels - np.array(made_for["mean"])) / np.array(made_for["std"])
    return torch.from_numpy(planes.transpose(2, 0, 1)[None].astype(np.float32))


def create(name: str, **extras: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return timm.create_model(name, **extras).eval().requires_grad_(False)


def shake(model: Any) -> None:
    """Layer scales and biases as they may be after training, not near 0 as at the start."""
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.add_(0.2 * torch.rand(parameter.shape, generator=generator))
    batch_norms = [part for part in model.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for part in batch_norms:
        part.momentum = 1.0
    if batch_norms:  # statistics of noise, so that numbers neither vanish nor explode
        with torch.no_grad():
            model.train().forward_features(torch.randn(2, 3, 128, 128, generator=generator))
        model.eval()


def count(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def forward(model: Any, planes: Any) -> Any:
    with torch.inference_mode():
        return model.forward_features(planes)


def watch_attention(model: Any, planes: Any) -> tuple[Any, list[Any]]:
    """Features, and the softmax of every block from the queries and keys that timm hands to the fused kernel."""
    seen: list[Any] = []
    fused = torch.nn.functional.scaled_dot_product_attention

    def record(query: Any, key: Any, *rest: Any, **options: Any) -> Any:
        seen.append((query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5).softmax(-1))
        return fused(query, key, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", record)
        return forward(model, planes), seen

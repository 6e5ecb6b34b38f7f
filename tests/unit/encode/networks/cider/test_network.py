"""The whole network: parts, sizes, saving and loading, with several backbones and random weights."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cider = pytest.importorskip("resight.encode.backbones.cider")

from safetensors import SafetensorError  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from support.builders import draw_texture, make_picture  # noqa: E402

from resight.encode import backbones  # noqa: E402
from resight.encode.networks import checkpoint_loader  # noqa: E402
from resight.encode.networks.cider.network import count_costs  # noqa: E402
from resight.encode.networks.design_header import save_network  # noqa: E402
from resight.errors import MissingWeights, RecipeError, StorageError  # noqa: E402

SMALL = {"backbone": "resnet18", "block": 2, "dimensions": 32}


def make_small(**settings):
    return cider.make_network(cider.Config(**{**SMALL, **settings}))


def save_small(path):
    network = make_small()
    save_network(network, network.design, "cider", path)


def draw_planes(side: int = 64, count: int = 2):
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(0))


def test_the_default_is_the_papers_network_and_its_resnet_has_42_5_million_parameters():
    built = cider.build(cider.Config(backbone="resnet101", weights=None))
    assert isinstance(built.network, torch.nn.Module)
    counts = {name: sum(value.numel() for value in part.parameters()) for name, part in built.network.parts.items()}
    assert counts == {
        "backbone": 42_500_160,
        "enhancement": 2 * 2048 * 256 + 256 + 2048,
        "context": 2 * (9 * 2048 + 2 * 2048) + 2 + (2048 * 64 + 64) + 2 * (64 * 2048 + 2048),
        "localisation": 2048 + 1 + 2,
        "pooling": 1 + 2048 * 2048 + 2048,
    }


def test_arithmetic_is_counted_part_by_part():
    costs = {cost.part: cost for cost in count_costs(make_small(), 64)}
    assert list(costs) == ["backbone", "enhancement", "context", "localisation", "pooling"]
    assert costs["localisation"].operations == 128 * 8 * 8  # a product a channel and cell
    assert costs["pooling"].operations == 128 * 32
    assert costs["enhancement"].operations == 2 * 128 * 16


@pytest.mark.parametrize(
    ("settings", "channels", "grid"),
    [
        ({"backbone": "resnet18"}, 512, (2, 3)),
        ({"backbone": "resnet18", "block": 2}, 128, (8, 12)),
        ({"backbone": "resnet50", "block": 3}, 1024, (4, 6)),
        ({"backbone": "vit_tiny_patch16_224"}, 192, (4, 6)),
        ({"backbone": "vit_tiny_patch16_224", "block": 1}, 192, (4, 6)),
        ({"backbone": "convnext_atto"}, 320, (2, 3)),
        ({"backbone": "facebook/dinov2-small", "library": "transformers", "block": 0}, 384, (4, 6)),
    ],
)
def test_any_backbone_with_a_map_serves(settings, channels, grid):
    network = cider.make_network(cider.Config(dimensions=16, **settings)).eval()
    side = 14 if settings.get("library") else 16
    seen = network.see(torch.randn(2, 3, 4 * side, 6 * side))
    assert seen.maps.shape == (2, channels, *grid)
    assert seen.attention.shape == (2, *grid)
    assert seen.attention.amin(dim=(1, 2)).tolist() == [0, 0] and seen.attention.amax(dim=(1, 2)).tolist() == [1, 1]
    assert seen.descriptors.norm(dim=1).tolist() == pytest.approx([1, 1], abs=1e-5)


def test_what_comes_after_the_block_is_cut_off():
    assert sum(value.numel() for value in make_small().trunk.parameters()) < 1e6  # of 11 million


def test_every_parameter_learns_and_training_repeats_with_its_generator():
    network, twin = make_small(), make_small()
    for one in (network, twin):
        planes = draw_planes(count=3)
        one(planes, torch.Generator().manual_seed(5)).square().matmul(torch.arange(32.0)).sum().backward()
    gradients = {name: value.grad for name, value in network.named_parameters()}
    assert [name for name, gradient in gradients.items() if gradient is None] == []
    assert all(torch.equal(gradients[name], value.grad) for name, value in twin.named_parameters())


def test_eval_repeats_itself_and_a_copy_says_the_same():
    network = make_small().eval()
    once = network(draw_planes())
    assert torch.equal(network(draw_planes()), once)
    assert torch.equal(copy.deepcopy(network)(draw_planes()), once)


def test_boxes_are_pixels_of_the_images():
    found = make_small().eval().locate(draw_planes(96))
    assert len(found) == 2
    for proposals in found:
        assert len(proposals.boxes) > 0
        assert proposals.boxes.min() >= 0 and proposals.boxes.max() <= 96
        assert (np.diff(proposals.scores) <= 0).all()


def test_a_saved_network_comes_back_whole_and_tells_its_own_design(tmp_path):
    network = make_small(masks=3, enhancement="eca", pooling="max", thresholds=(0.2, 0.4, 0.6))
    network(draw_planes())  # moves the running means of the norms
    save_network(network, network.design, "cider", tmp_path / "trained.safetensors")
    loaded = cider.make_network(cider.Config(weights=tmp_path / "trained.safetensors"))
    assert loaded.design == network.design
    assert torch.equal(loaded.eval()(draw_planes()), network.eval()(draw_planes()))


def test_a_full_disk_is_told_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    def fill_up(*_, **__):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoint_loader, "save_file", fill_up)
    with pytest.raises(StorageError, match="cannot save the network") as caught:
        save_small(tmp_path / "network.safetensors")
    assert "No space left" in caught.value.actual and "--resume" in caught.value.fix
    assert not list(tmp_path.iterdir())


def test_a_setting_that_contradicts_the_file_is_refused(tmp_path):
    save_small(tmp_path / "trained.safetensors")
    with pytest.raises(RecipeError, match="another masks") as refused:
        cider.make_network(cider.Config(weights=tmp_path / "trained.safetensors", masks=3))
    assert "masks = 2" in refused.value.expected


def test_plain_weights_are_read_with_the_design_of_the_settings(tmp_path):
    network = make_small()
    save_file(network.state_dict(), tmp_path / "plain.safetensors")
    loaded = make_small(weights=tmp_path / "plain.safetensors")
    assert torch.equal(loaded.eval()(draw_planes()), network.eval()(draw_planes()))
    with pytest.raises(RecipeError, match="do not fit"):
        make_small(weights=tmp_path / "plain.safetensors", dimensions=64)


def test_pictures_get_attention_and_the_descriptor_as_their_head(tmp_path):
    save_small(tmp_path / "trained.safetensors")
    backbone = backbones.build("cider", weights=tmp_path / "trained.safetensors", size=96)
    (features,) = backbone.extract([make_picture(draw_texture(np.random.default_rng(0)))])
    assert features.grid == (12, 12) and features.patches.shape == (1, 144, 128)
    assert features.attention is not None and (features.attention.min(), features.attention.max()) == (0, 1)
    assert features.head is not None and features.head.shape == (1, 32)
    assert np.linalg.norm(features.head) == pytest.approx(1, abs=1e-5)


def test_an_untrained_network_can_be_trained_but_encodes_nothing():
    backbone = backbones.build("cider", **SMALL)
    assert all(value.requires_grad for value in backbone.network.parameters())
    with pytest.raises(MissingWeights, match="not been trained"):
        list(backbone.extract([make_picture(draw_texture(np.random.default_rng(0)))]))
    with pytest.raises(MissingWeights):
        cider.find_weights(cider.Config())
    assert cider.find_weights(cider.Config(untrained=True)) is None


def test_weights_that_are_not_here_are_missed_before_the_network_is_built(tmp_path):
    with pytest.raises(MissingWeights, match="there are no weights"):
        cider.find_weights(cider.Config(weights=tmp_path / "none.safetensors"))


@pytest.mark.parametrize(
    "settings",
    [
        {"thresholds": (0.5,)},
        {"masks": 1, "thresholds": (1.5,)},
        {"masks": 0},
        {"pretrained": True, "untrained": True},
        {"projection": True},
        {"p": 0.5},
        {"background_deviation": -1.0},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(RecipeError):
        cider.Config(**settings)


def test_a_block_that_is_not_there_is_refused():
    with pytest.raises(RecipeError, match="no block 9"):
        make_small(block=9)


def test_thresholds_are_evenly_spaced_unless_given():
    assert cider.Config(masks=3).spaced_thresholds == pytest.approx((0.25, 0.5, 0.75))
    assert cider.Config().spaced_thresholds == pytest.approx((1 / 3, 2 / 3))

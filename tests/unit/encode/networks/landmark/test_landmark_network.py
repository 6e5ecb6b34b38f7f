"""Every comparison network at random weights: shapes, lengths, gradients, parameters added up by hand, and files."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
landmark = pytest.importorskip("resight.encode.backbones.landmark")

from safetensors.torch import save_file  # noqa: E402
from support.builders import draw_texture, make_picture  # noqa: E402

from resight.encode import backbones  # noqa: E402
from resight.encode.networks.design_header import save_network  # noqa: E402
from resight.encode.networks.flops import count_network  # noqa: E402
from resight.encode.networks.landmark.landmark_network import HEADS  # noqa: E402
from resight.errors import MissingWeights, RecipeError  # noqa: E402

SMALL = {"backbone": "resnet18", "dimensions": 24, "width": 16}
DESIGNS = sorted(HEADS)
C4, C5, D, W = 256, 512, 24, 16  # of a resnet18 and SMALL


def make_small(design, **settings):
    return landmark.make_network(landmark.Config(**{**SMALL, "design": design, **settings}))


def draw_planes(height=64, width=96, count=2):
    return torch.randn(count, 3, height, width, generator=torch.Generator().manual_seed(0))


def fill_at_random(network):
    """Blocks that start as the identity let no gradient through to what lies before them."""
    generator = torch.Generator().manual_seed(1)
    for name, value in network.head.named_parameters():
        if value.ndim > 0 and "norm" not in name:
            value.data = 0.2 * torch.randn(value.shape, generator=generator)
    for name, value in network.trunk.named_parameters():
        if value.ndim == 1 and name.endswith("weight"):  # of the norms, which timm starts at 0 in places
            value.data.fill_(1)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("count", "height", "width"), [(1, 64, 64), (3, 64, 96)])
def test_any_batch_of_any_size_gives_unit_vectors_and_a_map(design, count, height, width):
    network = make_small(design).eval()
    seen = network.see(draw_planes(height, width, count))
    assert seen.descriptors.shape == (count, 24)
    assert seen.descriptors.norm(dim=1).tolist() == pytest.approx([1] * count, abs=1e-5)
    assert seen.maps.shape == (count, 16 if design == "token" else 512, height // 32, width // 32)
    if design in ("solar", "dolg"):
        assert seen.attention.shape == (count, height // 32, width // 32) and (seen.attention >= 0).all()
    else:
        assert seen.attention is None


@pytest.mark.parametrize("design", DESIGNS)
def test_an_image_gets_the_same_vector_alone_and_in_a_batch(design):
    network = make_small(design)
    fill_at_random(network)
    planes = draw_planes(count=3)
    with torch.no_grad():
        together = network.eval()(planes)
        alone = torch.cat([network(one[None]) for one in planes])
    np.testing.assert_allclose(alone, together, atol=1e-5)
    assert not torch.allclose(together[0], together[1], atol=1e-4)


@pytest.mark.parametrize("design", DESIGNS)
def test_every_parameter_learns(design):
    network = make_small(design, dropout=0.0)
    fill_at_random(network)
    weights = torch.randn(24, generator=torch.Generator().manual_seed(2))
    (network(draw_planes(count=4)) @ weights).square().sum().backward()
    gradients = {name: value.grad for name, value in network.named_parameters()}
    assert [name for name, gradient in gradients.items() if gradient is None] == []
    # A bias before a norm, or one that shifts all keys of a softmax alike, changes nothing.
    flat = [name for name, gradient in gradients.items() if not gradient.abs().max() > 0 and not name.endswith("bias")]
    assert flat == []


def convolve(inputs, outputs, size=1, bias=True):
    return size * size * inputs * outputs + bias * outputs


EMBEDDING = convolve(C5, D) + 2 * D  # layer and norm
ATTEND = 4 * convolve(W, W)
SECOND_ORDER = {
    channels: 3 * convolve(channels, inner) + convolve(inner, channels) + 2 * 2 * inner
    for channels, inner in ((C4, C4 // 4), (C5, C5 // 2))
}
ADDED = {
    "gem": EMBEDDING,
    "solar": SECOND_ORDER[C4] + SECOND_ORDER[C5] + 1 + convolve(C5, D),
    "glam": 3 * 3  # three convolutions over channels
    + (convolve(C5, W) + convolve(W, W) + 3 * convolve(W, W, 3) + convolve(4 * W, 1))
    + (3 * convolve(C5, W) + convolve(W, C5))
    + 3
    + 1
    + EMBEDDING,
    "dolg": (2 * convolve(C4, 128) + 3 * convolve(C4, 128, 3) + convolve(5 * 128, C4))
    + (convolve(C4, C4) + 2 * C4 + convolve(C4, 1))
    + 1
    + convolve(C5, C4)
    + convolve(2 * C4, D),
    "token": (convolve(C5, W) + 2 * W)
    + (ATTEND + 2 * W + convolve(W, W))
    + (4 * W + convolve(W, W) + 2 * W)
    + 2 * (2 * ATTEND + 2 * 2 * W + convolve(W, 2 * W) + convolve(2 * W, W))
    + (convolve(4 * W, D) + 2 * D),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_the_parts_have_the_parameters_of_their_layers(design):
    network = make_small(design)
    counts = {name: sum(value.numel() for value in part.parameters()) for name, part in network.components.items()}
    assert counts.pop("backbone") == 11_176_512
    assert sum(counts.values()) == ADDED[design]
    assert sum(value.numel() for value in network.parameters()) == 11_176_512 + ADDED[design]


@pytest.mark.parametrize("design", DESIGNS)
def test_parts_add_up_to_the_whole_without_any_values(design):
    config = landmark.Config(**SMALL, design=design, size=64)
    parts = landmark.count_parts(config)
    whole = count_network(landmark.sketch(config), 64)
    assert sum(part.operations for part in parts) == pytest.approx(whole.operations, abs=1)
    assert sum(part.parameters for part in parts) == whole.parameters == 11_176_512 + ADDED[design]
    assert whole.dimensions == 24
    assert all(value.is_meta for value in landmark.sketch(config).network.parameters())


@pytest.mark.parametrize("half", ["conv4", "conv5"])
def test_the_two_halves_are_the_whole_backbone(half):
    trunk, planes = make_small("gem").trunk.eval(), draw_planes()
    with torch.no_grad():
        lower = trunk(planes, "lower")
        if half == "conv4":
            assert lower.shape == (2, C4, 4, 6) and trunk.lower_channels == C4
        else:
            np.testing.assert_allclose(trunk(lower, "upper"), trunk.model.forward_features(planes), atol=1e-5)
            np.testing.assert_allclose(trunk(planes), trunk.model.forward_features(planes), atol=1e-5)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_saved_network_comes_back_whole_and_knows_its_design(design, tmp_path):
    network = make_small(design)
    network(draw_planes())  # moves the running means of the norms
    save_network(network, network.design, "landmark", tmp_path / "trained.safetensors")
    loaded = landmark.make_network(landmark.Config(weights=tmp_path / "trained.safetensors"))
    assert loaded.design == network.design
    assert torch.equal(loaded.eval()(draw_planes()), network.eval()(draw_planes()))


def test_the_exponent_is_fixed_in_yokoos_network_and_learnt_in_the_others():
    assert isinstance(make_small("gem", p=4.0).head.pool.p, torch.Tensor)
    assert "head.pool.p" not in dict(make_small("gem").named_parameters())
    for design in ("solar", "glam", "dolg"):
        assert "head.pool.p" in dict(make_small(design).named_parameters())


def test_solar_and_tokens_attention_start_as_the_identity():
    solar, maps = make_small("solar").head, torch.randn(2, C5, 2, 3)
    assert torch.equal(solar.attention5.eval()(maps)[0], maps)
    attend = make_small("token").head.relate.attend
    assert attend(torch.randn(2, 3, W), torch.randn(2, 5, W)).abs().max() == 0


def test_pictures_get_the_descriptor_as_their_head():
    backbone = backbones.build("landmark", **SMALL, design="dolg", size=96, untrained=True)
    (features,) = backbone.extract([make_picture(draw_texture(np.random.default_rng(0)))])
    assert features.grid == (3, 3) and features.patches.shape == (1, 9, 512) and features.attention.shape == (1, 9)
    assert features.head is not None and np.linalg.norm(features.head) == pytest.approx(1, abs=1e-5)
    assert backbone.fingerprint.startswith("landmark") and "dolg" in backbone.fingerprint


def test_an_untrained_network_can_be_trained_but_encodes_nothing():
    backbone = backbones.build("landmark", **SMALL)
    assert all(value.requires_grad for value in backbone.network.parameters())
    with pytest.raises(MissingWeights, match="landmark network has not been trained"):
        list(backbone.extract([make_picture(draw_texture(np.random.default_rng(0)))]))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"block": 2}, "no other block"),
        ({"design": "token", "width": 20, "heads": 8}, "heads do not divide"),
        ({"backbone": "vit_tiny_patch16_224"}, "no stages conv4 and conv5"),
        ({"p": 0.5}, "out of range"),
        ({"pretrained": True, "untrained": True}, "contradict"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, problem):
    with pytest.raises(RecipeError, match=problem):
        landmark.make_network(landmark.Config(**{**SMALL, **settings}))


def test_weights_of_another_size_are_refused(tmp_path):
    save_file(make_small("gem").state_dict(), tmp_path / "plain.safetensors")
    assert make_small("gem", weights=tmp_path / "plain.safetensors").design.dimensions == 24
    with pytest.raises(RecipeError, match="do not fit"):
        make_small("gem", weights=tmp_path / "plain.safetensors", dimensions=32)

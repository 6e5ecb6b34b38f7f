"""Each block on maps small enough to work out by hand."""

import math

import pytest

torch = pytest.importorskip("torch")

from resight.encode.networks.cider.blocks import GatherExcite, make_enhancement  # noqa: E402

KINDS = ("none", "se", "eca", "nonlocal", "gather_excite")


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def set_weights(layer, weight: float, bias: float | None = None) -> None:
    torch.nn.init.constant_(layer.weight, weight)
    if bias is not None:
        torch.nn.init.constant_(layer.bias, bias)


def test_squeeze_excite_of_constants_by_hand():
    block = make_enhancement("se", channels=4, reduction=2)
    set_weights(block.squeeze, 0.5, 0.0)  # 2 inner values: 0.5 · (1 + 2 + 3 + 4) = 5
    set_weights(block.excite, 0.1, -0.5)  # a gate: σ(0.1 · (5 + 5) − 0.5) = σ(0.5)
    maps = torch.arange(1.0, 5.0)[None, :, None, None].expand(1, 4, 3, 2)
    gated = block(maps)
    assert gated.shape == maps.shape
    assert gated[0, :, 2, 1].tolist() == pytest.approx([value * sigmoid(0.5) for value in (1, 2, 3, 4)])


def test_the_kernel_of_channel_attention_grows_with_the_channels_as_its_authors_have_it():
    widths = [make_enhancement("eca", channels, 8).neighbours.kernel_size[0] for channels in (64, 256, 2048)]
    assert widths == [3, 5, 7]


def test_channel_attention_looks_at_neighbouring_channels():
    block = make_enhancement("eca", 64, 8)
    set_weights(block.neighbours, 1.0)
    maps = torch.zeros(1, 64, 2, 2)
    maps[0, 10] = 2.0
    maps[0, 12] = 1.0
    gated = block(maps)
    assert gated[0, 10, 0, 0].item() == pytest.approx(2 * sigmoid(2))  # 12 is two away
    maps[0, 11] = 1.0
    assert block(maps)[0, 10, 0, 0].item() == pytest.approx(2 * sigmoid(3))


def test_non_local_starts_as_the_identity_and_then_adds_the_mean_of_what_is_alike():
    block = make_enhancement("nonlocal", 2, 8).eval()
    maps = torch.tensor([[1.0, 3.0], [5.0, 7.0]])[None, None].expand(1, 2, 2, 2)
    assert torch.equal(block(maps), maps)
    set_weights(block.query, 0.0, 0.0)  # every cell is as like as any: softmax gives the mean
    set_weights(block.value, 0.5, 0.0)  # 0.5 · (x + x)
    set_weights(block.back, 1.0)
    set_weights(block.norm, 1.0)
    torch.testing.assert_close(block(maps), maps + 4.0, rtol=1e-4, atol=1e-4)


def test_gather_excite_gates_a_cell_by_what_lies_around_it():
    maps = torch.zeros(1, 1, 30, 1)
    maps[0, 0, 0] = 16.0
    gated = GatherExcite()(maps)
    assert gated[0, 0, 0, 0].item() == pytest.approx(16 * sigmoid(16 / 8))  # the edge: 8 cells of the 15 exist


@pytest.mark.parametrize("kind", KINDS)
def test_all_keep_the_shape_and_let_gradients_through(kind):
    maps = torch.randn(2, 16, 5, 7, requires_grad=True)
    block = make_enhancement(kind, 16, 4)
    block(maps).sum().backward()
    assert block(maps).shape == maps.shape and maps.grad.abs().sum() > 0

"""Enhancement, context, pooling and combination on maps small enough to work out by hand."""

import math

import pytest

torch = pytest.importorskip("torch")

from resight.encode.networks.cider.blocks import Combine, GatherExcite, Pool, make_context, make_enhancement  # noqa: E402

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


def test_a_learnt_combination_starts_as_the_mean_and_follows_its_weights():
    combine = Combine(2, "learned")
    maps = [torch.full((1, 1, 1, 1), 2.0), torch.full((1, 1, 1, 1), 6.0)]
    assert combine(maps).item() == pytest.approx(4)
    with torch.no_grad():
        combine.alpha[1] = math.log(math.e**3 - 1)  # softplus of it is 3; of 0 it is ln 2
    low = math.log(2)
    assert combine(maps).item() == pytest.approx((low * 2 + 3 * 6) / (low + 3))


def test_a_sum_is_a_sum_and_has_nothing_to_learn():
    combine = Combine(3, "sum")
    assert combine([torch.tensor([value]) for value in (1.0, 2.0, 4.0)]).item() == 7
    assert list(combine.parameters()) == []


def test_each_channel_chooses_between_the_branches():
    block = make_context("sk", 4, "learned", None, 2).eval()
    with torch.no_grad():
        for branch, value in zip(block.branches, (1.0, 2.0), strict=True):
            branch[0].weight.zero_()
            branch[0].weight[:, :, 1, 1] = value  # the middle alone: U_1 = x, U_2 = 2 x
        for choose, bias in zip(block.choose, (0.0, math.log(3)), strict=True):
            choose.weight.zero_()
            choose.bias.fill_(bias)  # shares 1/4 and 3/4
    maps = torch.ones(1, 4, 3, 3)
    norm = 1 / math.sqrt(1 + 1e-5)  # of a batch norm that has seen nothing
    torch.testing.assert_close(block(maps), maps * norm * (0.25 + 0.75 * 2))


def test_the_second_branch_sees_five_cells_across():
    block = make_context("sk", 2, "sum", 1, 2).eval()
    maps = torch.zeros(1, 2, 9, 9, requires_grad=True)
    block.branches[1][0](maps)[0, 0, 4, 4].backward()
    rows = maps.grad[0, 0].abs().sum(dim=1).nonzero().flatten().tolist()
    assert rows == [2, 4, 6]


@pytest.mark.parametrize("kind", ["none", "sk", "aspp"])
def test_one_image_alone_can_be_trained_with_and_keeps_its_shape(kind):
    maps = torch.randn(1, 24, 4, 6, requires_grad=True)
    block = make_context(kind, 24, "learned", 32, 4).train()
    block(maps).sum().backward()
    assert block(maps).shape == maps.shape and maps.grad.abs().sum() > 0


def test_groups_that_do_not_divide_the_channels_become_the_largest_that_do():
    assert make_context("sk", 24, "sum", 32, 4).branches[0][0].groups == 8
    assert make_context("sk", 24, "sum", None, 4).branches[0][0].groups == 24


MAPS = [[[1.0, 2.0], [3.0, -4.0]]]


@pytest.mark.parametrize(
    ("kind", "p", "expected"), [("gem", 3.0, 9 ** (1 / 3)), ("gem", 1.0, 1.5), ("mean", 3.0, 0.5), ("max", 3.0, 3.0)]
)
def test_each_pooling_by_hand(kind, p, expected):
    """Of 1, 2, 3, and what is below 0 as nothing: the cube root of (1 + 8 + 27) / 4."""
    assert Pool(kind, p, 1, None)(torch.tensor([MAPS])).item() == pytest.approx(expected, abs=1e-5)


def test_p_is_learnt_and_does_not_fall_below_one():
    pool = Pool("gem", 1.0, 1, None)
    pool(torch.tensor([MAPS])).sum().backward()
    assert pool.p.grad.abs() > 0
    with torch.no_grad():
        pool.p.fill_(-2.0)
    assert pool(torch.tensor([MAPS])).item() == pytest.approx(1.5, abs=1e-5)


def test_large_activations_do_not_overflow_in_half_precision():
    assert Pool("gem", 3.0, 1, None)(torch.full((1, 1, 2, 2), 500.0, dtype=torch.float16)).item() == 500


def test_the_fully_connected_layer_sets_the_dimensions():
    assert Pool("mean", 3.0, 6, 4)(torch.zeros(2, 6, 3, 3)).shape == (2, 4)
    assert Pool("mean", 3.0, 6, None)(torch.zeros(2, 6, 3, 3)).shape == (2, 6)

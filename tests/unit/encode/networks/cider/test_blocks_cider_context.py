"""Selective kernels and the pyramid: shapes, the choice between branches, and what fusion changes."""

import math

import pytest

torch = pytest.importorskip("torch")

from resight.encode.networks.cider.blocks import (  # noqa: E402
    Combine,
    make_context,
)


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

"""Generalised mean by hand."""

import pytest

torch = pytest.importorskip("torch")

from resight.encode.networks.cider.blocks import Pool  # noqa: E402

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

"""Losses by hand-worked numbers."""

import math

import pytest
import torch

from resight import plugins
from resight.errors import RecipeError
from resight.train import losses
from resight.train.losses import arcface, cosface, subcenter, supcon, triplet

CROSS = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
AXES = torch.tensor([0, 1])


def set_centres(loss: torch.nn.Module, rows: list[list[float]]) -> torch.nn.Module:
    with torch.no_grad():
        loss.centres.copy_(torch.tensor(rows))
    return loss


def test_arcface_widens_the_angle_to_the_true_centre():
    loss = set_centres(arcface.build(arcface.Config(2, 2, margin=0.3, scale=2.0)), [[3, 0], [0, 5]])
    # both embeddings lie on their centre: true logit 2 cos 0.3, other 2 cos 90° = 0
    assert loss(CROSS, AXES).item() == pytest.approx(math.log(1 + math.exp(-2 * math.cos(0.3))), abs=1e-5)


def test_arcface_falls_with_the_angle_all_the_way():
    angles = torch.linspace(0, math.pi, 200)
    cosines = torch.stack([angles.cos(), torch.zeros(200)], dim=1)
    widened = arcface.widen(cosines, torch.zeros(200, dtype=torch.long), 0.3)[:, 0]
    assert (widened.diff() < 0).all()


def test_arcface_has_a_gradient_on_the_centre_and_opposite_of_it():
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], requires_grad=True)
    loss = set_centres(arcface.build(arcface.Config(2, 2)), [[1, 0], [0, 1]])
    loss(rows, torch.tensor([0, 0])).backward()
    assert torch.isfinite(rows.grad).all()


def test_cosface_takes_the_margin_off_the_true_cosine():
    loss = set_centres(cosface.build(cosface.Config(2, 2, margin=0.4, scale=5.0)), [[1, 0], [0, 1]])
    assert loss(CROSS, AXES).item() == pytest.approx(math.log(1 + math.exp(-5 * 0.6)), abs=1e-5)


def test_a_sub_centre_far_away_does_not_count():
    config = subcenter.Config(2, 2, centres=2, margin=0.3, scale=2.0)
    loss = set_centres(subcenter.build(config), [[1, 0], [-1, -1], [0, 1], [-1, 0]])
    assert loss(CROSS, AXES).item() == pytest.approx(math.log(1 + math.exp(-2 * math.cos(0.3))), abs=1e-5)


def test_one_sub_centre_is_arcface():
    rows, labels = torch.randn(6, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 2, 0, 1, 2])
    one = subcenter.build(subcenter.Config(3, 4, centres=1))
    assert torch.equal(one(rows, labels), arcface.build(arcface.Config(3, 4))(rows, labels))


def test_triplets_are_the_hardest_of_the_batch():
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    labels = torch.tensor([0, 0, 1])
    # image 0: farthest same √2, nearest other 2; image 1: √2 and √2; image 2 has no second of its class
    expected = (max(0, 1 + math.sqrt(2) - 2) + 1) / 2
    assert triplet.build(triplet.Config(margin=1.0))(rows, labels).item() == pytest.approx(expected, abs=1e-5)


def test_supcon_of_one_pair_among_three():
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    labels = torch.tensor([0, 0, 1])
    # image 0: right answer scores 0, the other -1; image 1: 0 and 0; image 2 is left out
    expected = (math.log(1 + math.exp(-1)) + math.log(2)) / 2
    assert supcon.build(supcon.Config(temperature=1.0))(rows, labels).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["supcon", "triplet"])
def test_a_batch_without_pairs_gives_zero_and_a_gradient_of_zeros(name: str):
    rows = torch.eye(3, requires_grad=True)
    value = losses.build(name, 3, 3)(rows, torch.arange(3))
    value.backward()
    assert value.item() == 0 and not rows.grad.any()


@pytest.mark.parametrize("name", plugins.names("resight.train.losses"))
def test_every_loss_falls_when_trained(name: str):
    rows = torch.randn(8, 6, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    loss = losses.build(name, 4, 6)
    optimizer = torch.optim.SGD([rows, *loss.parameters()], lr=0.1)
    first = loss(rows, labels).item()
    for _ in range(20):
        optimizer.zero_grad()
        loss(rows, labels).backward()
        optimizer.step()
    assert loss(rows, labels).item() < 0.9 * first


def test_centres_come_from_the_seed_alone():
    torch.manual_seed(5)
    first = arcface.build(arcface.Config(3, 4, seed=1)).centres
    torch.manual_seed(6)
    assert torch.equal(arcface.build(arcface.Config(3, 4, seed=1)).centres, first)
    assert not torch.equal(arcface.build(arcface.Config(3, 4, seed=2)).centres, first)


def test_a_loss_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(RecipeError) as caught:
        losses.build("softmax", 2, 2)
    assert "arcface" in caught.value.expected

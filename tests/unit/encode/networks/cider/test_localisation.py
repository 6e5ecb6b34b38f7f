"""The masks by numbers: attention, thresholds, background, fusion, and where gradients go; and boxes of drawn maps."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from resight.encode.networks.cider.design import Design  # noqa: E402
from resight.encode.networks.cider.localisation import (  # noqa: E402
    MaskedLocalisation,
    box_attention,
    draw_background,
    make_localisation,
    mask_attention,
    scale,
)


def read_first_channel(design: Design) -> MaskedLocalisation:
    """A localisation whose attention follows the first channel of two."""
    part = make_localisation(design, 2)
    assert isinstance(part, MaskedLocalisation)
    with torch.no_grad():
        part.look.weight[0, :, 0, 0] = torch.tensor([1.0, 0.0])
        part.look.bias.zero_()
    return part


def draw_maps(values: list[float]):
    """One row of cells: the first channel as given, the second 10 everywhere."""
    first = torch.tensor(values)[None, None, None]
    return torch.cat([first, torch.full_like(first, 10.0)], dim=1)


def soften(value: float) -> float:
    return math.log1p(math.exp(value))


def test_values_are_scaled_to_0_and_1_for_each_image_by_itself():
    values = torch.tensor([[1.0, 3.0, 5.0], [10.0, 10.0, 20.0]])[:, None, None]
    assert scale(values).flatten().tolist() == [0, 0.5, 1, 0, 0, 1]


def test_a_flat_map_keeps_everything_and_has_a_finite_gradient():
    values = torch.full((1, 1, 2, 3), 7.0, requires_grad=True)
    flat = scale(values)
    flat.sum().backward()
    assert flat.unique().tolist() == [1]
    assert torch.isfinite(values.grad).all()


def test_masks_are_fused_by_their_learnt_weights():
    part = read_first_channel(Design(thresholds=(0.3, 0.6))).eval()
    values = [-2.0, 0.0, 1.0, 2.0]
    low, high = soften(-2), soften(2)
    expected = [(soften(value) - low) / (high - low) for value in values]  # 0, 0.28, 0.59, 1
    localised, attention = part(draw_maps(values))
    assert attention[0, 0].tolist() == pytest.approx(expected)
    assert localised[0, 1, 0].tolist() == pytest.approx([0, 0, 5, 10])  # neither mask, one of two, both
    with torch.no_grad():
        part.fuse.alpha[0] = math.log(math.e**3 - 1)  # w_1 = 3, w_2 = ln 2
    share = 3 / (3 + math.log(2))
    assert part(draw_maps(values))[0][0, 1, 0].tolist() == pytest.approx([0, 0, 10 * share, 10])


def test_a_sum_of_masks_is_not_divided():
    part = read_first_channel(Design(thresholds=(0.3, 0.6), localisation_fusion="sum")).eval()
    assert part(draw_maps([-2.0, 0.0, 1.0, 2.0]))[0][0, 1, 0].tolist() == pytest.approx([0, 0, 10, 20])


def test_the_background_is_drawn_while_training_and_gone_afterwards():
    part = read_first_channel(Design(masks=1, thresholds=(0.5,)))
    maps = draw_maps([-2.0] * 7 + [2.0])
    one = part.train()(maps, torch.Generator().manual_seed(1))[0][0, 1, 0]
    same = part(maps, torch.Generator().manual_seed(1))[0][0, 1, 0]
    other = part(maps, torch.Generator().manual_seed(2))[0][0, 1, 0]
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert len(set(one[:7].tolist())) > 2  # a number of its own for each cell
    assert part.eval()(maps)[0][0, 1, 0].tolist() == [0] * 7 + [10]


def test_the_background_lies_in_0_to_1_and_has_the_shares_of_a_clipped_normal():
    drawn = draw_background(torch.empty(200_000), 0.1, 0.9, torch.Generator().manual_seed(0))
    assert drawn.min() == 0 and drawn.max() == 1
    below = 0.5 * math.erfc(0.1 / 0.9 / math.sqrt(2))  # P(ε ≤ 0) of N(0.1, 0.9)
    above = 0.5 * math.erfc(0.9 / 0.9 / math.sqrt(2))  # P(ε ≥ 1)
    assert (drawn == 0).float().mean().item() == pytest.approx(below, abs=0.01)
    assert (drawn == 1).float().mean().item() == pytest.approx(above, abs=0.01)


@pytest.mark.parametrize("mode", [True, False])
def test_a_fixed_background_is_the_same_in_training_and_afterwards(mode):
    part = read_first_channel(Design(masks=1, thresholds=(0.5,), background=0.5, background_deviation=0.0)).train(mode)
    assert part(draw_maps([-2.0, 2.0]))[0][0, 1, 0].tolist() == pytest.approx([5, 10])


def test_the_straight_through_mask_has_the_value_of_the_step_and_the_gradient_of_the_sigmoid():
    attention = torch.tensor([0.45, 0.55], requires_grad=True)
    mask = mask_attention(attention, 0.5, torch.tensor([0.2, 0.2]), "straight_through")
    assert mask.tolist() == pytest.approx([0.2, 1.0])
    mask.sum().backward()
    half = 1 / (1 + math.exp(0.5))  # 0.05 away, at a softness of 0.1
    assert attention.grad.tolist() == pytest.approx([0.8 * half * (1 - half) / 0.1] * 2)


@pytest.mark.parametrize(("gradient", "learns"), [("straight_through", True), ("none", False)])
def test_without_a_gradient_through_the_masks_the_convolution_would_never_learn(gradient, learns):
    part = read_first_channel(Design(gradient=gradient)).train()
    part(draw_maps([-2.0, -1.0, 0.5, 2.0]), torch.Generator().manual_seed(0))[0].sum().backward()
    gradients = part.look.weight.grad
    assert (gradients is not None and bool(gradients.abs().sum() > 0)) is learns


def test_attention_based_pooling_weighs_cells_by_a_softmax_that_its_mean_sums_up():
    part = make_localisation(Design(localisation="attention"), 2)
    with torch.no_grad():
        part.look.weight[0, :, 0, 0] = torch.tensor([1.0, 0.0])
    localised, attention = part(draw_maps([0.0, math.log(3)]))  # softmax: 1/4 and 3/4
    assert localised.mean(dim=(2, 3))[0].tolist() == pytest.approx([0.75 * math.log(3), 10])
    assert attention[0, 0].tolist() == [0, 1]


def test_without_localisation_nothing_changes():
    maps = draw_maps([1.0, 2.0])
    localised, attention = make_localisation(Design(localisation="none"), 2)(maps)
    assert torch.equal(localised, maps) and attention.tolist() == [[[1, 1]]]


def draw_heat(parts: list[tuple[int, int, int, int, float]], side: int = 120):
    heat = np.zeros((side, side), np.float32)
    for x0, y0, x1, y1, value in parts:
        heat[y0:y1, x0:x1] = value
    return heat


def test_a_drawn_mask_gives_its_box_in_pixels_of_the_original():
    found = box_attention(draw_heat([(30, 60, 60, 90, 1.0)]), (0.5,), (0, 0, 480, 240))
    assert found.boxes.tolist() == [[120, 120, 240, 180]]


def test_the_map_may_lie_on_a_part_of_the_image():
    found = box_attention(draw_heat([(0, 0, 60, 120, 1.0)]), (0.5,), (100, 50, 220, 170))
    assert found.boxes.tolist() == [[100, 50, 160, 170]]


def test_each_threshold_has_its_own_parts_and_the_surest_comes_first():
    heat = draw_heat([(10, 10, 40, 40, 1.0), (60, 60, 110, 110, 0.5)])
    assert box_attention(heat, (0.66,), (0, 0, 120, 120)).boxes.tolist() == [[10, 10, 40, 40]]
    both = box_attention(heat, (0.33, 0.66), (0, 0, 120, 120))
    assert both.boxes.tolist() == [[60, 60, 110, 110], [10, 10, 40, 40]]
    assert both.scores.tolist() == pytest.approx([1250 / 2150, 900 / 2150])  # of the attention: 50² · 0.5 and 30² · 1


def test_of_a_thing_and_its_brightest_spot_the_thing_comes_first():
    heat = draw_heat([(20, 20, 80, 80, 0.5), (30, 30, 60, 60, 1.0)])
    assert box_attention(heat, (1 / 3, 2 / 3), (0, 0, 120, 120)).boxes.tolist() == [[20, 20, 80, 80], [30, 30, 60, 60]]


def test_specks_and_flat_maps_are_no_things():
    assert len(box_attention(draw_heat([(0, 0, 5, 5, 1.0)]), (0.5,), (0, 0, 120, 120)).boxes) == 0
    assert len(box_attention(np.ones((7, 7), np.float32), (0.5,), (0, 0, 120, 120)).boxes) == 0

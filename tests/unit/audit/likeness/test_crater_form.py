"""The form of drawn craters: what changes it, and what does not."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from resight.audit.likeness.crater_form import SIDE, align, compare, describe_harmonics, describe_rings
from resight.data.maps.crater_view import Circle
from resight.types import Features, Picture

CELLS = 8


class MeanColours:
    """A network whose cells are the mean brightness of their squares, and its square."""

    max_side = None
    fingerprint = "mean colours"
    batch = 1

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:  # noqa: ARG002
        for picture in pictures:
            step = SIDE // CELLS
            grey = picture.pixels[..., 0].astype(np.float32)
            means = grey.reshape(CELLS, step, CELLS, step).mean(axis=(1, 3)).ravel()
            rows = np.stack([means, means**2], axis=1)[None]
            yield Features((picture.ref.id,), rows, np.array([picture.size], np.int32), grid=(CELLS, CELLS))


def draw_crater(turn: float = 0.0, peak: bool = False) -> np.ndarray:
    """A bowl lit from one side [SIDE, SIDE], its circle SIDE / 6 in radius."""
    steps = (np.arange(SIDE) - (SIDE - 1) / 2) / (SIDE / 6)
    x, y = np.meshgrid(steps, steps)
    away = np.hypot(x, y)
    height = np.where(away < 1, away**2 - 1, np.exp(-4 * (away - 1)) - 1 + 0.0)
    height = np.where(away < 1, height, height * 0.2)
    if peak:
        height += np.exp(-((away / 0.2) ** 2))
    down, right = np.gradient(height)
    return np.asarray(128 + 900 * (right * np.cos(turn) + down * np.sin(turn)), np.float32)


def test_brightness_contrast_and_orientation_leave_the_harmonics():
    plain = describe_harmonics(draw_crater())
    assert describe_harmonics(0.4 * draw_crater() + 60) == pytest.approx(plain, abs=1e-3)
    assert describe_harmonics(np.rot90(draw_crater()).copy()) == pytest.approx(plain, abs=1e-3)


def test_light_from_another_side_is_an_orientation_of_a_round_crater():
    assert describe_harmonics(draw_crater(turn=0.7)) == pytest.approx(describe_harmonics(draw_crater()), abs=0.02)


def test_a_central_peak_changes_the_harmonics():
    change = np.abs(describe_harmonics(draw_crater(peak=True)) - describe_harmonics(draw_crater())).max()
    assert change > 0.2


def test_rings_do_not_follow_quarter_turns_or_tint():
    plain = describe_rings(draw_crater(), MeanColours())
    assert plain.shape == (4,)  # two rings of two channels
    turned = describe_rings(np.rot90(0.5 * draw_crater() + 40).copy(), MeanColours())
    assert turned == pytest.approx(plain, rel=0.01)


def test_a_crop_is_brought_to_three_diameters():
    """A disc of radius 30 around (50, 40) becomes one of SIDE / 6 in the middle."""
    rows, columns = np.mgrid[:90, :100] + 0.5
    disc = np.where(np.hypot(columns - 50, rows - 40) < 30, 200, 20).astype(np.uint8)
    square = align(np.repeat(disc[..., None], 3, axis=2), Circle(50, 40, 30))
    assert square.shape == (SIDE, SIDE)
    steps = np.arange(SIDE) + 0.5 - SIDE / 2
    away = np.hypot(*np.meshgrid(steps, steps))
    assert square[away < SIDE / 6 - 2].min() > 195
    assert square[(away > SIDE / 6 + 2) & (away < SIDE / 5)].max() < 25


def test_similarities_are_about_the_mean_of_the_compared():
    """Two blocks: 4 rings' values, and harmonics; the third crop differs in the rings alone."""
    forms = np.zeros((4, 4 + 9 * 24), np.float32)
    forms[:, 0] = (1, 1, -1, -1)
    forms[:, 4] = (1, 1, 1, -3)
    similarity, vectors = compare(forms[0], forms)
    assert vectors.shape == forms.shape
    assert similarity[0] == pytest.approx(1) and similarity[1] == pytest.approx(1)
    assert similarity[1] > similarity[2] > similarity[3]
    # Rings have mean length 1, harmonics 1.5: (1, 2/3) · (-1, 2/3) over (1 + 4/9).
    assert similarity[2] == pytest.approx((-1 + 4 / 9) / (1 + 4 / 9), abs=1e-5)

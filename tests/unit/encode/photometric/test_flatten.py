"""Local contrast, with numbers worked out by hand."""

import cv2
import numpy as np
import pytest

from resight.encode.photometric import build
from resight.encode.photometric.flatten import blur
from resight.errors import RecipeError


def test_percentiles_of_what_a_wide_blur_leaves() -> None:
    # A blur far wider than the picture subtracts its mean, 20: what is left is -20, -10, 0, 10, 20, each once in five
    # columns. From the 0th to the 100th percentile are 40 grey values, so that 10 of them become 63.75.
    pixels = np.repeat(np.repeat(np.array([0, 10, 20, 30, 40], np.uint8)[None], 5, axis=0)[..., None], 3, axis=2)
    flat = build("flatten", sigma=10.0, low=0.0, high=100.0).apply(pixels)
    np.testing.assert_allclose(flat[2, :, 0], [0, 64, 127.5, 191, 255], atol=2)
    # From the 25th to the 75th percentile: -10 becomes 0 and 10 becomes 255; beyond is cut off.
    flat = build("flatten", sigma=10.0, low=25.0, high=75.0).apply(pixels)
    np.testing.assert_allclose(flat[2, :, 0], [0, 0, 127.5, 255, 255], atol=5)


def test_contrast_brightness_and_a_slow_slope_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    texture = cv2.GaussianBlur(rng.normal(size=(64, 64)), (0, 0), 1.5)
    texture /= texture.std()
    slope = np.linspace(-30, 30, 64)
    bright = np.clip(np.rint(130 + 20 * texture), 0, 255).astype(np.uint8)
    dim = np.clip(np.rint(60 + slope + 5 * texture), 0, 255).astype(np.uint8)
    step = build("flatten", sigma=0.08)
    one, other = (step.apply(np.repeat(pixels[..., None], 3, axis=2))[..., 0].astype(float) for pixels in (bright, dim))
    assert np.corrcoef(bright.ravel(), dim.ravel())[0, 1] < 0.5
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("grey", [0, 100, 255])
def test_a_picture_of_one_colour_becomes_mid_grey(grey: int) -> None:
    flat = build("flatten").apply(np.full((40, 30, 3), grey, np.uint8))
    assert np.unique(flat).tolist() == [128]


def test_the_blur_of_a_large_picture_is_that_of_its_reduction() -> None:
    rng = np.random.default_rng(0)
    grey = cv2.GaussianBlur(rng.normal(size=(600, 900)).astype(np.float32), (0, 0), 10) * 100
    direct = cv2.GaussianBlur(grey, (0, 0), 0.1 * 600)
    assert np.abs(blur(grey, 0.1) - direct).max() < 0.05 * np.abs(grey).max()


def test_percentiles_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(RecipeError):
        build("flatten", low=99.0, high=1.0)

"""What every photometric step promises. A new module in the folder is tested by being there."""

import numpy as np
import pytest
from numpy.typing import NDArray
from support.builders import draw_texture

from resight import plugins
from resight.encode import photometric
from resight.encode.photometric import PhotometricStep

PACKAGE = "resight.encode.photometric"


def draw_pictures() -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(0)
    drawn = [draw_texture(rng, width, height) for width, height in ((64, 48), (700, 300), (3, 90), (9, 7))]
    return [*drawn, *(np.full((20, 30, 3), grey, np.uint8) for grey in (0, 100, 255)), np.zeros((1, 1, 3), np.uint8)]


@pytest.fixture(params=plugins.names(PACKAGE))
def step(request: pytest.FixtureRequest) -> PhotometricStep:
    return photometric.build(request.param)


def test_it_keeps_shape_type_and_the_input(step: PhotometricStep) -> None:
    for pixels in draw_pictures():
        before = pixels.copy()
        changed = step.apply(pixels)
        assert changed.shape == pixels.shape
        assert changed.dtype == np.uint8
        np.testing.assert_array_equal(pixels, before)


def test_it_gives_the_same_twice(step: PhotometricStep) -> None:
    for pixels in draw_pictures():
        np.testing.assert_array_equal(step.apply(pixels), step.apply(pixels))


def test_the_fingerprint_names_it(step: PhotometricStep, request: pytest.FixtureRequest) -> None:
    assert step.fingerprint.startswith(request.node.callspec.params["step"])

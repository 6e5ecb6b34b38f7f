from dataclasses import replace

import numpy as np
import pytest

from resight.train.loading import augment, random_crop, recolour, turn
from resight.train.train_config import Settings

PLAIN = Settings()
STRONG = replace(PLAIN, crop=0.3, flip=True, colour=0.5, turn=20.0)


@pytest.fixture
def pixels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)


def test_nothing_changes_where_nothing_is_set(pixels: np.ndarray):
    assert np.array_equal(augment(pixels, PLAIN, np.random.default_rng(0)), pixels)


def test_the_generator_decides_and_the_image_stays(pixels: np.ndarray):
    before = pixels.copy()
    first, same, other = (augment(pixels, STRONG, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, same) and not np.array_equal(first, other)
    assert np.array_equal(pixels, before)


def test_a_crop_keeps_its_share_of_the_area(pixels: np.ndarray):
    rng = np.random.default_rng(0)
    shares = [random_crop(pixels, 0.5, rng)[..., 0].size / pixels[..., 0].size for _ in range(300)]
    assert 0.42 < min(shares) < 0.6 and 0.9 < max(shares) <= 1


def test_flips_every_second_time(pixels: np.ndarray):
    rng = np.random.default_rng(0)
    flipped = [np.array_equal(augment(pixels, replace(PLAIN, flip=True), rng), pixels[:, ::-1]) for _ in range(100)]
    assert 30 < sum(flipped) < 70


def test_colours_by_hand():
    pixel = np.array([[[100, 50, 0], [100, 50, 0]]], np.uint8)
    assert recolour(pixel, 1.2, 1, 1)[0, 0].tolist() == [120, 60, 0]
    assert recolour(pixel, 1, 1, 0)[0, 0].tolist() == [59, 59, 59]  # 0.299 · 100 + 0.587 · 50 = 59.25


def test_a_turn_moves_the_top_to_the_side():
    pixels = np.zeros((21, 21, 3), np.uint8)
    pixels[0, 10] = 255
    assert turn(pixels, 90)[10, 0].tolist() == [255, 255, 255]

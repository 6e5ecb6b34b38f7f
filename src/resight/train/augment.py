"""Random changes of a training image. In: pixels [H, W, 3] uint8 and a generator. Out: pixels of another crop and look.

turn      by up to so many degrees, corners filled by mirroring
crop      a random part with at least this share of the area, of the picture's own proportions within ± 25 %
flip      left to right, every second time
colour    brightness, contrast and saturation, each times 1 ± up to the share
"""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.train.settings import Settings

Pixels = NDArray[np.uint8]
LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def augment(pixels: Pixels, settings: Settings, generator: np.random.Generator) -> Pixels:
    if settings.turn > 0:
        pixels = turn(pixels, generator.uniform(-settings.turn, settings.turn))
    if settings.crop < 1:
        pixels = random_crop(pixels, settings.crop, generator)
    if settings.flip and generator.random() < 0.5:
        pixels = np.ascontiguousarray(pixels[:, ::-1])
    if settings.colour > 0:
        pixels = recolour(pixels, *(1 + settings.colour * generator.uniform(-1, 1, 3)))
    return pixels


def turn(pixels: Pixels, degrees: float) -> Pixels:
    rows, columns = pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D(((columns - 1) / 2, (rows - 1) / 2), degrees, 1.0)
    turned = cv2.warpAffine(pixels, matrix, (columns, rows), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    return np.asarray(turned, np.uint8)


def random_crop(pixels: Pixels, least: float, generator: np.random.Generator) -> Pixels:
    rows, columns = pixels.shape[:2]
    side = math.sqrt(generator.uniform(least, 1))
    stretch = math.sqrt(generator.uniform(0.8, 1.25))
    wide = min(columns, max(1, round(columns * side * stretch)))
    high = min(rows, max(1, round(rows * side / stretch)))
    x, y = generator.integers(columns - wide + 1), generator.integers(rows - high + 1)
    return pixels[y : y + high, x : x + wide]


def recolour(pixels: Pixels, brightness: float, contrast: float, saturation: float) -> Pixels:
    values = pixels.astype(np.float32) * brightness
    grey = values @ LUMA
    values = (values - grey.mean()) * contrast + grey.mean()
    grey = (values @ LUMA)[..., None]
    return np.asarray(np.clip(grey + (values - grey) * saturation + 0.5, 0, 255), np.uint8)

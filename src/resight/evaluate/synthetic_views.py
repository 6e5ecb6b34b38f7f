"""New views of a photograph, for images without ground truth: pixels in, the pixels of another photo of the same out.

Two kinds: a flat thing, seen from elsewhere in another scene; and a place at another hour. Both end blurred, noisy and
compressed, each by chance.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


def show_flat(pixels: Pixels, scene: Pixels, generator: np.random.Generator) -> Pixels:
    """The photograph as a flat thing in another scene."""
    height, width = pixels.shape[:2]
    share = generator.uniform(0.25, 1.0)
    scale = share * 700 / max(height, width)
    background = cv2.resize(scene, (700, 700), interpolation=cv2.INTER_AREA)
    tilt = np.radians(generator.normal(0, 15))
    square = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    turned = (
        (square - square.mean(axis=0)) * scale @ np.array([[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]])
    )
    turned += generator.normal(0, 0.06 * share * 700, (4, 2)) + 350 + generator.uniform(-1, 1, 2) * (1 - share) * 300
    transform = cv2.getPerspectiveTransform(square.astype(np.float32), turned.astype(np.float32))
    view = cv2.warpPerspective(pixels, transform, (700, 700), background, cv2.INTER_AREA, cv2.BORDER_TRANSPARENT)
    lit = 255 * (view / 255.0) ** generator.uniform(0.5, 1.8) * generator.uniform(0.5, 1.2)
    return spoil(lit, 2.0, 8, generator)


def show_place(pixels: Pixels, generator: np.random.Generator) -> Pixels:
    """A window of the photograph at another hour: darker, tinted, shaded from one side, with lamps."""
    height, width = pixels.shape[:2]
    part = generator.uniform(0.6, 1.0)
    wide, high = int(width * part), int(height * part)
    left, top = generator.integers(0, width - wide + 1), generator.integers(0, height - high + 1)
    window = cv2.resize(
        pixels[top : top + high, left : left + wide], (640, max(1, 640 * high // wide)), interpolation=cv2.INTER_AREA
    )
    lit = (window / 255.0) ** np.exp(generator.uniform(-0.5, 1.2)) * generator.uniform(0.15, 1.1)
    y, x = np.mgrid[0 : lit.shape[0], 0 : lit.shape[1]]
    from_side = np.cos(angle := generator.uniform(0, 2 * np.pi)) * x / x.max() + np.sin(angle) * y / max(y.max(), 1)
    shade = (from_side - from_side.min()) / np.ptp(from_side)
    lit *= (1 - generator.uniform(0, 0.8) * shade)[..., None] * generator.uniform((0.7, 1, 0.6), (1.1, 1, 1.1))
    for _ in range(generator.integers(0, 4)):
        lamp = (x - generator.uniform(0, x.max())) ** 2 + (y - generator.uniform(0, y.max())) ** 2
        reach, strength = generator.uniform(15, 80), generator.uniform(0.2, 0.9)
        lit += strength * np.exp(-lamp / (2 * reach**2))[..., None]
    return spoil(255 * lit, 2.5, 12, generator)


def spoil(view: NDArray[np.float64], blur: float, noise: float, generator: np.random.Generator) -> Pixels:
    """Blurred, noisy and compressed, each up to that much."""
    blurred = cv2.GaussianBlur(view, (0, 0), generator.uniform(0.3, blur))
    noisy = np.clip(blurred + generator.normal(0, generator.uniform(0, noise), view.shape), 0, 255).astype(np.uint8)
    _, packed = cv2.imencode(".jpg", noisy, [cv2.IMWRITE_JPEG_QUALITY, int(generator.integers(25, 90))])
    return np.asarray(cv2.imdecode(packed, cv2.IMREAD_COLOR), np.uint8)

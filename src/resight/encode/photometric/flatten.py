"""Local contrast alone: grey, minus its surroundings, stretched. Maps of other light, tint and contrast look alike.

    d = g - blur(g, σ),  out = 255 · (d - low) / (high - low), cut off at 0 and 255

g is the picture's grey, blur a Gaussian whose σ is a share of the picture's shorter side; low and high are percentiles
of d. In: pixels [H, W, 3] RGB. Out: the same shape, its three channels equal. Contrast below one grey value is not
stretched to full contrast, so that a picture of one colour becomes mid-grey. Pictures above 256 pixels are reduced to
about that for the blur, which has no finer detail.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.plugins import check_range
from resight.types import FloatArray

BLURRED = 256  # pixels of the shorter side for the blur
LEAST_CONTRAST = 1.0  # grey values from low to high


@dataclass(frozen=True)
class Config:
    sigma: float = 0.15  # σ of the blur that is subtracted, as a share of the shorter side
    low: float = 1.0  # percentile that becomes black
    high: float = 99.0  # percentile that becomes white

    def __post_init__(self) -> None:
        check_range("sigma", self.sigma, 0.001, 10)
        check_range("high", self.high, 0, 100)
        check_range("low", self.low, 0, self.high)


def build(config: Config) -> "Flatten":
    return Flatten(config)


class Flatten:
    def __init__(self, config: Config) -> None:
        self.fingerprint = f"flatten(sigma={config.sigma:g}, low={config.low:g}, high={config.high:g})"
        self._config = config

    def apply(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        grey = np.asarray(cv2.cvtColor(pixels.astype(np.float32), cv2.COLOR_RGB2GRAY), np.float32)
        detail = grey - blur(grey, self._config.sigma)
        low, high = np.percentile(detail, (self._config.low, self._config.high))
        gain = 255 / max(high - low, LEAST_CONTRAST)
        stretched = np.clip(np.rint((detail - (low + high) / 2) * gain) + 128, 0, 255).astype(np.uint8)
        return np.repeat(stretched[..., None], 3, axis=2)


def blur(grey: FloatArray, share: float) -> FloatArray:
    """Gaussian blur of [H, W] with σ = `share` of the shorter side."""
    height, width = grey.shape
    shrink = min(1.0, BLURRED / min(height, width))
    small = grey
    if shrink < 1:
        size = max(1, round(width * shrink)), max(1, round(height * shrink))
        small = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.float32)
    smooth = cv2.GaussianBlur(small, (0, 0), share * min(small.shape))
    return np.asarray(cv2.resize(smooth, (width, height)) if shrink < 1 else smooth, np.float32)

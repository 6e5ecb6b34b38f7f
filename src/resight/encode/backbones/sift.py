"""RootSIFT: key points and their descriptors, without any learnt weights.

In: pictures. Out: Features with `points` [1, N, 4] and `patches` [1, N, 128] float32 of unit length.
RootSIFT is the square root of the L1-normalised SIFT histogram (Arandjelović and Zisserman, CVPR 2012):
its dot product is the Hellinger kernel of the histograms.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from resight.encode.backbones import About
from resight.encode.backbones._key_points import extract_each, order_strongest, reduce_to, scale_back
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture

DIMENSIONS = 128
ABOUT = About("local features", DIMENSIONS, "key point", "none needed", "Apache-2.0 (OpenCV)")


@dataclass(frozen=True)
class Config:
    features: int = 1500  # most key points per image; the strongest stay
    contrast: float = 0.03  # contrast that a key point needs; lower finds more on flat surfaces
    max_side: int = 800  # pixels; an image with a longer side is reduced to this before detection

    def __post_init__(self) -> None:
        check_range("features", self.features, 1, 1_000_000)
        check_range("contrast", self.contrast, 0, 1)
        check_range("max_side", self.max_side, 32, 100000)


def build(config: Config) -> "Sift":
    return Sift(config)


class Sift:
    def __init__(self, config: Config) -> None:
        self.batch = 1
        self.max_side: int | None = config.max_side
        self.fingerprint = f"sift(features={config.features}, contrast={config.contrast}, max_side={config.max_side})"
        self._limit = config.features
        self._side = config.max_side
        self._contrast = config.contrast

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        return extract_each(pictures, scale, "SIFT", self._detect)

    def _detect(self, picture: Picture) -> tuple[FloatArray, FloatArray]:
        grey = reduce_to(cv2.cvtColor(picture.pixels, cv2.COLOR_RGB2GRAY), self._side)
        # A new detector per call costs nothing and is safe in several threads.
        detector = cv2.SIFT_create(nfeatures=self._limit, contrastThreshold=self._contrast)
        key_points, histograms = detector.detectAndCompute(grey, None)
        if histograms is None or len(key_points) == 0:
            return np.zeros((0, 4), np.float32), np.zeros((0, DIMENSIONS), np.float32)
        # OpenCV returns more than it was asked for where responses tie.
        points = np.array([(*point.pt, point.size, point.angle) for point in key_points], dtype=np.float32)
        strongest = order_strongest(points, [point.response for point in key_points])[: self._limit]
        points = scale_back(points[strongest], grey.shape, picture.size)
        return points, root_sift(histograms)[strongest]


def root_sift(histograms: FloatArray) -> FloatArray:
    """[n, 128] SIFT histograms → [n, 128] float32 of unit L2 norm."""
    sums = np.maximum(histograms.sum(axis=1, keepdims=True), 1e-6)
    return np.asarray(np.sqrt(histograms / sums), np.float32)

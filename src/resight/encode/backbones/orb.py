"""ORB: corners and binary descriptors of 256 bits, without any learnt weights.

In: pictures. Out: Features with `points` [1, N, 4] and `patches` [1, N, 32] uint8, packed bits that are compared by how
many differ. The descriptor for bits is `bow`. Rublee, Rabaud, Konolige and Bradski, ICCV 2011.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.encode.backbones import About
from resight.encode.backbones._key_points import extract_each, order_strongest, reduce_to, scale_back
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture

BYTES = 32
ABOUT = About("local features", BYTES, "key point", "none needed", "Apache-2.0 (OpenCV)")


@dataclass(frozen=True)
class Config:
    features: int = 500  # most key points per image; the strongest stay
    max_side: int = 800  # pixels; an image with a longer side is reduced to this before detection

    def __post_init__(self) -> None:
        check_range("features", self.features, 1, 1_000_000)
        check_range("max_side", self.max_side, 32, 100000)


def build(config: Config) -> "Orb":
    return Orb(config)


class Orb:
    def __init__(self, config: Config) -> None:
        self.batch = 1
        self.max_side: int | None = config.max_side
        self.fingerprint = f"orb(features={config.features}, max_side={config.max_side})"
        self._limit = config.features
        self._side = config.max_side

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        return extract_each(pictures, scale, "ORB", self._detect)

    def _detect(self, picture: Picture) -> tuple[FloatArray, NDArray[np.uint8]]:
        grey = reduce_to(cv2.cvtColor(picture.pixels, cv2.COLOR_RGB2GRAY), self._side)
        # A new detector per call costs nothing and is safe in several threads.
        key_points, codes = cv2.ORB_create(nfeatures=self._limit).detectAndCompute(grey, None)
        if codes is None or len(key_points) == 0:
            return np.zeros((0, 4), np.float32), np.zeros((0, BYTES), np.uint8)
        points = np.array([(*point.pt, point.size, point.angle) for point in key_points], dtype=np.float32)
        strongest = order_strongest(points, [point.response for point in key_points])[: self._limit]
        return scale_back(points[strongest], grey.shape, picture.size), np.asarray(codes[strongest], np.uint8)

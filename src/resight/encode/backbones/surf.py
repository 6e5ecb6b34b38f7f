"""SURF: blobs of the determinant of the Hessian and their descriptors, by mahotas (OpenCV's wheels leave it out).

In: pictures. Out: Features with `points` [1, N, 4] and `patches` [1, N, 64] float32 of unit length.
Bay, Ess, Tuytelaars and Van Gool, CVIU 110(3), 2008.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

import cv2
import numpy as np

from resight.encode.backbones import About
from resight.encode.backbones._key_points import extract_each, order_strongest, reduce_to, scale_back
from resight.errors import MissingExtra, install_extra
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture
from resight.vectors import l2_normalise

DIMENSIONS = 64
SMALLEST = 16  # pixels per side; in smaller pictures the first filters of the detector reach across
SPARE = 2
ABOUT = About("local features", DIMENSIONS, "key point", "none needed", "MIT (mahotas)")


@dataclass(frozen=True)
class Config:
    features: int = 500  # most key points per image; the strongest stay
    threshold: float = 0.1  # strength that a key point needs; lower finds more
    max_side: int = 800  # pixels; an image with a longer side is reduced to this before detection

    def __post_init__(self) -> None:
        check_range("features", self.features, 1, 1_000_000)
        check_range("threshold", self.threshold, 0)
        check_range("max_side", self.max_side, 32, 100000)


def build(config: Config) -> "Surf":
    return Surf(config, find_mahotas())


def find_mahotas() -> ModuleType:
    """Imported on first use: tables of settings can be read without it."""
    try:
        from mahotas.features import surf
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "SURF needs the Python package 'mahotas', which is not installed",
            expected="'mahotas' to be importable",
            actual=str(error),
            fix=install_extra("places"),
        ) from error
    module: ModuleType = surf
    return module


class Surf:
    def __init__(self, config: Config, mahotas: ModuleType) -> None:
        self.batch = 1
        self.max_side: int | None = config.max_side
        self.fingerprint = f"surf(features={config.features}, threshold={config.threshold}, max_side={config.max_side})"
        self._config = config
        self._mahotas = mahotas

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        return extract_each(pictures, scale, "SURF", self._detect)

    def _detect(self, picture: Picture) -> tuple[FloatArray, FloatArray]:
        grey = reduce_to(cv2.cvtColor(picture.pixels, cv2.COLOR_RGB2GRAY), self._config.max_side)
        found = np.zeros((0, 6 + DIMENSIONS))
        if min(grey.shape) >= SMALLEST:
            # mahotas drops points at the border; SPARE times as many make up for them.
            corners = self._mahotas.interest_points(
                grey, threshold=self._config.threshold, max_points=SPARE * self._config.features
            )
            found = self._mahotas.descriptors(grey, corners)
        points = np.stack([found[:, 1], found[:, 0], found[:, 2], np.degrees(found[:, 5])], axis=1).astype(np.float32)
        order = order_strongest(points, found[:, 3])[: self._config.features]
        vectors = found[order, 6:].astype(np.float32)
        return scale_back(points[order], grey.shape, picture.size), l2_normalise(vectors, floor=1e-6)

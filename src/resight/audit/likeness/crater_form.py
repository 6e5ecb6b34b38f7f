"""The form of a crater: a crop and the crater's circle in, one vector out that hardly follows tint and orientation.

The crop becomes grey, loses its large-scale brightness (a Gaussian of nearly the crater's radius) and is stretched by
its own percentiles. Then two descriptions are joined, each at unit mean length over the crops that are compared
(`compare`):

    rings       the mean of a network's cells inside the crater (up to 0.9 radii) and on its rim (0.9 to 1.5 radii),
                over four orientations of the crop: means over a ring do not depend on the angle
    harmonics   brightness p(r, θ) in polar coordinates about the centre, p(r, θ) = Σ_m c_m(r) exp(i m θ): the
                magnitudes |c_m(r)|, m < 8, which a rotation leaves as they are, and the mean profile c_0(r)

|c_1(r)| follows the slope of the walls whatever side the light comes from; c_0(r) follows a central peak and a flat
floor. Cosines are taken about the mean of the crops that are compared, so that what all of them share does not count.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.data.maps.crater_view import Circle
from resight.encode import backbones
from resight.encode.backbones import Backbone
from resight.types import FloatArray, ImageRef, Picture
from resight.vectors import l2_normalise

SIDE = 256  # pixels of the square that every crop is brought to
SPAN = 3.0  # its side in diameters
SHADE = 40.0  # pixels: deviation of the Gaussian that is taken off for the network
LOCAL = 0.7  # the same for the harmonics, in radii
STRETCH = (1, 99)  # percentiles
RINGS = ((0.0, 0.9), (0.9, 1.5))  # in radii
TURNS = 4
ANGLES, RADII, REACH, HARMONICS = 64, 24, 1.4, 8
NETWORK = {"variant": "lite2", "block": 11, "size": 128}
VERSION = 1  # increase when the same crop has another form


@dataclass(frozen=True)
class FormEncoder:
    network: Backbone

    @property
    def fingerprint(self) -> str:
        return f"form {VERSION} {self.network.fingerprint}"

    def describe(self, picture: Picture, outline: Circle) -> FloatArray:
        """Rings, then harmonics, as one vector [D]."""
        square = align(picture.pixels, outline)
        return np.concatenate([describe_rings(square, self.network), describe_harmonics(square)])


@cache
def build_encoder() -> FormEncoder:
    return FormEncoder(backbones.build("efficientnet_lite", **NETWORK))


def compare(query: FloatArray, forms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Forms [D] and [n, D], n above 0 → similarities [n] in -1..1, and unit vectors [n, D]: their products likewise."""
    middle = forms.mean(axis=0)
    lengths = [_mean_length(block) for block in _split(forms - middle)]
    vectors, one = (l2_normalise(_join(rows - middle, lengths), floor=1e-6) for rows in (forms, query[None]))
    return vectors @ one[0], vectors


def align(pixels: NDArray[np.uint8], outline: Circle) -> FloatArray:
    """The crop in grey [SIDE, SIDE]: the crater in the middle, SPAN diameters wide; edges continue as in a mirror."""
    grey = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    scale = SIDE / (2 * SPAN * outline.radius)
    if scale < 1:  # averaged first, so that nothing is skipped
        grey = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        x, y, scale = outline.x * scale, outline.y * scale, 1.0
    else:
        x, y = outline.x, outline.y
    # Pixel centres lie at half numbers in outlines, and at whole ones in OpenCV.
    move = np.array([[scale, 0, SIDE / 2 - scale * x], [0, scale, SIDE / 2 - scale * y]])
    move[:, 2] += (scale - 1) / 2
    return np.asarray(
        cv2.warpAffine(
            grey.astype(np.float32), move, (SIDE, SIDE), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101
        ),
        np.float32,
    )


def describe_rings(square: FloatArray, network: Backbone) -> FloatArray:
    """Mean cells of the rings, over four orientations."""
    flat = square - cv2.GaussianBlur(square, (0, 0), SHADE)
    low, high = np.percentile(flat, STRETCH)
    bright = np.clip((flat - low) * (255 / max(high - low, 1e-3)), 0, 255).astype(np.uint8)
    found = []
    for turn in range(TURNS):
        turned = np.ascontiguousarray(np.rot90(bright, turn))
        picture = Picture(ImageRef("crop", Path("crop")), np.repeat(turned[..., None], 3, axis=2), (SIDE, SIDE))
        (features,) = network.extract([picture])
        assert features.grid is not None
        rows, columns = features.grid
        away = np.hypot(*np.meshgrid(*(_spread(count) for count in (columns, rows)))).ravel()
        found.append([features.patches[0][(away >= near) & (away < far)].mean(axis=0) for near, far in RINGS])
    return np.asarray(np.mean(found, axis=0), np.float32).ravel()


def describe_harmonics(square: FloatArray) -> FloatArray:
    """|c_m(r)| for m < HARMONICS, then c_0(r)."""
    radius = SIDE / (2 * SPAN)
    flat = square - cv2.GaussianBlur(square, (0, 0), LOCAL * radius)
    steps = np.arange(SIDE) - (SIDE - 1) / 2
    near = np.hypot(*np.meshgrid(steps, steps)) < (REACH + 0.05) * radius
    flat = (flat - flat[near].mean()) / max(float(flat[near].std()), 1e-3)
    angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    radii = (np.arange(RADII) + 0.5) * (REACH * radius / RADII)
    middle = (SIDE - 1) / 2
    x, y = (middle + np.outer(turn(angles), radii) for turn in (np.cos, np.sin))
    polar = cv2.remap(flat, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR)
    waves = np.fft.rfft(polar, axis=0)[:HARMONICS] / ANGLES
    return np.asarray(np.concatenate([np.abs(waves).ravel(), waves[0].real]), np.float32)


def _spread(count: int) -> NDArray[np.float64]:
    """Centres of `count` cells across the square, in radii from its middle."""
    return np.asarray((np.arange(count) - (count - 1) / 2) * (2 * SPAN / count), np.float64)


def _split(forms: FloatArray) -> tuple[FloatArray, FloatArray]:
    harmonics = (HARMONICS + 1) * RADII
    return forms[..., :-harmonics], forms[..., -harmonics:]


def _mean_length(rows: FloatArray) -> float:
    return max(float(np.linalg.norm(rows, axis=-1).mean()), 1e-6)


def _join(rows: FloatArray, lengths: list[float]) -> FloatArray:
    return np.concatenate([block / length for block, length in zip(_split(rows), lengths, strict=True)], axis=-1)

"""Small pictures, views and rows from which tests build their cases.

In: a generator where something is random, numbers otherwise. Out: pixels, homographies, values of `resight.types`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.encode import backbones
from resight.search.matchers import LocalFeatures
from resight.types import Descriptors, Features, ImageRef, Picture

Pixels = NDArray[np.uint8]
Matrix = NDArray[np.float64]


def draw_texture(rng: np.random.Generator, width: int = 320, height: int = 240) -> Pixels:
    """Smooth blobs with rectangles and discs on top: hundreds of key points, no two alike."""
    noise = rng.normal(size=(height, width, 3)).astype(np.float32)
    blobs = cv2.GaussianBlur(noise, (0, 0), 4)
    pixels = cv2.normalize(blobs, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    for _ in range(40):
        x, y = int(rng.integers(width)), int(rng.integers(height))
        colour = tuple(int(value) for value in rng.integers(0, 256, 3))
        if rng.random() < 0.5:
            w, h = rng.integers(6, 40, 2)
            cv2.rectangle(pixels, (x, y), (x + int(w), y + int(h)), colour, -1)
        else:
            cv2.circle(pixels, (x, y), int(rng.integers(4, 18)), colour, -1)
    return pixels


def make_picture(pixels: Pixels, id: str = "a", size: tuple[int, int] | None = None) -> Picture:
    """A decoded picture; `size` is that of the original when the pixels were reduced."""
    height, width = pixels.shape[:2]
    return Picture(ImageRef(id, Path(id)), pixels, size or (width, height))


def fill_picture(width: int, height: int, id: str = "blank", grey: int = 128) -> Picture:
    return make_picture(np.full((height, width, 3), grey, np.uint8), id)


def turn_about(x: float, y: float, degrees: float, scale: float = 1.0) -> Matrix:
    """The homography that turns about (x, y), clockwise on the screen, and scales."""
    cos, sin = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    return np.array([[cos, -sin, x - cos * x + sin * y], [sin, cos, y - sin * x - cos * y], [0, 0, 1]])


def tilt(x: float = 3e-4, y: float = 2e-4) -> Matrix:
    """A mild perspective: depth 1 + x·column + y·row."""
    return np.array([[1, 0.05, 12], [-0.04, 1, 9], [x, y, 1]], dtype=np.float64)


def warp(pixels: Pixels, transform: Matrix, size: tuple[int, int] | None = None) -> Pixels:
    """What a camera sees after the transform; what lies outside the picture is grey."""
    height, width = pixels.shape[:2]
    return np.asarray(
        cv2.warpPerspective(pixels, transform, size or (width, height), borderValue=(128, 128, 128)), dtype=np.uint8
    )


def detect(pixels: Pixels, id: str = "a") -> LocalFeatures:
    """RootSIFT features of some pixels."""
    (features,) = backbones.build("sift").extract([make_picture(pixels, id)])
    assert features.points is not None
    return LocalFeatures(id, features.patches[0], features.points[0])


def keypoint_features(patches: Any, id: str = "a") -> Features:
    """Key-point features [n, D] of one image, the points on a diagonal."""
    rows = np.asarray(patches, np.float32)
    points = (
        np.stack([np.full(4, number, np.float32) for number in range(len(rows))]) if len(rows) else np.zeros((0, 4))
    )
    return Features((id,), rows[None], np.array([[100, 100]], np.int32), points=points[None].astype(np.float32))


def global_rows(ids: Sequence[str], vectors: Any) -> Descriptors:
    """One row per image."""
    return Descriptors(tuple(ids), np.asarray(vectors, np.float32), np.arange(len(ids), dtype=np.int32))


def ragged_rows(ids: Sequence[str]) -> Descriptors:
    """Image n has n % 3 rows with boxes; the first number of each is n."""
    numbers = np.arange(len(ids), dtype=np.int32)
    owners = np.repeat(numbers, numbers % 3)
    vectors = np.stack([owners, np.arange(len(owners))], axis=1).astype(np.float32)
    return Descriptors(tuple(ids), vectors, owners, boxes=np.tile(owners[:, None], 4).astype(np.float32), space="s")


def word_rows(images: Mapping[str, Mapping[int, Sequence[int]]], code_bytes: int) -> Descriptors:
    """Rows with visual words, from {id: {word: bytes of the code}}."""
    rows = [(owner, word, code) for owner, words in enumerate(images.values()) for word, code in words.items()]
    return Descriptors(
        ids=tuple(images),
        vectors=np.array([code for _, _, code in rows], np.uint8).reshape(len(rows), code_bytes),
        owners=np.array([owner for owner, _, _ in rows], np.int32),
        words=np.array([word for _, word, _ in rows], np.int32),
    )


def count_rows(images: Mapping[str, Mapping[int, float]]) -> Descriptors:
    """Bags of words, from {id: {word: how often}}."""
    rows = [(owner, word, count) for owner, words in enumerate(images.values()) for word, count in words.items()]
    return Descriptors(
        ids=tuple(images),
        vectors=np.array([count for _, _, count in rows], np.float32).reshape(len(rows), 1),
        owners=np.array([owner for owner, _, _ in rows], np.int32),
        words=np.array([word for _, word, _ in rows], np.int32),
    )


def local_rows(images: Sequence[LocalFeatures]) -> Descriptors:
    """Rows with key points, of many images."""
    return Descriptors(
        ids=tuple(image.id for image in images),
        vectors=np.concatenate([image.vectors for image in images]),
        owners=np.repeat(np.arange(len(images), dtype=np.int32), [len(image.vectors) for image in images]),
        points=np.concatenate([image.points for image in images]),
    )

"""Twelve ways in which a picture is passed on: pixels [H, W, 3] RGB in, a file's bytes out.

Each takes a generator, for where a crop lies and what a text says. Files are JPEG of quality 90 unless the way says
otherwise.
"""

from collections.abc import Callable, Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Change = Callable[[Pixels, np.random.Generator], Pixels]
USUAL, WORST = 90, 20  # quality of JPEG files


def copy(pixels: Pixels, way: str, generator: np.random.Generator) -> bytes:
    changed = WAYS[way](pixels, generator)
    quality = WORST if way == "jpeg_20" else USUAL
    done, packed = cv2.imencode(".jpg", cv2.cvtColor(changed, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return packed.tobytes()


def leave(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return pixels


def resize(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return np.asarray(cv2.resize(pixels, None, fx=0.4, fy=0.4, interpolation=cv2.INTER_AREA), np.uint8)


def crop_to(share: float) -> Change:
    """A window somewhere that has this share of the area."""

    def crop(pixels: Pixels, generator: np.random.Generator) -> Pixels:
        height, width = pixels.shape[:2]
        high, wide = round(height * share**0.5), round(width * share**0.5)
        top, left = int(generator.integers(height - high + 1)), int(generator.integers(width - wide + 1))
        return pixels[top : top + high, left : left + wide]

    return crop


def mirror(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return np.ascontiguousarray(pixels[:, ::-1])


def flip(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return np.ascontiguousarray(pixels[::-1])


def turn_90(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return np.ascontiguousarray(np.rot90(pixels))


def turn_45(pixels: Pixels, _: np.random.Generator) -> Pixels:
    """All of it, on black."""
    height, width = pixels.shape[:2]
    side = int(np.ceil((height + width) * 0.5**0.5))
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), 45, 1.0)
    turn[:, 2] += (side - width) / 2, (side - height) / 2
    return np.asarray(cv2.warpAffine(pixels, turn, (side, side)), np.uint8)


def write_over(pixels: Pixels, generator: np.random.Generator) -> Pixels:
    """Three lines of large letters across it."""
    written, (height, width) = pixels.copy(), pixels.shape[:2]
    size = width / 320
    for line in (0.3, 0.55, 0.8):
        words = "".join(chr(65 + letter) for letter in generator.integers(0, 26, 12))
        place = (int(0.06 * width), int(line * height))
        for colour, thickness in (((0, 0, 0), 8), ((255, 255, 255), 3)):
            cv2.putText(written, words, place, cv2.FONT_HERSHEY_SIMPLEX, size, colour, max(1, int(thickness * size)))
    return written


def drain(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return np.repeat(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)


def brighten(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return np.asarray(255 * (pixels / 255.0) ** 0.6, np.uint8)


def frame(pixels: Pixels, _: np.random.Generator) -> Pixels:
    """A white border of 12 % of the sides on each side."""
    height, width = pixels.shape[:2]
    down, across = round(0.12 * height), round(0.12 * width)
    return np.asarray(
        cv2.copyMakeBorder(pixels, down, down, across, across, cv2.BORDER_CONSTANT, value=(255, 255, 255)), np.uint8
    )


WAYS: Mapping[str, Change] = {
    "jpeg_20": leave,
    "resized_to_40%": resize,
    "cropped_to_70%": crop_to(0.7),
    "cropped_to_30%": crop_to(0.3),
    "mirrored": mirror,
    "upside_down": flip,
    "turned_90": turn_90,
    "turned_45": turn_45,
    "text": write_over,
    "grey": drain,
    "brighter": brighten,
    "border": frame,
}

"""A heat map over an image.

In: pixels [H, W, 3] RGB uint8 and heat [h, w] in 0..1, of any resolution. Out: a new array of the image's size.
The colours are Inferno: its lightness rises evenly, so it reads the same in grey and to colour-blind eyes.
The image below is dimmed and loses most of its own colour, so that no painted yellow is taken for heat.
"""

import cv2
import numpy as np

from resight.errors import InputError
from resight.explain.boxes import Pixels
from resight.types import FloatArray

OWN_COLOUR = 0.35  # how much of its colour the image keeps
DIMMED = 0.7
OPACITY = (0.1, 0.75)  # where it is cold, where it is hot


def overlay_heat(pixels: Pixels, heat: FloatArray) -> Pixels:
    """`pixels` under `heat`, which is enlarged bilinearly; values outside 0..1 are cut off."""
    if heat.ndim != 2 or not heat.size:
        raise InputError("a heat map of the wrong shape", expected="[h, w]", actual=str(list(heat.shape)))
    height, width = pixels.shape[:2]
    warmth = cv2.resize(np.clip(heat, 0, 1).astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    levels = np.rint(warmth * 255).astype(np.uint8)
    colours = cv2.applyColorMap(levels, cv2.COLORMAP_INFERNO)[..., ::-1].astype(np.float32)
    opacity = (OPACITY[0] + (OPACITY[1] - OPACITY[0]) * warmth)[..., None]
    return np.asarray(np.rint(opacity * colours + (1 - opacity) * _mute(pixels)), np.uint8)


def _mute(pixels: Pixels) -> FloatArray:
    grey = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)[..., None].astype(np.float32)
    return np.asarray(DIMMED * (OWN_COLOUR * pixels + (1 - OWN_COLOUR) * grey), np.float32)

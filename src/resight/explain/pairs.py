"""Which part of the query matched which part of an answer: numbered boxes on both images.

In: the pixels of an image, TokenMatches (boxes in pixels of the originals) and the original's size. Out: a new RGB
array. A pair has one number and one colour on both sides; the number alone is enough to read it.
"""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from resight.explain.boxes import CASING, Colour, Pixels, draw_box
from resight.explain.lines import equalise, join
from resight.types import FloatArray, IntArray, TokenMatches

LIMIT = 8
# Told apart by most colour-blind eyes too (after Okabe and Ito), all light enough for dark digits.
COLOURS: tuple[Colour, ...] = (
    (255, 214, 0),
    (86, 200, 255),
    (255, 140, 60),
    (60, 220, 160),
    (255, 150, 210),
    (240, 240, 240),
    (190, 160, 255),
    (200, 230, 90),
)


def draw_pairs(
    query_pixels: Pixels,
    image_pixels: Pixels,
    matches: TokenMatches,
    query_size: tuple[int, int],
    image_size: tuple[int, int],
    limit: int = LIMIT,
) -> Pixels:
    """Query on the left, image on the right, with the same number on what matched."""
    chosen = choose_pairs(matches, limit)
    left, right = equalise(query_pixels, image_pixels)
    return join(
        mark(left, matches.query_seeds[chosen[:, 0]], query_size),
        mark(right, matches.image_seeds[chosen[:, 1]], image_size),
    )


def choose_pairs(matches: TokenMatches, limit: int = LIMIT) -> IntArray:
    """At most `limit` pairs [n, 2], the best supported first; none touches an earlier one in either image.

    Neighbours match neighbours, so that the best pairs alone would crowd one place.
    """
    chosen: list[int] = []
    for row in np.argsort(-matches.support, kind="stable"):
        query, image = matches.pairs[row]
        before = matches.pairs[chosen]
        if len(chosen) == limit or matches.support[row] <= 0:
            break
        if not (
            _touch(matches.query_seeds[query], matches.query_seeds[before[:, 0]]).any()
            or _touch(matches.image_seeds[image], matches.image_seeds[before[:, 1]]).any()
        ):
            chosen.append(int(row))
    return matches.pairs[chosen]


def mark(pixels: Pixels, boxes: FloatArray, size: tuple[int, int]) -> Pixels:
    """`pixels` with boxes [n, 4] (in pixels of an original of that size), numbered from 1."""
    scale = np.tile(np.array(pixels.shape[1::-1]) / size, 2)
    result = pixels.copy()
    for number, box in enumerate(boxes * scale):
        x0, y0, x1, y1 = box.tolist()
        result = draw_box(result, (x0, y0, x1, y1), COLOURS[number % len(COLOURS)])
    for number, box in enumerate(boxes * scale):
        result = _label(result, box[:2], str(number + 1), COLOURS[number % len(COLOURS)])
    return result


def _label(pixels: Pixels, corner: FloatArray, text: str, colour: Colour) -> Pixels:
    """A disc with a number over a box's corner [2], where it hides little of what is in the box."""
    height = max(11, round(max(pixels.shape[:2]) / 27))
    radius = 0.7 * height
    # Whole within the picture also where the box lies at its edge.
    x, y = np.clip(corner, radius, np.maximum(np.array(pixels.shape[1::-1]) - 1 - radius, radius)).tolist()
    image = Image.fromarray(pixels)
    draw = ImageDraw.Draw(image)
    outline = (x - radius, y - radius, x + radius, y + radius)
    draw.ellipse(outline, fill=colour, outline=CASING, width=max(1, height // 12))
    draw.text((x, y), text, fill=CASING, font=ImageFont.load_default(height), anchor="mm")
    return np.asarray(image)


def _touch(box: FloatArray, others: FloatArray) -> np.ndarray:
    """Which of the boxes [n, 4] meet this one, corners included; rounding may keep neighbours a hair apart."""
    hair = 0.01 * (box[2:] - box[:2])
    return np.asarray(((box[:2] - hair <= others[:, 2:]) & (others[:, :2] <= box[2:] + hair)).all(axis=1))

"""Two images side by side, joined by the matches that one geometric model explains.

In: the pixels of query and image, a Match (points in pixels of the originals) and both original sizes.
Out: one RGB array. A line's colour follows from where it starts in the query: neighbours have like
colours, so lines that agree form a smooth fan and a wrong one stands out.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.explain.boxes import CASING, SHIFT, Colour, Pixels, fix, stroke
from resight.types import FloatArray, IntArray, Match

WIDTH_LIMIT = 4096  # of the whole picture; a panorama beside a tall image would otherwise grow without bound
GAP = 0.02  # between the two images, as a share of their height
GREY = 128  # sits quietly on a white page and on a black one
OPACITY = 0.85


def draw_match(
    query_pixels: Pixels,
    image_pixels: Pixels,
    match: Match,
    query_size: tuple[int, int],
    image_size: tuple[int, int],
    limit: int = 60,
) -> Pixels:
    """Query on the left, image on the right, and at most `limit` lines between them."""
    left, right = equalise(query_pixels, image_pixels)
    canvas = join(left, right)
    chosen = match.points[spread(match.points[:, :2] / query_size, limit)]
    starts = chosen[:, :2] * (_size(left) / query_size)
    ends = chosen[:, 2:] * (_size(right) / image_size) + (canvas.shape[1] - right.shape[1], 0)
    return draw_lines(canvas, starts, ends, colour_by_position(chosen[:, :2]))


def join(left: Pixels, right: Pixels) -> Pixels:
    """Two images of one height side by side, with a gap between them."""
    gap = np.full((len(left), max(4, round(GAP * len(left))), 3), GREY, np.uint8)
    return np.concatenate([left, gap, right], axis=1)


def equalise(left: Pixels, right: Pixels) -> tuple[Pixels, Pixels]:
    """Both images at the height of the taller one, or lower where the two together would be too wide."""
    aspects = [image.shape[1] / image.shape[0] for image in (left, right)]
    height = max(1, min(max(len(left), len(right)), int(WIDTH_LIMIT / sum(aspects))))

    def resize(image: Pixels, aspect: float) -> Pixels:
        method = cv2.INTER_AREA if height < len(image) else cv2.INTER_CUBIC
        return np.asarray(cv2.resize(image, (max(1, round(height * aspect)), height), interpolation=method), np.uint8)

    return resize(left, aspects[0]), resize(right, aspects[1])


def spread(points: NDArray[np.floating], limit: int) -> IntArray:
    """Rows of at most `limit` points [n, 2] that cover the others: farthest-point sampling from the middle."""
    if len(points) <= limit:
        return np.arange(len(points), dtype=np.int64)
    if limit < 1:
        return np.zeros(0, np.int64)
    chosen = [int(np.argmin(_distance(points, np.median(points, axis=0))))]
    nearest = _distance(points, points[chosen[0]])
    nearest[chosen] = -1.0  # below any distance: where points coincide, none is chosen twice
    while len(chosen) < limit:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distance(points, points[chosen[-1]]))
        nearest[chosen[-1]] = -1.0
    return np.array(sorted(chosen), np.int64)


def colour_by_position(places: NDArray[np.floating]) -> list[Colour]:
    """A colour for each place [n, 2]: x and y within their range span the a and b axes of CIE Lab at one lightness."""
    if not len(places):
        return []
    low, high = places.min(axis=0), places.max(axis=0)
    extent = np.where(high > low, high - low, 1)
    lightness = np.full((len(places), 1), 78.0)
    lab = np.hstack([lightness, ((places - low) / extent - 0.5) * 130]).astype(np.float32)
    rgb = cv2.cvtColor(lab[None], cv2.COLOR_Lab2RGB)[0]
    return [(int(red), int(green), int(blue)) for red, green, blue in np.rint(np.clip(rgb, 0, 1) * 255)]


def draw_lines(
    pixels: Pixels, starts: NDArray[np.floating], ends: NDArray[np.floating], colours: list[Colour]
) -> Pixels:
    """`pixels` with one cased line from each start to its end, and a dot at both."""
    width = max(1, stroke(pixels) // 2)
    layer = pixels.copy()
    for start, end, colour in zip(fix(starts), fix(ends), colours, strict=True):
        cv2.line(layer, start.tolist(), end.tolist(), CASING, width + 2, cv2.LINE_AA, SHIFT)
        cv2.line(layer, start.tolist(), end.tolist(), colour, width, cv2.LINE_AA, SHIFT)
    result = np.asarray(cv2.addWeighted(layer, OPACITY, pixels, 1 - OPACITY, 0), np.uint8)
    radius = (width + 2) << SHIFT
    for start, end, colour in zip(fix(starts), fix(ends), colours, strict=True):
        for centre in (start.tolist(), end.tolist()):
            cv2.circle(result, centre, radius + (1 << SHIFT), CASING, -1, cv2.LINE_AA, SHIFT)
            cv2.circle(result, centre, radius, colour, -1, cv2.LINE_AA, SHIFT)
    return result


def _distance(points: NDArray[np.floating], place: NDArray[np.floating]) -> FloatArray:
    return np.asarray(np.linalg.norm(points - place, axis=1), np.float32)


def _size(pixels: Pixels) -> NDArray[np.float64]:
    return np.array([pixels.shape[1], pixels.shape[0]], np.float64)

"""Evidence drawn on pixels: match lines, numbered pairs, heat maps and boxes.

In: pixels [H, W, 3] RGB uint8, and matches, token pairs, heat or boxes. Out: a new RGB array. Coordinates are in pixels
of the originals where a size is given beside them, else in pixels of the array itself.

- Every line is light with a dark casing, so that it shows on any background.
- The colour of a match line depends on where it starts in the query: lines that agree form a smooth fan of colours, and
  a wrong one stands out.
- A token pair has the same number and colour in both images; the number alone is enough to read it.
- Heat is coloured by Inferno, whose lightness rises evenly, so that it reads the same in grey and to colour-blind eyes.
  The image below is dimmed and nearly grey, so that its own yellow does not look like heat.
"""

import base64
import io

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from resight.errors import BoxError, InputError
from resight.types import Box, FloatArray, IntArray, Match, TokenMatches

Pixels = NDArray[np.uint8]
Colour = tuple[int, int, int]

MINT: Colour = (94, 234, 212)
CASING: Colour = (8, 16, 20)
SHIFT = 4  # OpenCV takes fixed-point coordinates: 4 bits are a sixteenth of a pixel

WIDTH_LIMIT = 4096  # pixels of two images side by side; a panorama beside a tall image would be wider
GAP = 0.02  # between the two images, as a share of their height
GAP_GREY = 128  # fits a white page and a black one
LINE_OPACITY = 0.85

PAIRS = 8
# Most colour-blind readers can tell them apart too (after Okabe and Ito); all are light enough for dark digits.
PAIR_COLOURS: tuple[Colour, ...] = (
    (255, 214, 0),
    (86, 200, 255),
    (255, 140, 60),
    (60, 220, 160),
    (255, 150, 210),
    (240, 240, 240),
    (190, 160, 255),
    (200, 230, 90),
)

HEAT_OPACITY = (0.1, 0.75)  # at heat 0 and at heat 1
COLOUR_SHARE = 0.35  # of its colour that the image below the heat keeps
DIMMING = 0.7


def draw_match(
    query_pixels: Pixels,
    image_pixels: Pixels,
    match: Match,
    query_size: tuple[int, int],
    image_size: tuple[int, int],
    limit: int = 60,
) -> Pixels:
    """Draw a verified match: query on the left, image on the right, lines between them.

    Args:
        query_pixels: The query, [H, W, 3] RGB uint8.
        image_pixels: The image, likewise.
        match: The match to draw.
        query_size: Width and height of the original query; the pixels may be smaller.
        image_size: Width and height of the original image.
        limit: The most lines to draw.

    Returns:
        A new RGB image.

    Examples:
        >>> import numpy as np
        >>> import resight
        >>> from PIL import Image
        >>> from resight.explain.draw import draw_match
        >>> answer = resight.open("photos.resight").ask("query.jpg", k=1)
        >>> hit = answer.hits[0]
        >>> query, image = (np.asarray(Image.open(path).convert("RGB")) for path in ("query.jpg", hit.path))
        >>> match = answer.explain(hit).match
        >>> drawn = draw_match(query, image, match, answer.query.size, answer.sizes[hit.id])
        >>> Image.fromarray(drawn).save("match.jpg")
    """
    left, right = equalise(query_pixels, image_pixels)
    canvas = join(left, right)
    chosen = match.points[sample_farthest(match.points[:, :2] / query_size, limit)]
    starts = chosen[:, :2] * (_size(left) / query_size)
    ends = chosen[:, 2:] * (_size(right) / image_size) + (canvas.shape[1] - right.shape[1], 0)
    return draw_lines(canvas, starts, ends, colour_by_position(chosen[:, :2]))


def sample_farthest(points: NDArray[np.floating], limit: int) -> IntArray:
    """Rows of at most `limit` points [n, 2] that cover all of them: farthest-point sampling from the middle."""
    if len(points) <= limit:
        return np.arange(len(points), dtype=np.int64)
    if limit < 1:
        return np.zeros(0, np.int64)
    chosen = [int(np.argmin(_distance(points, np.median(points, axis=0))))]
    nearest = _distance(points, points[chosen[0]])
    nearest[chosen] = -1.0  # below any distance, so that no row is chosen twice even where points coincide
    while len(chosen) < limit:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distance(points, points[chosen[-1]]))
        nearest[chosen[-1]] = -1.0
    return np.array(sorted(chosen), np.int64)


def colour_by_position(points: NDArray[np.floating]) -> list[Colour]:
    """One colour per point [n, 2]: x and y within their range span the a and b axes of CIE Lab at one lightness."""
    if not len(points):
        return []
    low, high = points.min(axis=0), points.max(axis=0)
    extent = np.where(high > low, high - low, 1)
    lightness = np.full((len(points), 1), 78.0)
    lab = np.hstack([lightness, ((points - low) / extent - 0.5) * 130]).astype(np.float32)
    rgb = cv2.cvtColor(lab[None], cv2.COLOR_Lab2RGB)[0]
    return [(int(red), int(green), int(blue)) for red, green, blue in np.rint(np.clip(rgb, 0, 1) * 255)]


def draw_lines(
    pixels: Pixels, starts: NDArray[np.floating], ends: NDArray[np.floating], colours: list[Colour]
) -> Pixels:
    """`pixels` with one cased line from each start to its end, and dots at both ends."""
    width = max(1, stroke(pixels) // 2)
    layer = pixels.copy()
    for start, end, colour in zip(fix(starts), fix(ends), colours, strict=True):
        cv2.line(layer, start.tolist(), end.tolist(), CASING, width + 2, cv2.LINE_AA, SHIFT)
        cv2.line(layer, start.tolist(), end.tolist(), colour, width, cv2.LINE_AA, SHIFT)
    result = np.asarray(cv2.addWeighted(layer, LINE_OPACITY, pixels, 1 - LINE_OPACITY, 0), np.uint8)
    radius = (width + 2) << SHIFT
    for start, end, colour in zip(fix(starts), fix(ends), colours, strict=True):
        for centre in (start.tolist(), end.tolist()):
            cv2.circle(result, centre, radius + (1 << SHIFT), CASING, -1, cv2.LINE_AA, SHIFT)
            cv2.circle(result, centre, radius, colour, -1, cv2.LINE_AA, SHIFT)
    return result


def draw_token_pairs(
    query_pixels: Pixels,
    image_pixels: Pixels,
    matches: TokenMatches,
    query_size: tuple[int, int],
    image_size: tuple[int, int],
    limit: int = PAIRS,
) -> Pixels:
    """Draw matched tokens: query on the left, image on the right, the same number on both tokens of a pair.

    Args:
        query_pixels: The query, [H, W, 3] RGB uint8.
        image_pixels: The image, likewise.
        matches: The pairs of tokens.
        query_size: Width and height of the original query; the pixels may be smaller.
        image_size: Width and height of the original image.
        limit: The most pairs to draw.

    Returns:
        A new RGB image.

    Examples:
        >>> import numpy as np
        >>> import resight
        >>> from PIL import Image
        >>> from resight.explain.draw import draw_token_pairs
        >>> answer = resight.open("photos.resight").ask("query.jpg", k=1)
        >>> hit = answer.hits[0]
        >>> query, image = (np.asarray(Image.open(path).convert("RGB")) for path in ("query.jpg", hit.path))
        >>> tokens = answer.explain(hit).tokens
        >>> drawn = draw_token_pairs(query, image, tokens, answer.query.size, answer.sizes[hit.id])
        >>> Image.fromarray(drawn).save("pairs.jpg")
    """
    chosen = choose_pairs(matches, limit)
    left, right = equalise(query_pixels, image_pixels)
    return join(
        mark(left, matches.query_seeds[chosen[:, 0]], query_size),
        mark(right, matches.image_seeds[chosen[:, 1]], image_size),
    )


def choose_pairs(matches: TokenMatches, limit: int = PAIRS) -> IntArray:
    """At most `limit` pairs [n, 2], the best supported first; none touches an earlier one in either image.

    Neighbours match neighbours, so the best pairs alone would crowd one spot.
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


def _touch(box: FloatArray, others: FloatArray) -> np.ndarray:
    """Which of the boxes [n, 4] touch this one, corners included; tolerates a small gap from rounding."""
    tolerance = 0.01 * (box[2:] - box[:2])
    return np.asarray(((box[:2] - tolerance <= others[:, 2:]) & (others[:, :2] <= box[2:] + tolerance)).all(axis=1))


def mark(pixels: Pixels, boxes: FloatArray, size: tuple[int, int]) -> Pixels:
    """`pixels` with numbered boxes [n, 4], which are in pixels of an original of that size."""
    scale = np.tile(np.array(pixels.shape[1::-1]) / size, 2)
    result = pixels.copy()
    for number, box in enumerate(boxes * scale):
        x0, y0, x1, y1 = box.tolist()
        result = draw_box(result, (x0, y0, x1, y1), PAIR_COLOURS[number % len(PAIR_COLOURS)])
    for number, box in enumerate(boxes * scale):
        result = _label(result, box[:2], str(number + 1), PAIR_COLOURS[number % len(PAIR_COLOURS)])
    return result


def _label(pixels: Pixels, corner: FloatArray, text: str, colour: Colour) -> Pixels:
    """A disc with a number over a box's corner [2], where it hides little of the box."""
    height = max(11, round(max(pixels.shape[:2]) / 27))
    radius = 0.7 * height
    # Inside the picture even if the box lies at its edge.
    x, y = np.clip(corner, radius, np.maximum(np.array(pixels.shape[1::-1]) - 1 - radius, radius)).tolist()
    image = Image.fromarray(pixels)
    draw = ImageDraw.Draw(image)
    outline = (x - radius, y - radius, x + radius, y + radius)
    draw.ellipse(outline, fill=colour, outline=CASING, width=max(1, height // 12))
    draw.text((x, y), text, fill=CASING, font=ImageFont.load_default(height), anchor="mm")
    return np.asarray(image)


def overlay_heat(pixels: Pixels, heat: FloatArray) -> Pixels:
    """Lay a heat map over an image: dark = no match, bright = strong match.

    Args:
        pixels: The image, [H, W, 3] RGB uint8.
        heat: [h, w] float32, enlarged bilinearly and clipped to 0..1.

    Returns:
        A new RGB image.

    Raises:
        InputError: The heat map is empty or has not two dimensions.

    Examples:
        >>> import numpy as np
        >>> from resight.explain.draw import overlay_heat
        >>> pixels, heat = np.full((60, 80, 3), 128, np.uint8), np.eye(4, dtype=np.float32)
        >>> overlay_heat(pixels, heat).shape
        (60, 80, 3)
    """
    if heat.ndim != 2 or not heat.size:
        raise InputError("the heat map has the wrong shape", expected="[h, w]", actual=str(list(heat.shape)))
    height, width = pixels.shape[:2]
    warmth = cv2.resize(np.clip(heat, 0, 1).astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    levels = np.rint(warmth * 255).astype(np.uint8)
    colours = cv2.applyColorMap(levels, cv2.COLORMAP_INFERNO)[..., ::-1].astype(np.float32)
    opacity = (HEAT_OPACITY[0] + (HEAT_OPACITY[1] - HEAT_OPACITY[0]) * warmth)[..., None]
    return np.asarray(np.rint(opacity * colours + (1 - opacity) * _mute(pixels)), np.uint8)


def _mute(pixels: Pixels) -> FloatArray:
    grey = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)[..., None].astype(np.float32)
    return np.asarray(DIMMING * (COLOUR_SHARE * pixels + (1 - COLOUR_SHARE) * grey), np.float32)


def draw_box(pixels: Pixels, box: Box, colour: Colour = MINT) -> Pixels:
    """Draw the outline of a box; sides outside the image are drawn on its edge.

    Args:
        pixels: The image, [H, W, 3] RGB uint8.
        box: x0, y0, x1, y1 in pixels of this array.
        colour: Red, green and blue, 0 to 255.

    Returns:
        A new RGB image.

    Raises:
        BoxError: The box is inside out.

    Examples:
        >>> import numpy as np
        >>> from resight.explain.draw import draw_box
        >>> pixels = np.full((60, 80, 3), 128, np.uint8)
        >>> draw_box(pixels, (10, 10, 40, 50), colour=(255, 214, 0)).shape
        (60, 80, 3)
    """
    x0, y0, x1, y1 = box
    if not (x0 < x1 and y0 < y1):
        raise BoxError("the box is inside out", expected="x0 < x1 and y0 < y1", actual=str(box))
    height, width = pixels.shape[:2]
    edge = stroke(pixels)  # else a box around the whole image would lose half its line
    x0, x1 = np.clip((x0, x1), edge, max(width - 1 - edge, edge))
    y0, y1 = np.clip((y0, y1), edge, max(height - 1 - edge, edge))
    return draw_quadrilateral(pixels, np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], np.float32), colour)


def draw_quadrilateral(pixels: Pixels, corners: NDArray[np.floating], colour: Colour = MINT) -> Pixels:
    """`pixels` with the closed outline through `corners` [4, 2]."""
    result = np.ascontiguousarray(pixels).copy()
    line = [fix(corners)]
    width = stroke(pixels)
    cv2.polylines(result, line, True, CASING, width * 2 + 1, cv2.LINE_AA, SHIFT)
    cv2.polylines(result, line, True, colour, width, cv2.LINE_AA, SHIFT)
    return result


def equalise(left: Pixels, right: Pixels) -> tuple[Pixels, Pixels]:
    """Both images at the height of the taller one, or less if the two together would be too wide."""
    aspects = [image.shape[1] / image.shape[0] for image in (left, right)]
    height = max(1, min(max(len(left), len(right)), int(WIDTH_LIMIT / sum(aspects))))

    def resize(image: Pixels, aspect: float) -> Pixels:
        method = cv2.INTER_AREA if height < len(image) else cv2.INTER_CUBIC
        return np.asarray(cv2.resize(image, (max(1, round(height * aspect)), height), interpolation=method), np.uint8)

    return resize(left, aspects[0]), resize(right, aspects[1])


def join(left: Pixels, right: Pixels) -> Pixels:
    """Two images of one height side by side, with a gap between them."""
    gap = np.full((len(left), max(4, round(GAP * len(left))), 3), GAP_GREY, np.uint8)
    return np.concatenate([left, gap, right], axis=1)


def stroke(pixels: Pixels) -> int:
    """A line width that looks the same on a thumbnail and on a large photograph."""
    return max(1, round(int(max(pixels.shape[:2])) / 250))


def fix(points: NDArray[np.floating]) -> NDArray[np.int32]:
    """Points in the fixed-point form that lets OpenCV draw with sub-pixel accuracy."""
    # Far outside any image, but within int32: a homography can send a corner almost to infinity.
    bounded = np.clip(points, -1e6, 1e6)
    return np.asarray(np.rint(bounded * (1 << SHIFT)), np.int32)


def embed(pixels: Pixels) -> str:
    """A data: URI."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "WEBP", quality=82, method=2)  # Pillow's default, 4, takes four times as long
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()


def shrink(pixels: Pixels, limit: int) -> Pixels:
    """`pixels` with no side longer than `limit`; smaller images stay as they are."""
    scale = limit / max(pixels.shape[:2])
    if scale >= 1:
        return pixels
    size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def _distance(points: NDArray[np.floating], point: NDArray[np.floating]) -> FloatArray:
    return np.asarray(np.linalg.norm(points - point, axis=1), np.float32)


def _size(pixels: Pixels) -> NDArray[np.float64]:
    return np.array([pixels.shape[1], pixels.shape[0]], np.float64)

"""Draws the picture of the README: two searches, each with the query, the answer, its box and the matched points.

    python scripts/draw_answers.py [FILE]

One row is a photograph of the demo, the other a crater in scikit-image's picture of the Moon, cut out, turned by 10°,
enlarged and darkened. Both are looked for among all photographs of the demo and that picture. Every box, line and
probability is what `resight search` answers. Needs the extras demo and dev.
"""

import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from skimage import data

from resight.apps.cli.demo import find_photos, gather_photos, photograph_again
from resight.collection import Collection, open_collection
from resight.explain.draw import draw_box, draw_match
from resight.recipe import load

SIZE = (1280, 400)  # of each row, pixels
MARGIN = 34  # below the images, for the caption
# The picture of the Moon has little contrast: key points down to a fifth of the usual one.
FAINT = ("branches.0.encoder.contrast=0.005", "branches.2.encoder.contrast=0.005")
CRATER = (60.0, 30.0, 380.0, 200.0)  # in pixels of scikit-image's picture
PAPER, INK = (255, 255, 255), (40, 44, 52)
Pixels = NDArray[np.uint8]


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        moon = folder / "moon.png"
        cv2.imwrite(str(moon), data.moon())
        collection = open_collection(folder / "photos.resight", load("sift_tokens", FAINT))
        collection.add(gather_photos(find_photos()), moon)
        crater = photograph_again(moon, CRATER, folder / "crater.jpg")
        darken(crater)
        rows = [draw(collection, find_photos() / "eiffel-1.png"), draw(collection, crater)]
    sheet = Image.new("RGB", (SIZE[0], sum(row.height for row in rows)), PAPER)
    top = 0
    for row in rows:
        sheet.paste(row, ((SIZE[0] - row.width) // 2, top))
        top += row.height
    sheet.save(target, quality=86, optimize=True)


def darken(path: Path) -> None:
    pixels = np.asarray(Image.open(path), np.float32)
    Image.fromarray((255 * (pixels / 255) ** 1.6).astype(np.uint8)).save(path, quality=80)


def draw(collection: Collection, path: Path) -> Image.Image:
    """Query and best answer side by side, with box and lines, and a line of text below."""
    answer = collection.ask(path, k=1)
    (hit,) = answer.hits
    match = answer.explain(hit).match
    if match is None or hit.box is None or hit.probability is None:
        raise SystemExit(f"no verified answer for {path.name}: {hit}")
    query, image = (np.asarray(Image.open(each).convert("RGB")) for each in (path, hit.path))
    drawn = draw_match(query, draw_box(image, hit.box), match, answer.query.size, answer.sizes[hit.id], limit=40)
    shown = Image.fromarray(drawn)
    shown.thumbnail(SIZE, Image.Resampling.LANCZOS)
    row = Image.new("RGB", (shown.width, shown.height + MARGIN), PAPER)
    row.paste(shown, (0, 0))
    text = f"same object: {hit.probability:.1%}   ·   {match.inliers} matching points   ·   box {format_box(hit.box)}"
    font = ImageFont.load_default(size=17)
    ImageDraw.Draw(row).text((shown.width / 2, shown.height + 6), text, INK, font, anchor="ma")
    return row


def format_box(box: tuple[float, float, float, float]) -> str:
    return ", ".join(f"{side:.0f}" for side in box)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "assets" / "answers.jpg")

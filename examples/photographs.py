"""The photographs of the package mvtb-data for the notebooks, and small pictures of results.

`copy_photographs` writes some of them into a folder. `show` makes one JPEG of image files and RGB arrays [H, W, 3]
uint8, with captions below them, for Jupyter to display.
"""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from IPython.display import Image as Shown
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageOps

from resight.apps.cli.demo import find_photos

Pixels = NDArray[np.uint8]
GAP, CAPTION = 12, 20  # pixels between pictures, and height of a caption
INK, BAND = (40, 44, 52), (255, 255, 255)
RIGHT, WRONG = (22, 163, 74), (220, 60, 50)  # frames, colour-blind readers see the lightness differ


def copy_photographs(folder: Path, names: Sequence[str], side: int = 640) -> list[Path]:
    """Writes the named photographs into `folder` as JPEG, the longer side at most `side` pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in names:
        with Image.open(find_photos() / name) as image:
            image.thumbnail((side, side))
            written.append(folder / f"{Path(name).stem}.jpg")
            image.convert("RGB").save(written[-1], quality=90)
    return written


def list_walk() -> list[str]:
    """The names of 25 photographs of a walk over a campus, in the order in which they were taken."""
    source = find_photos()
    found = [*(source / "campus").glob("P*.png"), *(source / "campus" / "holdout").glob("P*.png")]
    return [path.relative_to(source).as_posix() for path in sorted(found, key=lambda path: path.name)]


def read(path: Path) -> Pixels:
    with Image.open(path) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def show(
    *pictures: Path | Pixels,
    captions: Sequence[str] = (),
    right: Sequence[bool | None] = (),
    columns: int = 4,
    height: int = 150,
    quality: int = 80,
) -> Shown:
    """All pictures at one height, in rows. `right` frames a picture in green (True) or red (False)."""
    cells = [_make_cell(picture, height) for picture in pictures]
    for cell, verdict in zip(cells, right, strict=False):
        if verdict is not None:
            ImageDraw.Draw(cell).rectangle(
                (0, 0, cell.width - 1, cell.height - 1), None, RIGHT if verdict else WRONG, 4
            )
    band = CAPTION if captions else 0
    rows = [list(range(start, min(start + columns, len(cells)))) for start in range(0, len(cells), columns)]
    width = max(sum(cells[n].width for n in row) + GAP * (len(row) - 1) for row in rows)
    sheet = Image.new("RGB", (width, len(rows) * (height + band + GAP) - GAP), BAND)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for number, row in enumerate(rows):
        left, top = 0, number * (height + band + GAP)
        for n in row:
            sheet.paste(cells[n], (left, top))
            if n < len(captions):
                draw.text((left + 1, top + height + 2), captions[n], fill=INK, font=font)
            left += cells[n].width + GAP
    file = io.BytesIO()
    sheet.save(file, "JPEG", quality=quality, optimize=True)
    return Shown(file.getvalue(), format="jpeg")


def _make_cell(picture: Path | Pixels, height: int) -> Image.Image:
    image = Image.fromarray(picture if isinstance(picture, np.ndarray) else read(picture))
    return image.resize((max(1, round(image.width * height / image.height)), height), Image.Resampling.LANCZOS)

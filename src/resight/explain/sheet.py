"""A contact sheet: pictures with two lines of text each in, one PIL image with all of them out."""

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from resight.explain.draw import CASING, MINT, Pixels, shrink

TILE, GAP = 240, 12  # pixels
COLUMNS = 4
FONT = 14
LINE = FONT + 4
WHITE, GREY = (255, 255, 255), (96, 96, 96)


@dataclass(frozen=True)
class Tile:
    pixels: Pixels
    heading: str
    name: str
    marked: bool = False  # underlined


def draw_sheet(tiles: Sequence[Tile], columns: int = COLUMNS) -> Image.Image:
    """Tiles in rows on white, each with its heading and name below it."""
    across = min(columns, max(1, len(tiles)))
    down = -(-len(tiles) // across)
    height = TILE + 2 * LINE + GAP
    sheet = Image.new("RGB", (across * (TILE + GAP) + GAP, down * height + GAP), WHITE)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(FONT)
    for number, tile in enumerate(tiles):
        x, y = GAP + number % across * (TILE + GAP), GAP + number // across * height
        picture = Image.fromarray(shrink(tile.pixels, TILE))
        sheet.paste(picture, (x + (TILE - picture.width) // 2, y + (TILE - picture.height) // 2))
        if tile.marked:
            draw.rectangle((x, y + TILE, x + TILE - 1, y + TILE + 2), fill=MINT)
        draw.text((x, y + TILE + 4), _cut(tile.heading, font), fill=CASING, font=font)
        draw.text((x, y + TILE + 4 + LINE), _cut(tile.name, font), fill=GREY, font=font)
    return sheet


def _cut(text: str, font: "ImageFont.FreeTypeFont | ImageFont.ImageFont") -> str:
    """As much of the text as fits below a tile; the end of a name tells more than its beginning."""
    if font.getlength(text) <= TILE:
        return text
    while len(text) > 1 and font.getlength("…" + text) > TILE:
        text = text[1:]
    return "…" + text

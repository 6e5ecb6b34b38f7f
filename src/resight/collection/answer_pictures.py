"""The pictures of an answer, for notebooks and scripts: hits and evidence in, PIL images and HTML out.

A query that came from a file is read again, another one was kept (encode.py). Everything is drawn when it is asked
for, from images reduced to SIDE.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from resight.data import image_files
from resight.errors import ImageError, InputError
from resight.probability_words import format_probability, format_verdict, is_likely
from resight.store import ImageRecord
from resight.types import Box, Evidence, Hit, ImageRef, Picture, Query

if TYPE_CHECKING:
    from PIL import Image

    from resight.explain.draw import Pixels

SIDE = 640  # pixels of the longer side of a drawn image
SHOWN = 10  # hits of an answer in a notebook
ReadStored = Callable[[str, Path], Picture]  # an image of the collection, by its id and its file


class AnswerPictures:
    """Draws the hits of one answer."""

    def __init__(
        self,
        query: Query,
        paths: Mapping[str, Path],
        explain: Callable[[Hit], Evidence],
        read: ReadStored | None = None,
    ) -> None:
        self._query = query
        self._paths = paths  # id of a hit → its file
        self._explain = explain
        self._read = read or _read

    def draw(self, found: Hit | Evidence) -> "Image.Image":
        """The query beside the image: lines between matching points, or numbers on matching parts, and the box."""
        from PIL import Image

        from resight.explain import draw

        evidence = self._explain(found) if isinstance(found, Hit) else found
        query, image = self._read_query(), self._read_image(evidence)
        pixels = _mark(image, [evidence.box])
        if evidence.match is not None:
            joined = draw.draw_match(query.pixels, pixels, evidence.match, query.size, image.size)
        elif evidence.tokens is not None and len(draw.choose_pairs(evidence.tokens)):
            joined = draw.draw_token_pairs(query.pixels, pixels, evidence.tokens, query.size, image.size)
        else:
            joined = draw.join(*draw.equalise(query.pixels, pixels))
        return Image.fromarray(joined)

    def draw_answer(self, hits: Sequence[Hit]) -> "Image.Image":
        """The query and the hits with their boxes, names and probabilities."""
        from resight.explain.sheet import Tile, draw_sheet

        tiles = [Tile(self._read_query().pixels, "query", self._query.id)]
        for rank, hit in enumerate(hits, start=1):
            tiles.append(Tile(self._draw_hit(hit), f"{rank}  {_describe(hit)}", hit.id, is_likely(hit.probability)))
        return draw_sheet(tiles)

    def answer_to_html(self, verdict: str, hits: Sequence[Hit], notes: Sequence[str]) -> str:
        """The same for a notebook, with at most SHOWN hits."""
        from resight.explain.notebook import Card, draw_gallery

        cards = [Card(_try(lambda: self._read_query().pixels), ("query", self._query.id))]
        for rank, hit in enumerate(hits[:SHOWN], start=1):
            cards.append(Card(self._try_hit(hit), (f"{rank}  {_describe(hit)}", hit.id), is_likely(hit.probability)))
        more = [f"… and {len(hits) - SHOWN:,} more hits"] if len(hits) > SHOWN else []
        return draw_gallery(verdict, cards, [*more, *notes])

    def to_html(self, found: Hit | Evidence) -> str:
        return self._hit_to_html(found) if isinstance(found, Hit) else self._evidence_to_html(found)

    def _evidence_to_html(self, evidence: Evidence) -> str:
        from resight.explain.draw import overlay_heat
        from resight.explain.notebook import Card, draw_gallery

        facts = [_describe(evidence), *_describe_box(evidence)]
        if evidence.match:
            facts.append(f"{evidence.match.inliers:,} matching points agree ({evidence.match.model})")
        try:
            cards = [Card(np.asarray(self.draw(evidence)), ("query and image",), wide=True)]
            if evidence.query_heat is not None:
                heated = overlay_heat(self._read_query().pixels, evidence.query_heat)
                cards.append(Card(heated, ("query: bright = strong match",)))
            if evidence.heat is not None:
                heated = overlay_heat(self._read_image(evidence).pixels, evidence.heat)
                cards.append(Card(heated, ("image: bright = strong match",)))
        except (ImageError, InputError) as error:
            cards, facts = [], [*facts, error.problem]
        return draw_gallery(f"{evidence.query_id} → {evidence.image_id}", cards, facts)

    @cached_property
    def _picture(self) -> Picture:
        source = self._query.source
        if source is None:
            raise InputError(
                f"the picture of the query {self._query.id!r} is not known",
                expected="a search for an image",
                actual="vectors, or a query without its image",
                fix="search for the image itself",
            )
        return _reduce(source if isinstance(source, Picture) else image_files.read(source, SIDE))

    def _read_query(self) -> Picture:
        """The query, with a box if only a part was searched for."""
        picture = self._picture
        width, height = self._query.size
        is_whole = self._query.outline == (0.0, 0.0, float(width), float(height))
        return picture if is_whole else replace(picture, pixels=_mark(picture, [self._query.outline]))

    def _read_image(self, evidence: Evidence) -> Picture:
        return self._read(evidence.image_id, self._paths[evidence.image_id])

    def _draw_hit(self, hit: Hit) -> "Pixels":
        return _mark(self._read(hit.id, hit.path), [hit.box, *hit.other_boxes])

    def _try_hit(self, hit: Hit) -> "Pixels | None":
        return _try(lambda: self._draw_hit(hit))

    def _hit_to_html(self, hit: Hit) -> str:
        from resight.explain.format import format_value
        from resight.explain.notebook import Card, draw_gallery

        facts = [str(hit.path), *_describe_box(hit)]
        facts += [f"{name}: {format_value(value)}" for name, value in hit.attributes.items()]
        return draw_gallery(f"{hit.id}: {_describe(hit)}", [Card(self._try_hit(hit))], facts)


def collection_to_html(title: str, records: Iterable[ImageRecord], images: int, notes: Sequence[str]) -> str:
    """Pictures of some of the images of a collection."""
    from resight.explain.notebook import Card, draw_gallery

    drawn = [(record.id, _try(partial(_read_pixels, record.id, record.path))) for record in records]
    cards = [Card(pixels, (id,)) for id, pixels in drawn if pixels is not None]
    shown = [f"the first {len(cards):,} are shown"] if 0 < len(cards) < images else []
    return draw_gallery(title, cards, [*shown, *notes])


def _read_pixels(name: str, path: Path) -> "Pixels":
    return _read(name, path).pixels


def _describe(found: Hit | Evidence) -> str:
    chance = format_probability(found.probability)
    return f"{chance} {format_verdict(found.probability)}" if found.probability is not None else "not calibrated"


def _describe_box(found: Hit | Evidence) -> list[str]:
    from resight.explain.format import format_box, format_origin

    if found.box is None:
        return []
    return [", ".join(filter(None, (f"box {format_box(found.box)}", format_origin(found.located_by))))]


def _try(draw: "Callable[[], Pixels]") -> "Pixels | None":
    """A notebook shows the rest where one picture is gone."""
    try:
        return draw()
    except (ImageError, InputError):
        return None


def _read(name: str, path: Path) -> Picture:
    return _reduce(image_files.read(ImageRef(name, path), SIDE))


def _reduce(picture: Picture) -> Picture:
    from resight.explain.draw import shrink

    return replace(picture, pixels=shrink(picture.pixels, SIDE))


def _mark(picture: Picture, boxes: Sequence[Box | None]) -> "Pixels":
    """The pixels with boxes, which are in pixels of the original."""
    from resight.explain.draw import draw_box

    pixels = picture.pixels
    x, y = pixels.shape[1] / picture.size[0], pixels.shape[0] / picture.size[1]
    for box in boxes:
        if box is not None:
            pixels = draw_box(pixels, (box[0] * x, box[1] * y, box[2] * x, box[3] * y))
    return pixels

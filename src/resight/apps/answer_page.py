"""The answer of a search and its query image in, a Section of a search page out."""

from pathlib import Path

import numpy as np

from resight.collection.answer import Answer
from resight.data import image_files
from resight.errors import ImageError
from resight.explain.search_page import THUMBNAIL, HitView, QueryView, Section
from resight.types import Hit, ImageRef

GONE = np.full((240, 320, 3), 200, np.uint8)  # shown for an image whose file is missing or unreadable


def make_section(answer: Answer, image: Path, title: str = "") -> Section:
    query = image_files.read(ImageRef(image.name, image), max_side=2 * THUMBNAIL)
    width, height = answer.query.size
    whole = answer.query.outline == (0, 0, width, height)
    outline = None if whole else answer.query.outline
    view = QueryView(image.name, query.pixels, query.size, outline, answer.query.attributes)
    hits = [_make_hit(answer, hit) for hit in answer.hits]
    details = {"Proof": answer.ranking.proof} if answer.ranking.proof else {}
    seconds = answer.ranking.seconds
    return Section(view, hits, title=title, details=details, seconds=seconds, position=answer.position)


def _make_hit(answer: Answer, hit: Hit) -> HitView:
    evidence = answer.explain(hit)
    try:
        picture = image_files.read(ImageRef(hit.id, hit.path), max_side=2 * THUMBNAIL)
    except ImageError:
        return HitView(hit, GONE, (GONE.shape[1], GONE.shape[0]))
    return HitView(hit, picture.pixels, picture.size, evidence)

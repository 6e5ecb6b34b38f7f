"""One query of an evaluation on a page: thumbnails with boxes, ranks, and what the wrong answer had over the right one.

In: an Example of a Summary. Out: a QueryView for the page's template.
"""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from resight.data import image_files
from resight.errors import ImageError
from resight.evaluate.pages.maps import QueryMap
from resight.evaluate.results import AnsweredImage
from resight.evaluate.summary import Example
from resight.types import Box, ImageRef

SIDE = 280  # of a thumbnail, in pixels
QUALITY = 78


@dataclass(frozen=True)
class Thumbnail:
    source: str  # data: URI
    width: int
    height: int
    size: tuple[int, int]  # of the original, which boxes refer to


@dataclass(frozen=True)
class Frame:
    """An image with its heading, signals and boxes."""

    name: str
    heading: str
    kind: str  # query | right | wrong
    thumbnail: Thumbnail | None
    box: Box | None = None
    true_box: Box | None = None
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class QueryView:
    name: str
    figure: str
    verdict: str
    frames: tuple[Frame, ...]
    map: QueryMap | None = None


@dataclass
class Thumbnails:
    """Reads each image once per page."""

    _known: dict[Path, Thumbnail | None] = field(default_factory=dict)

    def find(self, path: Path | None) -> Thumbnail | None:
        """None if the file is missing or cannot be read."""
        if path is None:
            return None
        if path not in self._known:
            self._known[path] = make_thumbnail(path)
        return self._known[path]


def view_query(query: Example, metric: str, thumbnails: Thumbnails, located: QueryMap | None = None) -> QueryView:
    itself = Frame(query.id, "Query", "query", thumbnails.find(query.path), box=query.box)
    answers = [_view_answer(answer, thumbnails) for answer in query.answers]
    return QueryView(query.id, f"{metric} {query.value:.3f}", describe_outcome(query), (itself, *answers), located)


def describe_outcome(query: Example) -> str:
    """In a sentence or two, the rank of the first positive, and the signals in which the first answer beat it."""
    first, answers = query.first_positive, query.answers
    positives = "its positive" if query.positives == 1 else f"the first of {query.positives} positives"
    if first is None:
        return f"None of {query.positives} positives is in the ranking."
    if first == 1:
        return f"Right at rank 1{_format_probability(answers[0])}."
    leader, found = answers[0], next((answer for answer in answers if answer.positive), None)
    sentence = f"{positives[0].upper()}{positives[1:]} came at rank {first}"
    if found is None:
        return f"{sentence}."
    differences = _compare(leader.signals, found.signals)
    ahead = f" The wrong first answer had {differences}." if differences else ""
    return f"{sentence}{_format_probability(found)}.{ahead}"


def make_thumbnail(path: Path) -> Thumbnail | None:
    try:
        picture = image_files.read(ImageRef(path.name, path), max_side=SIDE)
    except ImageError:
        return None
    file = io.BytesIO()
    Image.fromarray(picture.pixels).save(file, "JPEG", quality=QUALITY, optimize=True)
    height, width = picture.pixels.shape[:2]
    return Thumbnail(
        "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode(), width, height, picture.size
    )


def _view_answer(answer: AnsweredImage, thumbnails: Thumbnails) -> Frame:
    kind = "right" if answer.positive else "wrong"
    facts = [] if answer.probability is None else [("probability", f"{answer.probability:.2f}")]
    facts += [(name, f"{value:.3g}") for name, value in answer.signals.items()]
    return Frame(
        answer.id,
        f"Rank {answer.rank:,}, {kind}",
        kind,
        thumbnails.find(answer.path),
        answer.box,
        answer.true_box,
        tuple(facts),
    )


def _format_probability(answer: AnsweredImage) -> str:
    return "" if answer.probability is None else f", with a probability of {answer.probability:.2f}"


def _compare(leader: Mapping[str, float], found: Mapping[str, float]) -> str:
    pairs = {name: (f"{leader[name]:.3g}", f"{found[name]:.3g}") for name in leader if name in found}
    return ", ".join(f"{name} {first} against {second}" for name, (first, second) in pairs.items() if first != second)

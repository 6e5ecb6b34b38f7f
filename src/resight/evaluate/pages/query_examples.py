"""The queries that went best and worst: a RunResult in, plain values with ids, paths, boxes and signals out.

Queries are in the order of one metric, the first that tells them apart; equal ones in the order of the rank of their
first positive, then of their id.

One query of an evaluation as a page shows it: small pictures with boxes, ranks, and why answers are as they are.
"""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from resight.data import image_files
from resight.errors import ImageError
from resight.evaluate.pages.maps import QueryMap
from resight.evaluate.results import Answered, JudgedQuery, RunResult
from resight.types import Box, ImageRef

WORST, BEST = 6, 3


def list_examples(result: RunResult) -> dict[str, Any]:
    """{"metric", "worst": [query, …], "best": […]}; nothing where no query was judged."""
    metric = _choose_metric(result)
    known = [query for query in result.judged if not math.isnan(query.values.get(metric, math.nan)) and query.trace]
    ordered = sorted(known, key=lambda query: (query.values[metric], -_first(query), query.query_id))
    worst = ordered[:WORST]
    best = [query for query in reversed(ordered) if query not in worst][:BEST]
    return {
        "metric": metric,
        "worst": [_describe(query, metric) for query in worst],
        "best": [_describe(query, metric) for query in best],
    }


def _choose_metric(result: RunResult) -> str:
    """Average precision tells more queries apart than being right at rank 1 does: the metric with most values."""
    counts = {
        name: len(set(result.values(name))) for name in result.metrics if all(name in q.values for q in result.judged)
    }
    return max(counts, key=lambda name: counts[name], default="")


def _first(query: JudgedQuery) -> float:
    found = query.trace.first if query.trace else None
    return math.inf if found is None else found


def _describe(query: JudgedQuery, metric: str) -> dict[str, Any]:
    return {
        "id": query.query_id,
        "path": None if query.path is None else str(query.path),
        "box": query.box,
        "value": query.values[metric],
        "first_positive": query.trace.first if query.trace else None,
        "positives": len(query.trace.places) if query.trace else 0,
        "answers": [_describe_answer(answer) for answer in query.answers],
    }


def _describe_answer(answer: Answered) -> dict[str, Any]:
    return {
        "id": answer.id,
        "path": None if answer.path is None else str(answer.path),
        "rank": answer.rank,
        "positive": answer.positive,
        "probability": answer.probability,
        "box": answer.box,
        "true_box": answer.true_box,
        "signals": {name: float(value) for name, value in answer.signals.items()},
    }


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
    """A picture, what is known of it, and the boxes on it."""

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
    """Each picture is read once for a page."""

    _known: dict[str, Thumbnail | None] = field(default_factory=dict)

    def find(self, path: str | None) -> Thumbnail | None:
        """None where the file is not here, or cannot be read."""
        if path is None:
            return None
        if path not in self._known:
            self._known[path] = make_thumbnail(Path(path))
        return self._known[path]


def view_query(
    values: Mapping[str, Any], metric: str, thumbnails: Thumbnails, placed: QueryMap | None = None
) -> QueryView:
    """`values` as examples.py writes them."""
    asked = Frame(values["id"], "Query", "query", thumbnails.find(values["path"]), box=_box(values["box"]))
    answers = [_view_answer(answer, thumbnails) for answer in values["answers"]]
    return QueryView(values["id"], f"{metric} {values['value']:.3f}", format_verdict(values), (asked, *answers), placed)


def format_verdict(values: Mapping[str, Any]) -> str:
    """In a sentence or two, where the first positive came and what the first answer had over it."""
    first, answers = values["first_positive"], values["answers"]
    positives = "its positive" if values["positives"] == 1 else f"the first of {values['positives']} positives"
    if first is None:
        return f"None of {values['positives']} positives is in the ranking."
    if first == 1:
        return f"Right at rank 1{_say_chance(answers[0])}."
    leader, found = answers[0], next((answer for answer in answers if answer["positive"]), None)
    sentence = f"{positives[0].upper()}{positives[1:]} came at rank {first}"
    if found is None:
        return f"{sentence}."
    differences = _compare(leader["signals"], found["signals"])
    ahead = f" The wrong first answer had {differences}." if differences else ""
    return f"{sentence}{_say_chance(found)}.{ahead}"


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


def _view_answer(answer: Mapping[str, Any], thumbnails: Thumbnails) -> Frame:
    right = answer["positive"]
    facts = [] if answer["probability"] is None else [("probability", f"{answer['probability']:.2f}")]
    facts += [(name, f"{value:.3g}") for name, value in answer["signals"].items()]
    return Frame(
        answer["id"],
        f"Rank {answer['rank']:,}, {'right' if right else 'wrong'}",
        "right" if right else "wrong",
        thumbnails.find(answer["path"]),
        _box(answer["box"]),
        _box(answer["true_box"]),
        tuple(facts),
    )


def _say_chance(answer: Mapping[str, Any]) -> str:
    return "" if answer["probability"] is None else f", with a probability of {answer['probability']:.2f}"


def _compare(leader: Mapping[str, float], found: Mapping[str, float]) -> str:
    pairs = {name: (f"{leader[name]:.3g}", f"{found[name]:.3g}") for name in leader if name in found}
    return ", ".join(f"{name} {first} against {second}" for name, (first, second) in pairs.items() if first != second)


def _box(sides: Sequence[float] | None) -> Box | None:
    return None if sides is None else (sides[0], sides[1], sides[2], sides[3])

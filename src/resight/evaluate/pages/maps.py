"""The map of an embedding as a page shows it: plain values of an EmbeddingMap in, an SVG with its key out.

Points of at most eight labels are coloured by them, and queries are rings; otherwise queries and images have a colour
each. Every point says on hover what it is.

Queries and their answers on maps: the plain values of an evaluation in, figures for a page out.

Positions are {"queries": {id: {"lat", "lon", "heading"}}, "database": {…}}, as report.py writes them.
"""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from resight.explain.format import format_metres, measure_distance
from resight.explain.map import Mark, draw_map
from resight.explain.tiles import Tiles
from resight.geodesy import Position

SIZE, EDGE = 1000, 24
COLOURS = 8


@dataclass(frozen=True)
class MapView:
    caption: str
    svg: Markup
    key: list[tuple[str, str]]  # class of the sample, and its words


def view_map(values: Mapping[str, Any], label: str) -> MapView:
    points = values["points"]
    labels = [name for name, _ in Counter(point["label"] for point in points if point["label"]).most_common()]
    coloured = 1 < len(labels) <= COLOURS
    marks = [_draw_point(point, _choose_kind(point, labels, coloured)) for point in sorted(points, key=_above)]
    images, queries = (sum(point["kind"] == kind for point in points) for kind in ("database", "query"))
    key = [(f"group-{number}", name) for number, name in enumerate(labels)] if coloured else [("group-0", "database")]
    key += [("ring", "query")] if queries else []
    part = "" if len(points) == values["total"] else f", of {values['total']:,} in all"
    caption = f"{images:,} images and {queries:,} queries{part}, as {label} sees them: {values['method']}"
    svg = (
        f'<svg class="map" viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{html.escape(caption)}">'
        f"{''.join(marks)}</svg>"
    )
    return MapView(caption, Markup(svg), key)


def _above(point: Mapping[str, Any]) -> bool:
    """Queries are drawn over images."""
    return bool(point["kind"] == "query")


def _choose_kind(point: Mapping[str, Any], labels: Sequence[str], coloured: bool) -> str:
    group = f"group-{labels.index(point['label'])}" if coloured and point["label"] else "group-0"
    return f"{group} ring" if point["kind"] == "query" else group


def _draw_point(point: Mapping[str, Any], kind: str) -> str:
    x, y = (EDGE + (SIZE - 2 * EDGE) * point[side] for side in ("x", "y"))
    words = ", ".join(part for part in (point["id"], point["label"], point["kind"]) if part)
    radius = 9 if "ring" in kind else 8
    return f'<circle class="{kind}" cx="{x:.0f}" cy="{y:.0f}" r="{radius}"><title>{html.escape(words)}</title></circle>'


MOST = 2000  # queries on one map; of more, every second, third, …


@dataclass(frozen=True)
class QueryMap:
    """Where one query was taken and where its answers were."""

    sentence: str
    figure: Markup


def map_query(
    values: Mapping[str, Any], positions: Mapping[str, Any], anchor: str, tiles: Tiles | None = None
) -> QueryMap | None:
    """`values` as examples.py writes them; None where the query or all of its answers have no position."""
    taken = positions.get("queries", {}).get(values["id"])
    known = [(answer, positions["database"].get(answer["id"])) for answer in values["answers"]] if taken else []
    placed = [(answer, spot) for answer, spot in known if spot]
    if not placed:
        return None
    truth = _position(taken)
    marks = [
        Mark(
            "right" if answer["positive"] else "wrong",
            _position(spot),
            answer["id"],
            f"{answer['rank']}",
            spot["heading"],
            note="right" if answer["positive"] else "wrong",
        )
        for answer, spot in placed
    ]
    query = Mark("truth", truth, f"Query {values['id']}", heading=taken["heading"])
    best, spot = placed[0]
    distance = format_metres(measure_distance(truth, _position(spot)))
    sentence = f"Answer {best['rank']} was taken {distance} from the query."
    figure = draw_map([query, *marks], f"Where {values['id']} and its answers were taken", anchor, tiles=tiles)
    return None if figure is None else QueryMap(sentence, figure)


def map_all(evaluation: Mapping[str, Any], anchor: str, tiles: Tiles | None = None) -> Markup | None:
    """Every query where it was taken, right or wrong; None where no position is known."""
    positions = evaluation.get("positions") or {}
    taken = positions.get("queries", {})
    queries = [query for query in evaluation["per_query"] if query["id"] in taken]
    step = -(-len(queries) // MOST) or 1
    marks = [
        Mark(_judge(query), _position(taken[query["id"]]), query["id"], note=_tell(query, positions))
        for query in queries[::step]
    ]
    return draw_map(marks, "Where the queries were taken", anchor, _describe(queries, positions, step), tiles)


def _judge(query: Mapping[str, Any]) -> str:
    """A query that nothing in the database answers can be neither right nor wrong."""
    if not query.get("judged", True):
        return "open"
    return "right" if query["first_positive"] == 1 else "wrong"


def _tell(query: Mapping[str, Any], positions: Mapping[str, Any]) -> str:
    words = {"right": "right", "wrong": "wrong", "open": "nothing to be found"}[_judge(query)]
    error = _find_error(query, positions)
    return words if error is None else f"{words}: the best answer is {format_metres(error)} away"


def _describe(queries: Sequence[Mapping[str, Any]], positions: Mapping[str, Any], step: int) -> str:
    judged = [query for query in queries if _judge(query) != "open"]
    right = sum(_judge(query) == "right" for query in judged)
    sentences = [f"{right:,} of {len(judged):,} queries are right at rank 1."]
    errors = [error for query in queries if (error := _find_error(query, positions)) is not None]
    if errors:
        half, most = (format_metres(float(np.quantile(errors, share))) for share in (0.5, 0.9))
        sentences.append(
            f"The best answer was taken {half} from its query or less for half of {len(errors):,} queries,"
        )
        sentences.append(f"and {most} or less for nine in ten.")
    if step > 1:
        sentences.append(f"One query in {step} is shown.")
    return " ".join(sentences)


def _find_error(query: Mapping[str, Any], positions: Mapping[str, Any]) -> float | None:
    """Metres from a query to its best answer."""
    spot = positions["database"].get(query["best"])
    return None if spot is None else measure_distance(_position(positions["queries"][query["id"]]), _position(spot))


def _position(spot: Mapping[str, float]) -> Position:
    return spot["lat"], spot["lon"]

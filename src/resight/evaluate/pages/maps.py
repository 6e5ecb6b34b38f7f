"""Maps on a page: the embedding of the images, and the positions of queries and answers.

In: a Summary or parts of one. Out: SVG figures. On the embedding, points of at most eight labels are coloured by them
and queries are rings; otherwise queries and images have one colour each. Every point shows its label on hover. On the
map of the Earth, queries are right, wrong, or open if the database holds no positive.
"""

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from resight.evaluate.results import EmbeddingMap, GeoPosition, Point
from resight.evaluate.summary import Example, QuerySummary, Summary
from resight.explain.format import format_metres, measure_distance
from resight.explain.map import Mark, draw_map
from resight.explain.tiles import Tiles
from resight.geodesy import Position

SIZE, EDGE = 1000, 24
COLOURS = 8
MOST = 2000  # queries on one map; of more, every second, third, …


@dataclass(frozen=True)
class EmbeddingView:
    caption: str
    svg: Markup
    key: list[tuple[str, str]]  # CSS class of the sample, and its words


@dataclass(frozen=True)
class QueryMap:
    """Positions of one query and of its answers."""

    sentence: str
    figure: Markup


def draw_embedding(embedding: EmbeddingMap, label: str) -> EmbeddingView:
    points = embedding.points
    labels = [name for name, _ in Counter(point.label for point in points if point.label).most_common()]
    coloured = 1 < len(labels) <= COLOURS
    ordered = sorted(points, key=lambda point: point.kind == "query")  # queries over images
    marks = [_draw_point(point, _choose_class(point, labels, coloured)) for point in ordered]
    images, queries = (sum(point.kind == kind for point in points) for kind in ("database", "query"))
    key = [(f"group-{number}", name) for number, name in enumerate(labels)] if coloured else [("group-0", "database")]
    key += [("ring", "query")] if queries else []
    part = "" if len(points) == embedding.total else f", of {embedding.total:,} in all"
    caption = f"{images:,} images and {queries:,} queries{part}, as {label} sees them: {embedding.method}"
    svg = (
        f'<svg class="map" viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{html.escape(caption)}">'
        f"{''.join(marks)}</svg>"
    )
    return EmbeddingView(caption, Markup(svg), key)  # nosec B704  # our own SVG, style or script; its texts are escaped


def map_example(query: Example, summary: Summary, anchor: str, tiles: Tiles | None = None) -> QueryMap | None:
    """None if the query or all of its answers have no position."""
    taken = summary.query_positions.get(query.id)
    known = [(answer, summary.image_positions.get(answer.id)) for answer in query.answers] if taken else []
    located = [(answer, position) for answer, position in known if position]
    if taken is None or not located:
        return None
    marks = [
        Mark(
            "right" if answer.positive else "wrong",
            _position(position),
            answer.id,
            f"{answer.rank}",
            position.heading,
            note="right" if answer.positive else "wrong",
        )
        for answer, position in located
    ]
    truth = Mark("truth", _position(taken), f"Query {query.id}", heading=taken.heading)
    best, position = located[0]
    distance = format_metres(measure_distance(_position(taken), _position(position)))
    sentence = f"Answer {best.rank} was taken {distance} from the query."
    figure = draw_map([truth, *marks], f"Where {query.id} and its answers were taken", anchor, tiles=tiles)
    return None if figure is None else QueryMap(sentence, figure)


def map_queries(summary: Summary, anchor: str, tiles: Tiles | None = None) -> Markup | None:
    """Every query at its position, right or wrong; None if no position is known."""
    taken = summary.query_positions
    queries = [query for query in summary.queries if query.id in taken]
    step = -(-len(queries) // MOST) or 1
    marks = [
        Mark(_judge(query), _position(taken[query.id]), query.id, note=_describe_query(query, summary))
        for query in queries[::step]
    ]
    return draw_map(marks, "Where the queries were taken", anchor, _describe_all(queries, summary, step), tiles)


def _choose_class(point: Point, labels: Sequence[str], coloured: bool) -> str:
    group = f"group-{labels.index(point.label)}" if coloured and point.label else "group-0"
    return f"{group} ring" if point.kind == "query" else group


def _draw_point(point: Point, css_class: str) -> str:
    x, y = (EDGE + (SIZE - 2 * EDGE) * side for side in (point.x, point.y))
    words = html.escape(", ".join(part for part in (point.id, point.label, point.kind) if part))
    radius = 9 if "ring" in css_class else 8
    return f'<circle class="{css_class}" cx="{x:.0f}" cy="{y:.0f}" r="{radius}"><title>{words}</title></circle>'


def _judge(query: QuerySummary) -> str:
    """A query without a positive in the database is neither right nor wrong."""
    if not query.judged:
        return "open"
    return "right" if query.first_positive == 1 else "wrong"


def _describe_query(query: QuerySummary, summary: Summary) -> str:
    words = {"right": "right", "wrong": "wrong", "open": "nothing to find"}[_judge(query)]
    error = _find_error(query, summary)
    return words if error is None else f"{words}: the best answer is {format_metres(error)} away"


def _describe_all(queries: Sequence[QuerySummary], summary: Summary, step: int) -> str:
    judged = [query for query in queries if _judge(query) != "open"]
    right = sum(_judge(query) == "right" for query in judged)
    sentences = [f"{right:,} of {len(judged):,} queries are right at rank 1."]
    errors = [error for query in queries if (error := _find_error(query, summary)) is not None]
    if errors:
        half, most = (format_metres(float(np.quantile(errors, share))) for share in (0.5, 0.9))
        sentences.append(
            f"The best answer was taken {half} from its query or less for half of {len(errors):,} queries,"
        )
        sentences.append(f"and {most} or less for nine in ten.")
    if step > 1:
        sentences.append(f"One query in {step} is shown.")
    return " ".join(sentences)


def _find_error(query: QuerySummary, summary: Summary) -> float | None:
    """Metres from a query to its first answer."""
    position = summary.image_positions.get(query.best)
    if position is None:
        return None
    return measure_distance(_position(summary.query_positions[query.id]), _position(position))


def _position(position: GeoPosition) -> Position:
    return position.lat, position.lon

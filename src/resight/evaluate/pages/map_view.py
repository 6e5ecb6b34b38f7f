"""The map of an embedding as a page shows it: plain values of an EmbeddingMap in, an SVG with its key out.

Points of at most eight labels are coloured by them, and queries are rings; otherwise queries and images have a colour
each. Every point says on hover what it is.
"""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

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

"""One HTML page per search or set of searches: the answers, where the object is in them, and why.

In: the pixels of query and answers, with their Hit and Evidence. Out: the text of a self-contained page: its pictures
are data: URIs, it contacts no server (but that of map tiles), and it reads in full without script. Boxes and points are
in pixels of the originals; the pixels given may be fewer than `size`, the original's width and height.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

import jinja2
import numpy as np
from markupsafe import Markup

from resight.explain.draw import Pixels, choose_pairs, draw_match, embed, mark, overlay_heat, shrink
from resight.explain.format import (
    format_box,
    format_origin,
    format_score,
    format_time,
    format_value,
)
from resight.explain.map import SCRIPT as MAP_SCRIPT
from resight.explain.map import STYLE as MAP_STYLE
from resight.explain.map import draw_answers
from resight.explain.tiles import Tiles
from resight.files.fingerprint import csp_hash
from resight.files.remote import to_url
from resight.geodesy import PositionEstimate
from resight.probability_words import format_probability, format_verdict, is_likely
from resight.types import Attribute, Box, Evidence, Hit, TokenMatches

THUMBNAIL = 640  # longest side, in pixels
LINES = 60
GEOMETRY = {
    "homography": "flat surface (a homography)",
    "similarity": "shift, scale and rotation (a similarity)",
    "fundamental": "solid scene (a fundamental matrix)",
}


@dataclass(frozen=True)
class QueryView:
    name: str
    pixels: Pixels
    size: tuple[int, int]
    box: Box | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)  # e.g. lat, lon and heading


@dataclass(frozen=True)
class HitView:
    hit: Hit
    pixels: Pixels
    size: tuple[int, int]
    evidence: Evidence | None = None


@dataclass(frozen=True)
class Section:
    """One query with its answers in rank order."""

    query: QueryView
    hits: Sequence[HitView]
    title: str = ""  # default: the query's name
    details: Mapping[str, Attribute] = field(default_factory=dict)  # of the search
    seconds: Mapping[str, float] = field(default_factory=dict)  # stage → time
    position: PositionEstimate | None = None  # of the query, estimated from the answers


@dataclass(frozen=True)
class Frame:
    """A picture for the template."""

    source: str  # data: URI
    width: int  # of the picture
    height: int
    alt: str
    size: tuple[int, int] = (0, 0)  # of the original, whose pixels `box` counts
    box: Box | None = None
    region: Box | None = None  # from which the box was found
    caption: str = ""
    wide: bool = False  # two pictures side by side


def render(
    query: QueryView,
    hits: Sequence[HitView],
    title: str = "Search",
    details: Mapping[str, Attribute] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> str:
    """The page of one search."""
    return render_many(title, [Section(query, hits, details=details or {}, seconds=seconds or {})])


def render_many(title: str, sections: Sequence[Section], tiles: Tiles | None = None) -> str:
    """The page of several searches, one below the other. With `tiles`, it loads pictures from their server."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["digest"] = csp_hash
    template = environment.from_string((resources.files(__package__) / "search_page.html").read_text(encoding="utf-8"))
    return template.render(
        title=title,
        sections=[_lay_out(section, number, tiles) for number, section in enumerate(sections, start=1)],
        tile_server=tiles.origin if tiles else "",
        map_style=Markup(MAP_STYLE),  # nosec B704  # our own SVG, style or script; its texts are escaped
        map_script=Markup(MAP_SCRIPT),  # nosec B704  # our own SVG, style or script; its texts are escaped
    )


def _lay_out(section: Section, number: int, tiles: Tiles | None) -> dict[str, object]:
    query = section.query
    heading = section.title or query.name
    hits = [view.hit for view in section.hits]
    return {
        "heading": heading,
        "name": query.name if query.name != heading else "",
        "query": _frame(query.pixels, query.size, query.box, f"Query: {query.name}"),
        "details": {name: format_value(value) for name, value in section.details.items()}
        | ({"Time": format_time(sum(section.seconds.values()))} if section.seconds else {})
        | {stage.capitalize(): format_time(seconds) for stage, seconds in section.seconds.items()},
        "likely": sum(is_likely(view.hit.probability) for view in section.hits),
        "calibrated": any(view.hit.probability is not None for view in section.hits),
        "map": draw_answers(hits, section.position, query.attributes, f"map-{number}", f"#answer-{number}-", tiles),
        "cards": [_card(rank, view, section) for rank, view in enumerate(section.hits, start=1)],
    }


def _card(rank: int, view: HitView, section: Section) -> dict[str, object]:
    hit, evidence = view.hit, view.evidence or Evidence("", view.hit.id)
    box, region = hit.box or evidence.box, evidence.region
    facts = {"Score": format_score(hit.score)}
    if evidence.match:
        tentative = f" of {evidence.match.tentative} matches" if evidence.match.tentative else ""
        facts["Inliers"] = f"{evidence.match.inliers}{tentative}"
    if box:
        facts["Box"] = format_box(box)
    if origin := format_origin(hit.located_by or evidence.located_by):
        facts["Located by"] = origin
    if region and region != box:
        facts["Region"] = f"{format_box(region)}, dashed"
    return {
        "rank": rank,
        "id": hit.id,
        "path": to_url(hit.path) if str(hit.path) != hit.id else "",
        "frame": _frame(view.pixels, view.size, box, f"Answer {rank}: {hit.id}", region),
        "chance": format_probability(hit.probability),
        "percent": f"{100 * min(max(hit.probability or 0.0, 0.0), 1.0):.1f}",
        "verdict": format_verdict(hit.probability),
        "likely": is_likely(hit.probability),
        "calibrated": hit.probability is not None,
        "facts": facts,
        "attributes": {name: format_value(value) for name, value in hit.attributes.items()},
        "stages": [(stage, format_score(score)) for stage, score in hit.stages.items()],
        "figures": _figures(view, evidence, section.query),
    }


def _figures(view: HitView, evidence: Evidence, query: QueryView) -> list[Frame]:
    """The pictures that explain the answer."""
    figures, small = [], shrink(view.pixels, THUMBNAIL)
    if evidence.match:
        match = evidence.match
        picture = draw_match(shrink(query.pixels, THUMBNAIL), small, match, query.size, view.size, LINES)
        shown = min(LINES, len(match.points))
        caption = (
            f"Query on the left, answer on the right. The lines show {shown} of {len(match.points)} "
            f"matching points that agree with one {GEOMETRY.get(match.model, match.model)}."
        )
        figures.append(_figure(picture, f"Match lines between the query and {view.hit.id}", caption, wide=True))
    if evidence.query_heat is not None:
        caption = "Query: which parts appear in the answer. Dark = no match, bright = strong match."
        heated = overlay_heat(shrink(query.pixels, THUMBNAIL), evidence.query_heat)
        figures.append(_figure(heated, f"Heat map over the query: parts that {view.hit.id} shows", caption))
    if evidence.heat is not None:
        caption = "Answer: where it matches the query. Dark = no match, bright = strong match."
        figures.append(_figure(overlay_heat(small, evidence.heat), f"Heat map over {view.hit.id}", caption))
    if evidence.tokens is not None:
        figures += _mark_both(view, query, evidence.tokens)
    return figures


def _mark_both(view: HitView, query: QueryView, tokens: TokenMatches) -> list[Frame]:
    """Query and answer with the same number on matching parts; empty if no parts match."""
    pairs = choose_pairs(tokens)
    if not len(pairs):
        return []
    left = mark(shrink(query.pixels, THUMBNAIL), tokens.query_seeds[pairs[:, 0]], query.size)
    right = mark(shrink(view.pixels, THUMBNAIL), tokens.image_seeds[pairs[:, 1]], view.size)
    best = "best matching part" if len(pairs) == 1 else f"{len(pairs)} best matching parts"
    return [
        _figure(left, f"The query with the {best}, numbered", f"Query: the {best}."),
        _figure(right, f"{view.hit.id} with the matching parts", "Answer: the matching parts, with the same numbers."),
    ]


def _frame(pixels: Pixels, size: tuple[int, int], box: Box | None, alt: str, region: Box | None = None) -> Frame:
    """A thumbnail with the boxes, cut at the edges of the image."""
    small = shrink(pixels, THUMBNAIL)
    inside = _clip(box, size)
    first = _clip(region, size) if region != box else None
    return Frame(embed(small), small.shape[1], small.shape[0], alt, size, inside, first)


def _clip(box: Box | None, size: tuple[int, int]) -> Box | None:
    if box is None:
        return None
    x0, x1 = np.clip((box[0], box[2]), 0.0, size[0]).tolist()
    y0, y1 = np.clip((box[1], box[3]), 0.0, size[1]).tolist()
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _figure(pixels: Pixels, alt: str, caption: str, wide: bool = False) -> Frame:
    small = shrink(pixels, 2 * THUMBNAIL if wide else THUMBNAIL)
    return Frame(embed(small), small.shape[1], small.shape[0], alt, caption=caption, wide=wide)

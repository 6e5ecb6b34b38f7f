"""A map for a page, without a server: marks in, a <figure> with a table of all marks out.

`draw_answers` shows where the answers of a search were taken, and the query's estimate; `draw_map` draws any marks. The
page includes STYLE and, if it may run script, SCRIPT, which keeps the middle in sight while the reader zooms; without
script the map lacks nothing else. Positions are shares of the map's width and height and marks are in pixels, so that
marks and labels keep their size on every screen and at every zoom. The map has its own colours, the same on all pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import hypot, sqrt

import jinja2
from markupsafe import Markup

from resight.explain.format import format_metres, format_position, measure_distance
from resight.explain.projection import Projection, declutter, draw_grid, fit, round_down
from resight.explain.tiles import Tiles, list_tiles
from resight.geodesy import Position, PositionEstimate, find_number, find_position
from resight.probability_words import format_probability, format_verdict
from resight.types import Attribute, Hit

RATIO = 4 / 3  # width to height, as in STYLE
BAR = 0.3  # most of the width that the scale bar takes
NARROW = 350.0  # pixels of about the narrowest map: marks that do not touch there never touch
DISC = 10.5  # radius of a numbered mark, in pixels
ABOVE = {"estimate": 1, "guess": 1, "truth": 2}  # marks drawn above the others, the highest number last
WIDE_CIRCLE = 2.0  # radius in spreads of the marks beyond which the edge may cut a circle
KEY = {  # kind of mark → label, in the order of the key
    "truth": "where the query was taken",
    "estimate": "estimate, with its circle",
    "guess": "best guess; the place is unknown",
    "very-likely": "answer, very likely",
    "likely": "answer, likely",
    "unlikely": "answer, unlikely",
    "very-unlikely": "answer, very unlikely",
    "answer": "answer",
    "right": "right",
    "wrong": "wrong",
    "open": "nothing to find",
}


@dataclass(frozen=True)
class Mark:
    kind: str  # a key of KEY
    position: Position
    name: str
    label: str = ""  # a rank, written into the mark
    heading: float | None = None  # degrees from north, clockwise
    metres: float = 0.0  # radius of the circle around it
    note: str = ""  # e.g. a probability
    link: str = ""  # to the details, on the same page


def draw_answers(
    hits: Sequence[Hit],
    estimate: PositionEstimate | None,
    query: Mapping[str, Attribute],
    anchor: str,
    link: str = "",
    tiles: Tiles | None = None,
) -> Markup | None:
    """The map of a search; None if no answer has a position. `query`: attributes. `link` + rank leads to an answer."""
    answers = [
        Mark(
            _kind(hit.probability),
            position,
            hit.id,
            str(rank),
            find_number(hit.attributes, "heading"),
            note="" if hit.probability is None else format_probability(hit.probability),
            link=f"{link}{rank}" if link else "",
        )
        for rank, hit in enumerate(hits, start=1)
        if (position := find_position(hit.attributes))
    ]
    if not answers:
        return None
    marks = [*_mark_query(estimate, query), *answers]
    return draw_map(
        marks, "Where the answers are", anchor, describe_position(estimate, query, len(hits) - len(answers)), tiles
    )


def describe_position(estimate: PositionEstimate | None, query: Mapping[str, Attribute], unknown: int = 0) -> str:
    """The estimate in words, its error if known, and how many answers the map leaves out."""
    sentences = []
    if estimate is not None:
        place = format_position((estimate.lat, estimate.lon))
        known = f"Probability that the collection shows this place: {format_probability(estimate.probability)}."
        if estimate.known:
            circle = f"within {format_metres(estimate.metres)} ({estimate.coverage:.0%})"
            sentences.append(f"Estimated at {place}, {circle}. {known}")
        else:
            sentences.append(f"Position unknown. {known}")
            sentences.append(f"Best guess: {place}.")
    taken = find_position(query)
    if taken and estimate is not None:
        error = format_metres(measure_distance(taken, (estimate.lat, estimate.lon)))
        sentences.append(f"The query's own position is {error} away.")
    if unknown:
        sentences.append(f"{unknown} {'answer has' if unknown == 1 else 'answers have'} no position.")
    return " ".join(sentences)


def _mark_query(estimate: PositionEstimate | None, query: Mapping[str, Attribute]) -> list[Mark]:
    marks = []
    if taken := find_position(query):
        marks.append(Mark("truth", taken, "Query, own position", heading=find_number(query, "heading")))
    if estimate is not None:
        kind = "estimate" if estimate.known else "guess"
        words = f"± {format_metres(estimate.metres)} ({estimate.coverage:.0%})"
        name = "Estimated position of the query" if estimate.known else "Best guess for the query"
        marks.append(Mark(kind, (estimate.lat, estimate.lon), name, metres=estimate.metres, note=words))
    return marks


def _kind(probability: float | None) -> str:
    return "answer" if probability is None else format_verdict(probability).replace(" ", "-")


def draw_map(
    marks: Sequence[Mark], name: str, anchor: str, caption: str = "", tiles: Tiles | None = None
) -> Markup | None:
    """A figure with these marks; None without any. `anchor` is the id of the figure.

    The table gives distances from the first mark of kind truth, else estimate, if there is one.
    """
    if not marks:
        return None
    shown = _choose_extent(marks)
    layer = list_tiles(tiles, shown) if tiles else []
    origin = next((mark for kind in ("truth", "estimate") for mark in marks if mark.kind == kind), None)
    down, across = draw_grid(shown)
    bar = round_down(BAR * shown.width)
    centre = shown.project(next((mark for mark in marks if mark.kind == "estimate"), marks[0]).position)
    return Markup(  # nosec B704  # our own SVG, style or script; its texts are escaped
        _read_template().render(
            name=name,
            anchor=anchor,
            caption=caption,
            summary=_summarise(name, marks, shown),
            attribution=tiles.attribution if tiles and layer else "",
            tiles=layer,
            down=down,
            across=across,
            bar=(bar / shown.width, format_metres(bar)),
            centre=centre,
            marks=_lay_out(marks, shown),
            key=[(kind, words) for kind, words in KEY.items() if any(mark.kind == kind for mark in marks)],
            headings=any(mark.heading is not None for mark in marks),
            rows=[_tabulate(mark, origin) for mark in marks],
            origin=origin and {"truth": "the query", "estimate": "the estimate"}[origin.kind],
        )
    )


def _choose_extent(marks: Sequence[Mark]) -> Projection:
    """Shows all marks, and those circles that do not push the marks together."""
    positions = [mark.position for mark in marks]
    tight = fit(positions, RATIO)
    most = WIDE_CIRCLE * hypot(tight.width, tight.height) / 2
    return fit(positions, RATIO, [mark.metres if mark.metres <= most else 0.0 for mark in marks])


def _lay_out(marks: Sequence[Mark], shown: Projection) -> list[dict[str, object]]:
    """Moves numbered marks aside where they would cover each other; the others are too small to need it.

    Later ones are drawn over earlier ones, so that the best answer, the estimate and the truth stay visible.
    """
    at = [shown.project(mark.position) for mark in marks]
    spots = [(x * NARROW, y * NARROW / RATIO) for x, y in at]
    numbered = [number for number, mark in enumerate(marks) if mark.label]
    fixed = [spots[number] for number, mark in enumerate(marks) if mark.kind in ABOVE]
    offsets = declutter([spots[number] for number in numbered], DISC, (NARROW, NARROW / RATIO), fixed)
    aside = dict(zip(numbered, offsets, strict=True))
    return [
        {
            "mark": marks[number],
            "x": at[number][0],
            "y": at[number][1],
            "aside": aside.get(number, (0.0, 0.0)),
            # SVG takes a radius as a share of the diagonal divided by √2.
            "radius": marks[number].metres / (hypot(shown.width, shown.height) / sqrt(2)),
        }
        for number in sorted(range(len(marks)), key=lambda number: (ABOVE.get(marks[number].kind, 0), -number))
    ]


def _tabulate(mark: Mark, origin: Mark | None) -> dict[str, object]:
    distance = (
        "" if origin is None or mark is origin else format_metres(measure_distance(origin.position, mark.position))
    )
    return {
        "mark": mark,
        "position": format_position(mark.position),
        "heading": "" if mark.heading is None else f"{mark.heading % 360:.0f}°",
        "distance": distance,
    }


def _summarise(name: str, marks: Sequence[Mark], shown: Projection) -> str:
    """For readers who do not see the map: how many positions, over which distance."""
    positions = "1 position" if len(marks) == 1 else f"{len(marks):,} positions"
    return f"{name}: {positions} over {format_metres(shown.width)} from west to east. The table below lists all."


def _read_template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["share"] = _format_share
    return environment.from_string((resources.files(__package__) / "map.html").read_text(encoding="utf-8"))


def _format_share(value: float) -> str:
    return f"{100 * value:.2f}%"


STYLE = """
.geo { --geo-paper: #fbfbf9; --geo-line: #dfe0da; --geo-ink: #1a1d1f; --geo-soft: #575d61; --geo-edge: #85887f;
  --geo-4: #0b5f5a; --geo-4-ink: #ffffff; --geo-3: #7cc4bb; --geo-3-ink: #10201f; --geo-2: #d5d9d6;
  --geo-2-ink: #1a1d1f; --geo-1: #fbfbf9; --geo-right: #0b6b66; --geo-wrong: #b3261e; --geo-sign: #ffffff;
  --geo-estimate: #a83e00; --geo-truth: #5b2fb0; margin: 0; min-width: 0; container-type: inline-size; }
@media (prefers-color-scheme: dark) {
  .geo { --geo-paper: #14181a; --geo-line: #2a3134; --geo-ink: #edf0f0; --geo-soft: #a9b2b5; --geo-edge: #757f83;
    --geo-4: #67d6c8; --geo-4-ink: #08201d; --geo-3: #24726a; --geo-3-ink: #ffffff; --geo-2: #434c50;
    --geo-2-ink: #f4f6f6; --geo-1: #14181a; --geo-right: #67d6c8; --geo-wrong: #ff9c92; --geo-sign: #14181a;
    --geo-estimate: #ffb061; --geo-truth: #c9b3ff; }
}
.geo-body { display: grid; gap: .8rem; }
.geo-side { display: grid; gap: .8rem; align-content: start; }
.geo-key { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; font-size: .85rem; color: var(--geo-soft); margin: 0;
  padding: 0; list-style: none; }
@container (min-width: 44rem) {
  .geo-body { grid-template-columns: minmax(0, 40rem) minmax(13rem, 1fr); gap: 1.5rem; }
  .geo-key { flex-direction: column; }
}
.geo-key li { display: inline-flex; align-items: center; gap: .4rem; }
.geo-key svg { width: 18px; height: 18px; flex: none; overflow: visible; }
.geo-zoom { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem; align-items: center;
  font-size: .8rem; color: var(--geo-soft); }
.geo-zoom legend { float: left; padding: 0; margin-right: .2rem; }
.geo-zoom label { position: relative; cursor: pointer; }
.geo-zoom input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
.geo-zoom span { display: grid; place-items: center; min-width: 2.1rem; min-height: 2.2rem; border-radius: 8px;
  border: 1px solid var(--geo-edge); background: var(--geo-paper); color: var(--geo-ink); }
.geo-zoom input:checked + span { background: var(--geo-ink); color: var(--geo-paper); border-color: var(--geo-ink); }
.geo-zoom input:focus-visible + span { outline: 3px solid var(--geo-right); outline-offset: 2px; }
.geo-frame { overflow: auto; border: 1px solid var(--geo-line); border-radius: 12px; background: var(--geo-paper);
  aspect-ratio: 4 / 3; position: relative; scrollbar-width: thin; }
.geo-map { display: block; width: 100%; aspect-ratio: 4 / 3; overflow: hidden; }
.geo:has(.geo-2:checked) .geo-map { width: 200%; }
.geo:has(.geo-4:checked) .geo-map { width: 400%; }
.geo:has(.geo-8:checked) .geo-map { width: 800%; }
.geo-map svg { overflow: visible; }
.geo-map text { font: 500 11px/1 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif;
  fill: var(--geo-soft); }
.geo-map .geo-words { paint-order: stroke; stroke: var(--geo-paper); stroke-width: 4px; stroke-linejoin: round; }
.geo-map .geo-grid { stroke: var(--geo-line); stroke-width: 1; }
.geo-map .geo-bar { stroke: var(--geo-ink); stroke-width: 2; fill: none; }
.geo-map .geo-north { fill: var(--geo-soft); }
.geo-mark circle, .geo-mark rect { stroke: var(--geo-paper); stroke-width: 1; }
.geo-mark text { font-weight: 650; text-anchor: middle; }
.geo-mark a { cursor: pointer; }
.geo .geo-mark .geo-dot { fill: var(--geo-soft); stroke: none; }
.geo-leader { stroke: var(--geo-soft); stroke-width: 1.2; }
.geo-ray { fill: var(--geo-soft); stroke: var(--geo-paper); stroke-width: 1; }
.geo .very-likely circle { fill: var(--geo-4); } .geo .very-likely text { fill: var(--geo-4-ink); }
.geo .likely circle { fill: var(--geo-3); stroke: var(--geo-edge); } .geo .likely text { fill: var(--geo-3-ink); }
.geo .unlikely circle, .geo .answer circle { fill: var(--geo-2); stroke: var(--geo-edge); stroke-width: 1; }
.geo .unlikely text, .geo .answer text { fill: var(--geo-2-ink); }
.geo .very-unlikely circle { fill: var(--geo-1); stroke: var(--geo-edge); stroke-width: 1; }
.geo .very-unlikely text { fill: var(--geo-ink); }
.geo .right circle { fill: var(--geo-right); } .geo .wrong rect { fill: var(--geo-wrong); }
.geo .right text, .geo .wrong text { fill: var(--geo-sign); }
.geo .open circle { fill: var(--geo-paper); stroke: var(--geo-edge); stroke-width: 1.5; }
.geo .estimate circle { fill: var(--geo-estimate); stroke: var(--geo-paper); stroke-width: 2; }
.geo .guess circle { fill: var(--geo-paper); stroke: var(--geo-estimate); stroke-width: 3; }
.geo .geo-circle { fill: var(--geo-estimate); fill-opacity: .13; stroke: var(--geo-estimate); stroke-width: 1.5; }
.geo .geo-circle.guess { fill-opacity: .05; stroke-dasharray: 5 4; }
.geo .truth .geo-ray { fill: var(--geo-truth); stroke: var(--geo-paper); stroke-width: 1; }
.geo .truth path:not(.geo-ray) { fill: none; stroke: var(--geo-truth); stroke-width: 3.5; stroke-linecap: round; }
.geo .truth path.geo-casing { stroke: var(--geo-paper); stroke-width: 7; }
.geo .geo-mark:hover circle, .geo .geo-mark:hover rect { stroke: var(--geo-ink); stroke-width: 2.5; }
.geo figcaption { color: var(--geo-ink); font-size: .95rem; font-weight: 400; padding: 0; max-width: 40rem; }
.geo-credit { font-size: .8rem; color: var(--geo-soft); margin: 0; }
.geo-table { overflow-x: auto; }
.geo-table table { max-width: none; width: 100%; }
.geo-table th, .geo-table td { white-space: nowrap; text-align: left; padding: .35rem 1rem .35rem 0; }
.geo-table td:nth-child(2) { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.geo details { border: 0; margin: 0; }
.geo summary { padding: .7rem 0 .2rem; min-height: 2.2rem; }
@container (min-width: 44rem) { .geo-table td:nth-child(2) { min-width: 15rem; } }
@media print { .geo-zoom { display: none; } }
"""

SCRIPT = """
for (const map of document.querySelectorAll(".geo")) {
  const frame = map.querySelector(".geo-frame");
  let x = Number(frame.dataset.x), y = Number(frame.dataset.y);
  frame.addEventListener("scroll", () => {
    x = (frame.scrollLeft + frame.clientWidth / 2) / frame.scrollWidth;
    y = (frame.scrollTop + frame.clientHeight / 2) / frame.scrollHeight;
  });
  const keep = () => frame.scrollTo(
    x * frame.scrollWidth - frame.clientWidth / 2, y * frame.scrollHeight - frame.clientHeight / 2);
  map.addEventListener("change", keep);
  window.addEventListener("resize", keep);
}
"""

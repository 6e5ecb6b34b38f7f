"""Positions on a map that needs no server: Marks in, a <figure> for a page out.

The page has the style of map_style.py and, if it has script, the script, without which nothing is lost.
Places are shares of the map's width and height and marks are in pixels, so that marks and words are equally large on
every screen and however far the map is enlarged. All that the map shows stands in a table below it too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from math import hypot, sqrt

import jinja2
from markupsafe import Markup

from resight.explain.positions import measure, say_metres, say_position
from resight.explain.projection import Projection, draw_grid, fit, round_down
from resight.explain.spread import spread
from resight.explain.tiles import Tiles, list_tiles
from resight.geodesy import Position

RATIO = 4 / 3  # width to height; the style has it too
BAR = 0.3  # of the width, that the scale bar takes at most
NARROW = 350.0  # pixels, about the narrowest that a map is shown: marks that do not touch there touch nowhere
DISC = 10.5  # radius of a numbered mark, in pixels
ABOVE = {"estimate": 1, "guess": 1, "truth": 2}  # marks that others do not cover, the larger the higher
WIDE_CIRCLE = 2.0  # times the spread of the marks, beyond which a circle is cut by the edge
KEY = {  # kind of a mark → its words in the key, in this order
    "truth": "where the query was taken",
    "estimate": "estimate, and the circle that it is in",
    "guess": "best guess: the place is not known",
    "very-likely": "answer, very likely",
    "likely": "answer, likely",
    "unlikely": "answer, unlikely",
    "very-unlikely": "answer, very unlikely",
    "answer": "answer",
    "right": "right",
    "wrong": "wrong",
    "open": "nothing to be found",
}


@dataclass(frozen=True)
class Mark:
    kind: str  # a key of KEY
    position: Position
    name: str
    label: str = ""  # a rank, written into the mark
    heading: float | None = None  # degrees from north, clockwise
    metres: float = 0.0  # radius of a circle around it
    says: str = ""  # what else is known: a probability, …
    link: str = ""  # part of the page that tells more


def draw_map(
    marks: Sequence[Mark], name: str, anchor: str, caption: str = "", tiles: Tiles | None = None
) -> Markup | None:
    """None where there is nothing to show. `anchor` tells the maps of a page apart.

    Distances in the table are from the first mark of kind truth, else estimate, where there is one.
    """
    if not marks:
        return None
    shown = _choose_extent(marks)
    layer = list_tiles(tiles, shown) if tiles else []
    origin = next((mark for kind in ("truth", "estimate") for mark in marks if mark.kind == kind), None)
    down, across = draw_grid(shown)
    bar = round_down(BAR * shown.width)
    centre = shown.place(next((mark for mark in marks if mark.kind == "estimate"), marks[0]).position)
    return Markup(
        _read_template().render(
            name=name,
            anchor=anchor,
            caption=caption,
            summary=_summarise(name, marks, shown),
            attribution=tiles.attribution if tiles and layer else "",
            tiles=layer,
            down=down,
            across=across,
            bar=(bar / shown.width, say_metres(bar)),
            centre=centre,
            marks=_lay_out(marks, shown),
            key=[(kind, words) for kind, words in KEY.items() if any(mark.kind == kind for mark in marks)],
            headings=any(mark.heading is not None for mark in marks),
            rows=[_tabulate(mark, origin) for mark in marks],
            origin=origin and {"truth": "where it was taken", "estimate": "the estimate"}[origin.kind],
        )
    )


def _choose_extent(marks: Sequence[Mark]) -> Projection:
    """All marks, and circles as far as they do not push the marks together."""
    positions = [mark.position for mark in marks]
    tight = fit(positions, RATIO)
    most = WIDE_CIRCLE * hypot(tight.width, tight.height) / 2
    return fit(positions, RATIO, [mark.metres if mark.metres <= most else 0.0 for mark in marks])


def _lay_out(marks: Sequence[Mark], shown: Projection) -> list[dict[str, object]]:
    """Numbered marks are moved aside where they would lie on each other; the others are too small to need it.

    Later ones are drawn over earlier ones: the best answer, then estimate and truth, have to be seen.
    """
    at = [shown.place(mark.position) for mark in marks]
    seats = [(x * NARROW, y * NARROW / RATIO) for x, y in at]
    numbered = [number for number, mark in enumerate(marks) if mark.label]
    fixed = [seats[number] for number, mark in enumerate(marks) if mark.kind in ABOVE]
    offsets = spread([seats[number] for number in numbered], DISC, (NARROW, NARROW / RATIO), fixed)
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
    distance = "" if origin is None or mark is origin else say_metres(measure(origin.position, mark.position))
    return {
        "mark": mark,
        "position": say_position(mark.position),
        "heading": "" if mark.heading is None else f"{mark.heading % 360:.0f}°",
        "distance": distance,
    }


def _summarise(name: str, marks: Sequence[Mark], shown: Projection) -> str:
    """For those who do not see it: how much there is, and over which distance."""
    places = "1 place" if len(marks) == 1 else f"{len(marks):,} places"
    return f"{name}: {places} on {say_metres(shown.width)} from west to east. A table below has them all."


def _read_template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["share"] = _say_share
    return environment.from_string((resources.files(__package__) / "map.html").read_text(encoding="utf-8"))


def _say_share(value: float) -> str:
    return f"{100 * value:.2f}%"

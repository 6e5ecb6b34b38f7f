"""HTML of results for notebooks: tables, and images in rows. Self-contained: thumbnails are data: URIs, no script.

Everything that comes from files (ids, attributes, paths) is escaped. Colours follow the notebook's theme.
"""

import html
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from resight.explain.draw import Pixels, embed, shrink
from resight.files.inside import DECEPTIVE

MOST_ROWS = 60
THUMBNAIL = 200  # pixels of the longer side
WIDE = 900  # of two images side by side
STYLE = "border-collapse:collapse;font-size:90%"
CELL = "padding:2px 8px;text-align:{};white-space:pre-line"


@dataclass(frozen=True)
class Card:
    """A picture with lines below it; without pixels, only the lines."""

    pixels: Pixels | None
    lines: tuple[str, ...] = ()
    strong: bool = False
    wide: bool = False


def draw_gallery(title: str, cards: Sequence[Card], notes: Iterable[str] = ()) -> str:
    """Cards in rows, with a title above and notes below."""
    above = f"<div><b>{escape(title)}</b></div>" if title else ""
    below = "".join(f"<div><small>{escape(note)}</small></div>" for note in notes)
    return (
        f'<div>{above}<div style="display:flex;flex-wrap:wrap;gap:8px;align-items:end">'
        f"{''.join(map(_draw_card, cards))}</div>{below}</div>"
    )


def _draw_card(card: Card) -> str:
    lines = "<br>".join(map(escape, card.lines))
    words = f"<b>{lines}</b>" if card.strong else lines
    picture = '<div style="padding:2em">no picture</div>'
    if card.pixels is not None:
        source = embed(shrink(card.pixels, WIDE if card.wide else THUMBNAIL))
        picture = f'<img src="{source}" alt="{escape(" ".join(card.lines))}" style="max-width:100%">'
    caption = f'<figcaption style="font-size:80%;overflow-wrap:anywhere">{words}</figcaption>' if lines else ""
    width = "" if card.wide else f";max-width:{THUMBNAIL}px"
    return f'<figure style="margin:0{width}">{picture}{caption}</figure>'


def draw_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    notes: Iterable[str] = (),
    bold: Container[tuple[int, int]] = (),
) -> str:
    """A table with its title above and notes below; a long one is cut, and says so."""
    lines = [
        "".join(_draw_cell(column, cell, (number, column) in bold) for column, cell in enumerate(row))
        for number, row in enumerate(rows[:MOST_ROWS])
    ]
    head = "".join(
        f'<th style="{CELL.format(_align(number))}">{escape(name)}</th>' for number, name in enumerate(columns)
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    hidden = [f"… and {len(rows) - MOST_ROWS:,} more rows"] if len(rows) > MOST_ROWS else []
    below = "".join(f"<div><small>{escape(note)}</small></div>" for note in (*hidden, *notes))
    above = f"<div><b>{escape(title)}</b></div>" if title else ""
    return (
        f'<div>{above}<table style="{STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>'
    )


def escape(value: object) -> str:
    """As text of HTML; what is given may be hostile."""
    return html.escape(DECEPTIVE.sub("\N{REPLACEMENT CHARACTER}", str(value)), quote=True)


def _draw_cell(column: int, cell: object, bold: bool) -> str:
    text = escape(cell)
    return f'<td style="{CELL.format(_align(column))}">{f"<b>{text}</b>" if bold else text}</td>'


def _align(column: int) -> str:
    return "right" if column else "left"

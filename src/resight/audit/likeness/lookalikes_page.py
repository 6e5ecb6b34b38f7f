"""A contact sheet of lookalikes: the query and its answers as tiles with outline, diameter, position and similarity.

In: Lookalikes and their collection. Out: self-contained HTML.
"""

from dataclasses import dataclass
from importlib import resources

from resight.audit.likeness.find_lookalikes import Lookalike, Lookalikes
from resight.audit.likeness.form_cache import read_crop
from resight.collection import Collection
from resight.data.maps.crater_view import Circle, CraterView
from resight.errors import BoxError, CollectionError, ImageError
from resight.explain.card_page import render_cards
from resight.explain.draw import embed, shrink
from resight.types import Picture

SIDE = 320
WORDS = {
    "form": "Compared by form: rings and angular harmonics of the normalised crops. Tint and orientation hardly count.",
    "vectors": "Compared by the vectors that the collection stores.",
}


@dataclass(frozen=True)
class Tile:
    name: str
    picture: str  # data: URI; empty for an unreadable file
    width: int
    height: int
    outline: Circle | None  # in pixels of the picture
    facts: tuple[tuple[str, str], ...]


def render(found: Lookalikes, collection: Collection) -> str:
    query = found.crater or CraterView("", 0, 0, 1, found.view)
    facts = _describe(found.crater) if found.crater else ()
    return render_cards(
        (resources.files(__package__) / "lookalikes.html").read_text(encoding="utf-8"),
        query=_make_tile(found.picture.ref.id, found.picture, query, facts),
        tiles=[_read_tile(one, found, collection) for one in found.found],
        collection=collection.path.name,
        found=found,
        words=WORDS[found.by],
    )


def _read_tile(one: Lookalike, found: Lookalikes, collection: Collection) -> Tile:
    facts = [("similarity", f"{one.similarity:.3f}")]
    if one.probability is not None:
        facts.append(("same object", f"{one.probability:.1%}"))
    if one.crater:
        facts += _describe(one.crater)
        if found.crater:
            facts.append(("distance", f"{one.crater.distance_km(found.crater):,.0f} km"))
    try:
        (record,) = collection.records([one.id])
        picture = read_crop(record)
    except (ImageError, BoxError, CollectionError):
        return Tile(one.id, "", 0, 0, None, tuple(facts))
    return _make_tile(one.id, picture, one.crater, tuple(facts))


def _make_tile(name: str, picture: Picture, crater: CraterView | None, facts: tuple[tuple[str, str], ...]) -> Tile:
    pixels = shrink(picture.pixels, SIDE)
    height, width = pixels.shape[:2]
    outline = crater.outline((width, height)) if crater else None
    return Tile(name, embed(pixels), width, height, outline, facts)


def _describe(crater: CraterView) -> tuple[tuple[str, str], ...]:
    return (
        ("crater", crater.label or "–"),
        ("diameter", f"{crater.diameter_km:.1f} km"),
        ("position", format_place(crater)),
    )


def format_place(crater: CraterView) -> str:
    """Latitude and longitude, in the catalogue's convention."""
    lon = f"{abs(crater.lon):.2f}°\N{NO-BREAK SPACE}{'W' if crater.lon < 0 else 'E'}"
    return f"{abs(crater.lat):.2f}°\N{NO-BREAK SPACE}{'S' if crater.lat < 0 else 'N'}, {lon}"

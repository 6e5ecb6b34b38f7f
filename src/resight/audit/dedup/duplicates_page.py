"""A page that shows the groups of a dedup run: the image to keep first, then its duplicates with kind and probability.

In: a Report and its collections. Out: self-contained HTML. The page shortens long lists and counts the hidden entries.
"""

from dataclasses import dataclass
from importlib import resources

from resight.audit.dedup.find_duplicates import Report
from resight.audit.dedup.pairs import Pair
from resight.boxes import crop
from resight.collection import Collection
from resight.data import image_files
from resight.errors import BoxError, CollectionError, ImageError
from resight.explain.card_page import render_cards
from resight.explain.draw import embed, shrink
from resight.probability_words import format_probability

GROUPS, MEMBERS, LOOSE = 200, 12, 100  # most shown
SIDE = 240
KINDS = {"copy": "Exact copy", "near_copy": "Near copy", "same": "Same object, other view"}


@dataclass(frozen=True)
class Card:
    id: str
    picture: str  # data: URI; empty for an unreadable file
    size: str
    verdict: str


@dataclass(frozen=True)
class Thumbnail:
    source: str  # data: URI
    size: tuple[int, int]  # of the image, or of its box
    bytes: int


def render(report: Report, a: Collection, b: Collection) -> str:
    """`a` and `b` are the collections of the pairs' a and b; the same one for duplicates within a collection."""
    grouped: dict[int, list[Pair]] = {}
    for pair in report.pairs:
        if pair.group is not None:
            grouped.setdefault(pair.group, []).append(pair)
    loose = [pair for pair in report.pairs if pair.group is None]
    return render_cards(
        (resources.files(__package__) / "duplicates.html").read_text(encoding="utf-8"),
        report=report,
        groups=[_show(pairs, a, b) for pairs in list(grouped.values())[:GROUPS]],
        loose=[_show([pair], a, b) for pair in loose[:LOOSE]],
        hidden_groups=max(len(grouped) - GROUPS, 0),
        hidden_loose=max(len(loose) - LOOSE, 0),
    )


def _show(pairs: list[Pair], a: Collection, b: Collection) -> dict[str, object]:
    """The image to keep (for a pair without a group, its first), with every other image that the pairs name."""
    kept = pairs[0].keep or pairs[0].a
    members = {pair.b: _format_pair(pair) for pair in pairs if pair.a == kept}
    for pair in pairs:
        if pair.a != kept:  # two other members: one may be a copy that no pair with the kept image names
            members.setdefault(pair.b, f"{_format_pair(pair)}, of {pair.a}")
    shown = list(members.items())[:MEMBERS]
    return {
        "kept": _make_card(a, kept, "Keep" if pairs[0].keep else ""),
        "cards": [_make_card(b, name, verdict) for name, verdict in shown],
        "hidden": len(members) - len(shown),
        "count": len(members) + 1,
    }


def _format_pair(pair: Pair) -> str:
    return f"{KINDS[pair.kind]}, {format_probability(pair.probability)}"


def _make_card(collection: Collection, name: str, verdict: str) -> Card:
    thumbnail = make_thumbnail(collection, name)
    if thumbnail is None:
        return Card(name, "", "the file cannot be read", verdict)
    width, height = thumbnail.size
    return Card(name, thumbnail.source, f"{width} × {height}, {thumbnail.bytes:,} bytes", verdict)


def make_thumbnail(collection: Collection, name: str) -> Thumbnail | None:
    """None if the file cannot be read."""
    try:
        (record,) = collection.records([name])
        ref = record.ref
        picture = image_files.read(ref, max_side=None if ref.box else 2 * SIDE)
        picture = picture if ref.box is None else crop(picture, ref.box)
    except (ImageError, BoxError, CollectionError):
        return None
    return Thumbnail(embed(shrink(picture.pixels, SIDE)), picture.size, record.bytes)

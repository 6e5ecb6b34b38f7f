"""Find similar but different objects: a collection and a query in, the nearest other objects out.

Two ways to compare, `by`:

    vectors     stored rows, for images of any kind (by_vectors)
    form        the form of craters (crater_form), for crops whose outline is known: attributes of
                resight.data.maps.crater_view

"auto" takes the form if the query is a crater's crop, or unknown to a collection that is mostly such crops, and the
vectors otherwise. By form, a crater is one answer, however many crops show it. Left out are the query's crater and all
crops that share ground with it: by position where it is known, else crops of the same object by the probability of a
search, and those that share ground with them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from resight.audit.likeness import by_vectors, crater_form
from resight.audit.likeness.form_cache import Progress, read_crop, read_forms
from resight.collection import Collection
from resight.collection.encode import read_query
from resight.collection.view import View
from resight.data.maps.crater_view import CraterView, read_crater_view
from resight.errors import InputError
from resight.frames import make_frame
from resight.search.filters import Filter, parse
from resight.search.request import SearchRequest
from resight.store import ImageRecord
from resight.types import FloatArray, Picture, Skipped

SAME_CIRCLE = 0.5  # intersection over union of two circles that are one crater
SAME = 0.5  # probability from which an image counts as the same instance
By = Literal["auto", "form", "vectors"]
Crops = list[tuple[ImageRecord, CraterView]]


@dataclass(frozen=True)
class Lookalike:
    """A similar object.

    Attributes:
        id: The image's name in the collection.
        path: Its file.
        similarity: Higher is more similar.
        probability: That it is the same object after all; by vectors only.
        crater: Position and size, of crops of craters.
    """

    id: str
    path: Path
    similarity: float
    probability: float | None = None
    crater: CraterView | None = None


@dataclass(frozen=True)
class Lookalikes:
    """Similar but different objects; `resight.lookalikes` returns it. `len()` counts them.

    Attributes:
        by: How they were compared: form or vectors.
        picture: The query.
        found: The answers, most similar first.
        compared: Number of images.
        crater: Position and size of the query; None if unknown.
        view: Side of the query's crop in diameters; 0: no crater's crop.
        assumed: Whether `view` is the most common one of the collection.
        left_out: Images of the same crater, or that share ground with it.
        skipped: Images that could not be read.
    """

    by: Literal["form", "vectors"]
    picture: Picture
    found: tuple[Lookalike, ...]
    compared: int
    crater: CraterView | None = None
    view: float = 0.0
    assumed: bool = False
    left_out: int = 0
    skipped: tuple[Skipped, ...] = ()

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Lookalike]:
        return iter(self.found)

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Returns:
            One row per answer: id, path, similarity and probability.
        """
        names = ("id", "path", "similarity", "probability")
        return make_frame({name: [getattr(one, name) for one in self.found] for name in names})


def find_lookalikes(
    collection: Collection,
    image: str | Path,
    k: int = 10,
    *,
    by: By = "auto",
    where: Sequence[str] = (),
    diversity: float = 0.3,
    same: float = SAME,
    progress: Progress | None = None,
) -> Lookalikes:
    """`image` is a file, or the id of an image of the collection; an answer meets the conditions of `where`."""
    view, filters = collection.view(), parse(where)
    stored, picture = _read_image(view, image)
    crops: Crops = [] if by == "vectors" else _list_crops(view)
    itself = stored or next((record for record, _ in crops if by_vectors.is_same_file(record, picture)), None)
    if by == "auto" and not itself and 2 * len(crops) <= len(view):
        crops = []
    crater = read_crater_view(itself.attributes) if itself else None
    side = crater.view if crater else 0.0 if itself else _most_common_side(crops)
    if by == "form" and not (crops and side):
        raise InputError(
            "cannot compare by form",
            expected="crops of craters with the attributes crater_lat, crater_lon, diameter_km and view",
            actual=f"{len(crops):,} such images in {collection.path}" if not crops else f"{picture.ref.id} is none",
            fix="index the crops that resight makes of a map and a catalogue, or compare --by vectors",
        )
    if not (crops and side):
        reduced = picture if stored else read_query(Path(image), collection.query_side)
        found = by_vectors.find_by_vectors(view, collection.recipe, reduced, k, filters, diversity, same)
        paths = {record.id: record.path for record in view.records([one.id for one in found])} if found else {}
        nearest = tuple(Lookalike(one.id, paths[one.id], one.similarity, one.probability) for one in found)
        return Lookalikes("vectors", picture, nearest, len(view))
    known = [crater] if crater else _find_again(view, picture, crops, filters, same)
    allowed = view.filter_images(filters) if filters else None
    asked = [(record, one) for record, one in crops if allowed is None or record.id in allowed]
    encoder = crater_form.build_encoder()
    forms = read_forms(collection.path, asked, encoder, progress)
    craters = {record.id: (record, one) for record, one in asked}
    others = [
        row
        for row, (record, one) in enumerate(craters[name] for name in forms.ids)
        if not by_vectors.is_same_file(record, picture) and not any(shares_ground(one, here) for here in known)
    ]
    answers: tuple[Lookalike, ...] = ()
    if others:
        form = _describe(picture, side, encoder)
        similarity, vectors = (rows[others] for rows in crater_form.compare(form, forms.vectors))
        best = _choose_crops([craters[forms.ids[row]][1] for row in others], similarity.tolist())
        chosen = [best[row] for row in by_vectors.choose_diverse(similarity[best], vectors[best], k, diversity)]
        answers = tuple(
            Lookalike(record.id, record.path, float(similarity[row]), crater=one)
            for row in chosen
            for record, one in [craters[forms.ids[others[row]]]]
        )
    left_out = len(forms.ids) - len(others)
    return Lookalikes("form", picture, answers, len(others), crater, side, crater is None, left_out, forms.skipped)


def _describe(picture: Picture, side: float, encoder: crater_form.FormEncoder) -> FloatArray:
    outline = CraterView("", 0, 0, 1, side).outline((picture.pixels.shape[1], picture.pixels.shape[0]))
    assert outline is not None
    return encoder.describe(picture, outline)


def shares_ground(one: CraterView, other: CraterView) -> bool:
    """Whether the discs within two crops overlap, or their craters are one by label or circle."""
    reach = (one.view * one.diameter_km + other.view * other.diameter_km) / 2
    same = bool(one.label) and one.label == other.label
    return same or one.distance_km(other) < reach or one.circle_iou(other) >= SAME_CIRCLE


def _read_image(view: View, image: str | Path) -> tuple[ImageRecord | None, Picture]:
    stored = None if Path(image).exists() else view.find(str(image))
    return stored, read_crop(stored) if stored else read_query(Path(image), None)


def _list_crops(view: View) -> Crops:
    """The images that are a crater's crop with a known outline."""
    read = ((record, read_crater_view(record.attributes)) for record in view.records())
    return [(record, one) for record, one in read if one is not None and one.view]


def _most_common_side(crops: Crops) -> float:
    """Of a query that the collection does not know."""
    sides = Counter(one.view for _, one in crops)
    return sides.most_common(1)[0][0] if sides else 0.0


def _find_again(
    view: View, picture: Picture, crops: Crops, filters: tuple[Filter, ...], same: float
) -> list[CraterView]:
    """The craters that a search takes for the query's."""
    answer = view.ask(SearchRequest(picture, by_vectors.DEPTH, filters=filters))
    found = {hit.id for hit in answer.hits if (hit.probability or 0.0) >= same}
    return [one for record, one in crops if record.id in found]


def _choose_crops(craters: Sequence[CraterView], similarity: Sequence[float]) -> list[int]:
    """The row of the most similar crop of each crater."""
    best: dict[tuple[str, float, float], int] = {}
    for row in sorted(range(len(craters)), key=lambda row: -similarity[row]):
        one = craters[row]
        best.setdefault((one.label, one.lat, one.lon), row)
    return sorted(best.values())

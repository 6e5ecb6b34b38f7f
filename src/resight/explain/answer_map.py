"""Where a query is, by its answers: hits with positions, the estimate, and where it was taken in; a map out."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from resight.explain.map import Mark, draw_map
from resight.explain.positions import measure, say_metres, say_position
from resight.explain.tiles import Tiles
from resight.explain.wording import say_chance, say_verdict
from resight.geodesy import find_number, find_position
from resight.types import Attribute, Hit, PositionEstimate


def draw_answers(
    hits: Sequence[Hit],
    estimate: PositionEstimate | None,
    query: Mapping[str, Attribute],
    anchor: str,
    link: str = "",
    tiles: Tiles | None = None,
) -> Markup | None:
    """None where no answer has a position. `query` are its attributes; a hit's number is put after `link`."""
    answers = [
        Mark(
            _kind(hit.probability),
            position,
            hit.id,
            str(rank),
            find_number(hit.attributes, "heading"),
            says="" if hit.probability is None else say_chance(hit.probability),
            link=f"{link}{rank}" if link else "",
        )
        for rank, hit in enumerate(hits, start=1)
        if (position := find_position(hit.attributes))
    ]
    if not answers:
        return None
    marks = [*_mark_query(estimate, query), *answers]
    return draw_map(marks, "Where the answers are", anchor, say_where(estimate, query, len(hits) - len(answers)), tiles)


def say_where(estimate: PositionEstimate | None, query: Mapping[str, Attribute], unknown: int = 0) -> str:
    """The estimate in words, its error where that is known, and how many answers the map has to leave out."""
    sentences = []
    if estimate is not None:
        place = say_position((estimate.lat, estimate.lon))
        chance = say_chance(estimate.probability)
        if estimate.known:
            circle = f"within {say_metres(estimate.metres)} ({estimate.coverage:.0%})"
            sentences.append(f"Estimated at {place}, {circle}. The place is in the collection: {chance}.")
        else:
            sentences.append(f"Where this is cannot be told. The place is in the collection: {chance}.")
            sentences.append(f"The best guess is {place}.")
    taken = find_position(query)
    if taken and estimate is not None:
        error = say_metres(measure(taken, (estimate.lat, estimate.lon)))
        sentences.append(f"By its own position, the query was taken {error} from there.")
    if unknown:
        sentences.append(f"{unknown} {'answer has' if unknown == 1 else 'answers have'} no position.")
    return " ".join(sentences)


def _mark_query(estimate: PositionEstimate | None, query: Mapping[str, Attribute]) -> list[Mark]:
    marks = []
    if taken := find_position(query):
        marks.append(Mark("truth", taken, "Query, by its own position", heading=find_number(query, "heading")))
    if estimate is not None:
        kind = "estimate" if estimate.known else "guess"
        words = f"± {say_metres(estimate.metres)} ({estimate.coverage:.0%})"
        name = "Estimate of where the query is" if estimate.known else "Best guess of where the query is"
        marks.append(Mark(kind, (estimate.lat, estimate.lon), name, metres=estimate.metres, says=words))
    return marks


def _kind(probability: float | None) -> str:
    return "answer" if probability is None else say_verdict(probability).replace(" ", "-")

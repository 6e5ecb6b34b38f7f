"""Queries and their answers on maps: the plain values of an evaluation in, figures for a page out.

Positions are {"queries": {id: {"lat", "lon", "heading"}}, "database": {…}}, as report.py writes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from resight.explain.map import Mark, draw_map
from resight.explain.positions import measure, say_metres
from resight.explain.tiles import Tiles
from resight.geodesy import Position

MOST = 2000  # queries on one map; of more, every second, third, …


@dataclass(frozen=True)
class QueryMap:
    """Where one query was taken and where its answers were."""

    sentence: str
    figure: Markup


def map_query(
    values: Mapping[str, Any], positions: Mapping[str, Any], anchor: str, tiles: Tiles | None = None
) -> QueryMap | None:
    """`values` as examples.py writes them; None where the query or all of its answers have no position."""
    taken = positions.get("queries", {}).get(values["id"])
    known = [(answer, positions["database"].get(answer["id"])) for answer in values["answers"]] if taken else []
    placed = [(answer, spot) for answer, spot in known if spot]
    if not placed:
        return None
    truth = _position(taken)
    marks = [
        Mark(
            "right" if answer["positive"] else "wrong",
            _position(spot),
            answer["id"],
            f"{answer['rank']}",
            spot["heading"],
            says="right" if answer["positive"] else "wrong",
        )
        for answer, spot in placed
    ]
    query = Mark("truth", truth, f"Query {values['id']}", heading=taken["heading"])
    best, spot = placed[0]
    distance = say_metres(measure(truth, _position(spot)))
    sentence = f"Answer {best['rank']} was taken {distance} from the query."
    figure = draw_map([query, *marks], f"Where {values['id']} and its answers were taken", anchor, tiles=tiles)
    return None if figure is None else QueryMap(sentence, figure)


def map_all(evaluation: Mapping[str, Any], anchor: str, tiles: Tiles | None = None) -> Markup | None:
    """Every query where it was taken, right or wrong; None where no position is known."""
    positions = evaluation.get("positions") or {}
    taken = positions.get("queries", {})
    queries = [query for query in evaluation["per_query"] if query["id"] in taken]
    step = -(-len(queries) // MOST) or 1
    marks = [
        Mark(_judge(query), _position(taken[query["id"]]), query["id"], says=_tell(query, positions))
        for query in queries[::step]
    ]
    return draw_map(marks, "Where the queries were taken", anchor, _describe(queries, positions, step), tiles)


def _judge(query: Mapping[str, Any]) -> str:
    """A query that nothing in the database answers can be neither right nor wrong."""
    if not query.get("judged", True):
        return "open"
    return "right" if query["first_positive"] == 1 else "wrong"


def _tell(query: Mapping[str, Any], positions: Mapping[str, Any]) -> str:
    words = {"right": "right", "wrong": "wrong", "open": "nothing to be found"}[_judge(query)]
    error = _find_error(query, positions)
    return words if error is None else f"{words}: the best answer is {say_metres(error)} away"


def _describe(queries: Sequence[Mapping[str, Any]], positions: Mapping[str, Any], step: int) -> str:
    judged = [query for query in queries if _judge(query) != "open"]
    right = sum(_judge(query) == "right" for query in judged)
    sentences = [f"{right:,} of {len(judged):,} queries are right at rank 1."]
    errors = [error for query in queries if (error := _find_error(query, positions)) is not None]
    if errors:
        half, most = (say_metres(float(np.quantile(errors, share))) for share in (0.5, 0.9))
        sentences.append(
            f"The best answer was taken {half} from its query or less for half of {len(errors):,} queries,"
        )
        sentences.append(f"and {most} or less for nine in ten.")
    if step > 1:
        sentences.append(f"One query in {step} is shown.")
    return " ".join(sentences)


def _find_error(query: Mapping[str, Any], positions: Mapping[str, Any]) -> float | None:
    """Metres from a query to its best answer."""
    spot = positions["database"].get(query["best"])
    return None if spot is None else measure(_position(positions["queries"][query["id"]]), _position(spot))


def _position(spot: Mapping[str, float]) -> Position:
    return spot["lat"], spot["lon"]

"""Where queries and their answers were taken: a RunResult and its Dataset in, the RunResult with positions out."""

from collections.abc import Iterable
from dataclasses import replace

from resight.evaluate.results import RunResult, Spot
from resight.geodesy import find_number, find_position
from resight.types import Dataset, ImageRef


def keep_spots(result: RunResult, dataset: Dataset) -> RunResult:
    """Those that the data set tells, of the queries and of the answers that are kept of them."""
    shown = {answer.id for query in result.queries for answer in query.answers}
    return replace(
        result,
        query_spots=_find_spots(dataset.queries),
        spots=_find_spots(ref for ref in dataset.database if ref.id in shown),
    )


def _find_spots(refs: Iterable[ImageRef]) -> dict[str, Spot]:
    return {
        ref.id: Spot(*position, find_number(ref.attributes, "heading"))
        for ref in refs
        if (position := find_position(ref.attributes))
    }

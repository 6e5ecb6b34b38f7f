"""What an evaluation gives: one JudgedQuery a query, and the RunResult that holds them with what was run.

Where queries and their answers were taken: a RunResult and its Dataset in, the RunResult with positions out.

One ranking and what is true of it in; out what is kept of it: where its positives are, and its first answers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from resight.evaluate.judge_query import list_positives, measure_overlaps
from resight.evaluate.rank_positions import find_places
from resight.geodesy import find_number, find_position
from resight.types import Box, Dataset, ImageRef, Judgement, Ranking, Recipe

SHOWING = "locate"  # the stage that finds boxes, when the order is fixed already


@dataclass(frozen=True)
class Trace:
    """Where a ranking has the images that judging looks at: enough to judge it again by a part of its truth."""

    places: Mapping[str, int | None]  # every positive → its place, from 0; None where it was not found
    gone: tuple[int, ...] = ()  # places of images that are ignored
    overlaps: Mapping[str, float] = field(default_factory=dict)  # positive with a true box → IoU of the box shown
    marks: Mapping[str, int] = field(default_factory=dict)  # positive → its grade, where that is not 1

    @property
    def grades(self) -> dict[str, int]:
        return {id: self.marks.get(id, 1) for id in self.places}

    @property
    def first(self) -> int | None:
        """Rank of the first positive, from 1 and without the ignored images; None where none was found."""
        place = min((place for place in self.places.values() if place is not None), default=None)
        return None if place is None else place + 1 - sum(other < place for other in self.gone)


@dataclass(frozen=True)
class Answered:
    """One image that a query was answered with, and what spoke for it."""

    id: str
    rank: int  # from 1, without the ignored images
    positive: bool
    probability: float | None = None
    box: Box | None = None  # the one that was shown
    true_box: Box | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    path: Path | None = None


@dataclass(frozen=True)
class JudgedQuery:
    query_id: str
    stratum: str  # the value of the attribute that figures are broken down by; "" when it has none
    values: Mapping[str, float]  # metric → value; empty for a query without positives
    best_id: str
    best_probability: float | None
    seconds: float  # of the search
    encode_seconds: float = 0.0  # from the file to the encoded query
    stages: Mapping[str, float] = field(default_factory=dict)  # stage of the search → its seconds
    trace: Trace | None = None  # None for a query without positives
    answers: tuple[Answered, ...] = ()  # the best few, and the first positive where it is none of them
    path: Path | None = None
    box: Box | None = None  # the part of the query that was looked for

    @property
    def rank_seconds(self) -> float:
        """Until the order of the images is known."""
        return self.seconds - self.stages.get(SHOWING, 0.0)


@dataclass(frozen=True)
class Bin:
    """The positives of a stratum that are alike, and how well they are found."""

    label: str
    positives: int  # pairs of a query and a positive
    values: Mapping[str, Mapping[str, float]]  # query → metric → value; queries without such a positive are left out


@dataclass(frozen=True)
class Breakdown:
    """One property of the positives, cut into bins."""

    name: str
    convention: str
    bins: tuple[Bin, ...]
    left_out: int = 0  # positives that the property is not known of


@dataclass(frozen=True)
class Point:
    id: str
    x: float
    y: float
    kind: str  # query | database
    label: str = ""


@dataclass(frozen=True)
class EmbeddingMap:
    """Images on a plane, alike ones near each other."""

    method: str  # in one sentence, for the reader
    points: tuple[Point, ...]
    total: int  # images and queries that there are, of which the points may be a part


@dataclass(frozen=True)
class Spot:
    """Where an image was taken: degrees, and from north clockwise which way it looks."""

    lat: float
    lon: float
    heading: float | None = None


@dataclass(frozen=True)
class RunResult:
    recipe: Recipe
    dataset: str
    database: int
    metrics: tuple[str, ...]
    conventions: Mapping[str, str]  # metric → its meaning in one sentence
    queries: tuple[JudgedQuery, ...]
    unreadable: tuple[str, ...]  # database images that could not be read
    index_seconds: float
    cached: int = 0  # pictures whose features were in the cache: times to encode are not those of the network
    strata: tuple[Breakdown, ...] = ()
    map: EmbeddingMap | None = None
    query_spots: Mapping[str, Spot] = field(default_factory=dict)
    spots: Mapping[str, Spot] = field(default_factory=dict)  # of database images among the answers that are kept

    @property
    def judged(self) -> tuple[JudgedQuery, ...]:
        """The queries that figures are about."""
        return tuple(query for query in self.queries if query.values)

    def values(self, metric: str) -> list[float]:
        return [query.values[metric] for query in self.judged]


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


SHOWN = 3  # answers that are kept of each query


def trace(ids: Sequence[str], judgement: Judgement, boxes: Mapping[str, Box]) -> Trace:
    """`boxes` are those shown for the ids."""
    positives = list_positives(judgement)
    places = find_places(ids, {*positives, *judgement.ignored})
    boxed = [id for id in positives if id in judgement.boxes]
    both = [id for id in boxed if id in boxes]
    shown, true = (np.array([side[id] for id in both], np.float64).reshape(-1, 4) for side in (boxes, judgement.boxes))
    overlaps = dict.fromkeys(boxed, 0.0) | dict(zip(both, measure_overlaps(shown, true).tolist(), strict=True))
    return Trace(
        {id: places.get(id) for id in positives},
        tuple(sorted(places[id] for id in judgement.ignored if id in places)),
        overlaps,
        {id: judgement.grades[id] for id in positives if judgement.grades[id] != 1},
    )


def list_answers(ranking: Ranking, judgement: Judgement, paths: Mapping[str, Path]) -> tuple[Answered, ...]:
    """The first few that are not ignored, and the first positive where it comes later."""
    answers: list[Answered] = []
    rank = 0
    wanted = bool(list_positives(judgement))
    for id in ranking.ids:
        if id in judgement.ignored:
            continue
        rank += 1
        positive = judgement.grades.get(id, 0) > 0
        if rank <= SHOWN or (positive and wanted):
            answers.append(
                Answered(
                    id,
                    rank,
                    positive,
                    ranking.probabilities.get(id),
                    ranking.boxes.get(id),
                    judgement.boxes.get(id),
                    ranking.signals.get(id, {}),
                    paths.get(id),
                )
            )
        wanted = wanted and not positive
        if rank >= SHOWN and not wanted:
            break
    return tuple(answers)

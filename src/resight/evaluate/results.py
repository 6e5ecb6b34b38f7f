"""What one run of a recipe over a data set gives, before any statistics.

A RunResult holds the recipe, what it was run on, and a JudgedQuery per query: its metric values, times, the ranks of
its positives (enough to judge the ranking again by a part of its truth) and its first answers. Positions on Earth are
those that the data set knows. summary.py turns a RunResult into figures with intervals.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from resight.boxes import iou
from resight.evaluate.judge_query import list_positives
from resight.evaluate.rank_positions import find_positions
from resight.geodesy import find_number, find_position
from resight.types import Box, Dataset, ImageRef, Judgement, Ranking, Recipe

LOCATE = "locate"  # the stage that finds boxes, after the order is fixed
ANSWERS = 3  # first answers recorded per query


@dataclass(frozen=True)
class PositiveRanks:
    """Where a ranking has the positives and the ignored images: enough to judge it again by a part of its truth."""

    positions: Mapping[str, int | None]  # every positive → its position, from 0; None if it was not found
    ignored: tuple[int, ...] = ()  # positions of ignored images
    overlaps: Mapping[str, float] = field(default_factory=dict)  # positive with a true box → IoU of the shown box
    other_grades: Mapping[str, int] = field(default_factory=dict)  # positive → its grade, unless that is 1

    @property
    def grades(self) -> dict[str, int]:
        return {id: self.other_grades.get(id, 1) for id in self.positions}

    @property
    def first(self) -> int | None:
        """Rank of the first positive, from 1 and without the ignored images; None if none was found."""
        position = min((position for position in self.positions.values() if position is not None), default=None)
        return None if position is None else position + 1 - sum(other < position for other in self.ignored)


@dataclass(frozen=True)
class AnsweredImage:
    """One image that a query was answered with, and its signals."""

    id: str
    rank: int  # from 1, without the ignored images
    positive: bool
    probability: float | None = None
    box: Box | None = None  # the one shown
    true_box: Box | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    path: Path | None = None


@dataclass(frozen=True)
class JudgedQuery:
    query_id: str
    stratum: str  # value of the attribute that figures are broken down by; "" if the query has none
    values: Mapping[str, float]  # metric → value; empty for a query without positives
    best_id: str
    best_probability: float | None
    seconds: float  # of the search
    encode_seconds: float = 0.0  # from the file to the encoded query
    stages: Mapping[str, float] = field(default_factory=dict)  # stage of the search → its seconds
    positive_ranks: PositiveRanks | None = None  # None for a query without positives
    answers: tuple[AnsweredImage, ...] = ()  # the first few, and the first positive if it comes later
    path: Path | None = None
    box: Box | None = None  # the part of the query image that was searched for

    @property
    def rank_seconds(self) -> float:
        """Until the order of the images is known."""
        return self.seconds - self.stages.get(LOCATE, 0.0)


@dataclass(frozen=True)
class Bin:
    """Positives with similar values of a property, and how well they are found."""

    label: str
    positives: int  # pairs of a query and a positive
    values: Mapping[str, Mapping[str, float]]  # query → metric → value; queries without such a positive are left out


@dataclass(frozen=True)
class Breakdown:
    """One property of the positives, split into bins."""

    name: str
    convention: str
    bins: tuple[Bin, ...]
    left_out: int = 0  # positives whose value is unknown


@dataclass(frozen=True)
class Point:
    id: str
    x: float
    y: float
    kind: str  # query | database
    label: str = ""


@dataclass(frozen=True)
class EmbeddingMap:
    """Images on a plane, similar ones near each other."""

    method: str  # in one sentence, for the reader
    points: tuple[Point, ...]
    total: int  # images and queries in the data set; the points may be a sample


@dataclass(frozen=True)
class GeoPosition:
    """Where an image was taken, in degrees, and the camera's heading clockwise from north."""

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
    cached: int = 0  # images whose features came from the cache: encoding times are not those of the network
    strata: tuple[Breakdown, ...] = ()
    map: EmbeddingMap | None = None
    query_positions: Mapping[str, GeoPosition] = field(default_factory=dict)
    image_positions: Mapping[str, GeoPosition] = field(default_factory=dict)  # of the recorded answers

    @property
    def judged(self) -> tuple[JudgedQuery, ...]:
        """The queries that have values."""
        return tuple(query for query in self.queries if query.values)

    def values(self, metric: str) -> list[float]:
        return [query.values[metric] for query in self.judged]


def find_positive_ranks(ids: Sequence[str], judgement: Judgement, boxes: Mapping[str, Box]) -> PositiveRanks:
    """`boxes` are those shown for the ids."""
    positives = list_positives(judgement)
    positions = find_positions(ids, {*positives, *judgement.ignored})
    boxed = [id for id in positives if id in judgement.boxes]
    both = [id for id in boxed if id in boxes]
    shown, true = (np.array([side[id] for id in both], np.float64).reshape(-1, 4) for side in (boxes, judgement.boxes))
    overlaps = dict.fromkeys(boxed, 0.0) | dict(zip(both, iou(shown, true).tolist(), strict=True))
    return PositiveRanks(
        {id: positions.get(id) for id in positives},
        tuple(sorted(positions[id] for id in judgement.ignored if id in positions)),
        overlaps,
        {id: judgement.grades[id] for id in positives if judgement.grades[id] != 1},
    )


def list_answers(ranking: Ranking, judgement: Judgement, paths: Mapping[str, Path]) -> tuple[AnsweredImage, ...]:
    """The first answers that are not ignored, and the first positive if it comes later."""
    answers: list[AnsweredImage] = []
    rank = 0
    wanted = bool(list_positives(judgement))
    for id in ranking.ids:
        if id in judgement.ignored:
            continue
        rank += 1
        positive = judgement.grades.get(id, 0) > 0
        if rank <= ANSWERS or (positive and wanted):
            answers.append(
                AnsweredImage(
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
        if rank >= ANSWERS and not wanted:
            break
    return tuple(answers)


def add_positions(result: RunResult, dataset: Dataset) -> RunResult:
    """The result with the positions that the data set knows of the queries and of their recorded answers."""
    shown = {answer.id for query in result.queries for answer in query.answers}
    return replace(
        result,
        query_positions=_read_positions(dataset.queries),
        image_positions=_read_positions(ref for ref in dataset.database if ref.id in shown),
    )


def _read_positions(refs: Iterable[ImageRef]) -> dict[str, GeoPosition]:
    return {
        ref.id: GeoPosition(*position, find_number(ref.attributes, "heading"))
        for ref in refs
        if (position := find_position(ref.attributes))
    }

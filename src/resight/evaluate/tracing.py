"""One ranking and what is true of it in; out what is kept of it: where its positives are, and its first answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from resight.evaluate.judging import list_positives, measure_overlaps
from resight.evaluate.places import find_places
from resight.evaluate.results import Answered, Trace
from resight.types import Box, Judgement, Ranking

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

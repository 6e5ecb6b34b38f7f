"""The three protocols on the real ground truth of ROxford and RParis, against a second implementation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.data import unpickle
from resight.evaluate import judge
from resight.types import Judgement

KAPPAS = (1, 5, 10)
RANKINGS = 200
# Protocol → lists of the ground truth that are positives, and that are ignored.
LISTS = {
    "easy": (("easy",), ("junk", "hard")),
    "medium": (("easy", "hard"), ("junk",)),
    "hard": (("hard",), ("junk", "easy")),
}


@pytest.mark.parametrize(("file", "images"), [("gnd_roxford5k.pkl", 4993), ("gnd_rparis6k.pkl", 6322)])
def test_random_rankings_of_the_real_truth_agree_to_1e_12(real_data: Path, file: str, images: int) -> None:
    truth = unpickle.load(real_data / "revisited" / file)
    assert (len(truth["imlist"]), len(truth["gnd"])) == (images, 70)
    generator = np.random.default_rng(0)
    compared = capped = 0
    for number in range(RANKINGS):
        query = truth["gnd"][number % 70]
        rows = blend_in(generator.permutation(images), query, generator)
        names = [truth["imlist"][row] for row in rows]
        values = judge(names, read_judgement(query, truth["imlist"]), [*list_metrics()])
        for protocol, (positive, ignored) in LISTS.items():
            expected = score_revisited(rows, collect(query, positive), collect(query, ignored))
            found = [values[f"{protocol}/ap_trapezoid"]]
            found += [values[f"{protocol}/precision_revisited@{kappa}"] for kappa in KAPPAS]
            assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
            compared += not np.isnan(expected[0])
            capped += 0 < len(collect(query, positive)) < KAPPAS[-1] and expected[-1] > 0.99
    assert capped > 0
    assert compared > 500  # of 600: two queries of ROxford have no easy positive


def test_second_implementation_gives_what_is_worked_by_hand() -> None:
    # Junk 9 leaves; 5 and 7 are then at places 0 and 2: AP = ((1 + 1) / 2 + (1 / 2 + 2 / 3) / 2) / 2.
    values = score_revisited(np.array([5, 9, 1, 7, 2]), np.array([5, 7]), np.array([9]))
    assert values == pytest.approx([(1 + (1 / 2 + 2 / 3) / 2) / 2, 1.0, 2 / 3, 2 / 3])


def list_metrics() -> list[str]:
    metrics = ["ap_trapezoid", *(f"precision_revisited@{kappa}" for kappa in KAPPAS)]
    return [f"{protocol}/{metric}" for protocol in LISTS for metric in metrics]


def read_judgement(query: dict[str, Any], names: list[str]) -> Judgement:
    grades = {names[row]: 2 for row in query["easy"]} | {names[row]: 1 for row in query["hard"]}
    return Judgement(grades, frozenset(names[row] for row in query["junk"]))


def blend_in(rows: np.ndarray, query: dict[str, Any], generator: np.random.Generator) -> np.ndarray:
    """The ranking with some or all positives and junk drawn to the front, so that the figures are not all near 0."""
    drawn = generator.random(len(rows)) < generator.choice([0.5, 1.0])
    marked = np.isin(rows, collect(query, ("easy", "hard", "junk"))) & drawn
    keys = np.where(marked, generator.integers(-1, generator.choice([0, 300]), len(rows)), np.arange(len(rows)))
    return rows[np.argsort(keys, kind="stable")]


def collect(query: dict[str, Any], keys: tuple[str, ...]) -> np.ndarray:
    return np.array([row for key in keys for row in query[key]], dtype=int)


def score_revisited(rows: np.ndarray, positive: np.ndarray, junk: np.ndarray) -> list[float]:
    """AP and precision at each κ, as the benchmark describes them; NaN for a query without positives.

    Places are those in the whole ranking, from 0. Each positive moves up by the junk above it. AP adds one trapezoid
    a positive, 1 / P wide. κ is cut down to the last positive's rank.
    """
    if len(positive) == 0:
        return [float("nan")] * (1 + len(KAPPAS))
    place_of = {int(row): place for place, row in enumerate(rows)}
    junk_places = sorted(place_of[int(row)] for row in junk)
    places, passed = [], 0
    for place in sorted(place_of[int(row)] for row in positive):
        while passed < len(junk_places) and junk_places[passed] < place:
            passed += 1
        places.append(place - passed)
    area = 0.0
    for found, place in enumerate(places):
        left = 1.0 if place == 0 else found / place
        right = (found + 1) / (place + 1)
        area += (left + right) * (1.0 / len(places)) / 2.0
    precisions = []
    for kappa in KAPPAS:
        cut = min(places[-1] + 1, kappa)
        precisions.append(sum(place + 1 <= cut for place in places) / cut)
    return [area, *precisions]

"""Where a query was taken: a Ranking's probabilities and the images' positions in, a PositionEstimate out.

Each of the best candidates votes for its position, with its probability. At most one of them is right:

    w_i = PRIOR · (p_i / (1 - p_i))^SHARPNESS      P(i) = w_i / (1 + Σ w)      P(none) = 1 / (1 + Σ w)

The estimate is the mean of the candidates about the densest place, by a Gaussian kernel of SCALE metres on the sphere.
`probability` is the sum of P(i) within two scales of it: that the place is in the collection, and is this one. Below
THRESHOLD the answer is "don't know". `metres` holds COVERAGE of the candidates' weight (none of them being left out),
widened by the usual distance between two photos of the same place. So two places that look alike give a wide circle.

The probability of a pair was fitted on objects that are in one or two of many images; a street is in many images, and a
user who asks expects it there: PRIOR and SHARPNESS correct for that. They were chosen from a small grid on the database
of Halensee (157 street photos, each searched among the others) with a look at its 67 queries;
docs/guides/places.md reports how often the circle held the truth.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.geodesy import (
    PositionEstimate,
    Positions,
    find_number,
    find_position,
    metres_apart,
    to_degrees,
    to_vectors,
)
from resight.types import Attribute, IntArray, Ranking

CANDIDATES = 30
PRIOR, SHARPNESS = 10.0, 1.25
SCALE = 25.0  # metres along each axis between two photos of the same place
COVERAGE, THRESHOLD = 0.9, 0.5
SUPPORT = 0.1  # least weight of an image that supports the estimate, as a share of the heaviest
SURE = 1e-6  # probabilities are clipped to SURE and 1 - SURE
Weights = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """Images that may show the place, best first, each with its odds against "none of them"."""

    rows: IntArray  # [n] of the Positions
    odds: Weights  # [n]


def estimate_position(ranking: Ranking, positions: Positions) -> PositionEstimate | None:
    """None if the ranking has no probabilities, or none of its images has a position."""
    candidates = weigh(ranking, {name: row for row, name in enumerate(positions.ids)})
    return summarise(candidates, positions) if len(candidates.rows) else None


def weigh(ranking: Ranking, rows: dict[str, int]) -> Candidates:
    """The best images that have a position; `rows` holds the row of each."""
    known = [name for name in list_best(ranking) if name in rows]
    chances = np.clip([ranking.probabilities[name] for name in known], SURE, 1 - SURE)
    odds = PRIOR * (chances / (1 - chances)) ** SHARPNESS
    return Candidates(np.array([rows[name] for name in known], np.int64), np.asarray(odds, np.float64))


def list_best(ranking: Ranking) -> list[str]:
    """The images that vote: the most probable ones, best first."""
    return sorted(ranking.probabilities, key=lambda name: (-ranking.probabilities[name], name))[:CANDIDATES]


def summarise(candidates: Candidates, positions: Positions) -> PositionEstimate:
    """Candidates, at least one → the estimate."""
    rows, odds = candidates.rows, candidates.odds
    vectors = to_vectors(positions.lats[rows], positions.lons[rows])
    near = np.exp(-0.5 * (metres_apart(vectors, vectors) / SCALE) ** 2)
    weights = odds * near[int(np.argmax(near @ odds))]
    centre = weights @ vectors
    centre /= np.linalg.norm(centre)
    distances = metres_apart(centre[None], vectors)[0]
    probability = float(odds[distances <= 2 * SCALE].sum() / (1 + odds.sum()))
    (lat,), (lon,) = to_degrees(centre[None])
    return PositionEstimate(
        lat=float(lat),
        lon=float(lon),
        metres=find_radius(distances, odds),
        coverage=COVERAGE,
        probability=probability,
        known=probability >= THRESHOLD,
        support=_list_support(weights, [positions.ids[row] for row in rows]),
    )


def find_radius(distances: Weights, weights: Weights) -> float:
    """Metres about the estimate that hold COVERAGE of the weights, widened by the offset between photos of a place."""
    order = np.argsort(distances, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    reached = float(distances[order][min(int(np.searchsorted(shares, COVERAGE)), len(order) - 1)])
    offset = SCALE * float(np.sqrt(-2 * np.log(1 - COVERAGE)))  # of a Gaussian on a plane
    return float(np.hypot(reached, offset))


def _list_support(weights: Weights, ids: Sequence[str]) -> tuple[str, ...]:
    order = np.argsort(-weights, kind="stable")
    return tuple(ids[row] for row in order if weights[row] >= SUPPORT * weights.max())


def gather_positions(images: Iterable[tuple[str, Mapping[str, Attribute]]]) -> Positions:
    """Positions of the images whose lat and lon are valid numbers, with the heading if it is a number."""
    ids: list[str] = []
    found: list[list[float]] = []
    for name, attributes in images:
        if (position := find_position(attributes)) is not None:
            heading = find_number(attributes, "heading")
            ids.append(name)
            found.append([*position, np.nan if heading is None else heading])
    lats, lons, headings = np.array(found, np.float64).reshape(-1, 3).T
    return Positions(tuple(ids), lats, lons, headings)

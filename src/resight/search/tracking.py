"""Frames of a video in, a PositionEstimate for each out: a filter over time (forward pass of a hidden Markov model).

The hidden state is the image that was taken where the camera is now, or none of them. From one frame to the next the
camera moves by a Gaussian of `step` metres, and now and then (`jump`) it is anywhere; images that look more than 90
degrees away from the last are `turn` times as likely. The weights of a frame's candidates come from `position.weigh`:

    α_t(i) ∝ w_t(i) · N · [ (1 - jump) Σ_j α_{t-1}(j) T(j → i) + jump · inside / N ]      α_t(none) ∝ 1 · (…)

Neighbouring frames err alike, so that each counts less than if they were independent: w is raised to `trust`. A frame
is answered from the frames so far; the candidates of the last one are in memory. `jump` and `trust` were chosen on the
67 frames of Halensee, for which docs/guides/places.md has figures.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from resight.geodesy import PositionEstimate, Positions, metres_apart, to_vectors, turn_between
from resight.plugins import check_range
from resight.search.position import SCALE, Candidates, Weights, summarise, weigh
from resight.types import Ranking

SHARP_TURN = 90.0  # degrees
ANYWHERE = 0.5  # probability that the first frame shows no place of the collection


@dataclass(frozen=True)
class Config:
    step: float = 30.0  # metres between two frames, about
    jump: float = 0.2
    turn: float = 0.2
    trust: float = 0.5

    def __post_init__(self) -> None:
        check_range("step", self.step, 0.1, 1e7)
        check_range("jump", self.jump, 1e-6, 1)
        check_range("turn", self.turn, 0, 1)
        check_range("trust", self.trust, 0, 1)


def track(
    rankings: Iterable[Ranking], positions: Positions, config: Config | None = None
) -> Iterator[PositionEstimate | None]:
    """One estimate per frame, as the frames come; None if no candidate of a frame has a position."""
    config = config or Config()
    vectors = to_vectors(positions.lats, positions.lons)
    rows = {name: row for row, name in enumerate(positions.ids)}
    before: Candidates | None = None
    for ranking in rankings:
        seen = weigh(ranking, rows)
        if not len(seen.rows):
            yield None
            continue
        expected = expect(before, seen, positions, vectors, config)
        before = Candidates(seen.rows, seen.odds**config.trust * expected)
        yield summarise(before, positions)


def expect(
    before: Candidates | None, now: Candidates, positions: Positions, vectors: Weights, config: Config
) -> Weights:
    """How much more likely each candidate is [n], given where the camera was; 1 at the first frame."""
    if before is None:
        return np.ones(len(now.rows))
    outside = 1 / (1 + before.odds.sum())
    shares = before.odds * outside  # of each image
    moves = move(before, now, positions, vectors, config)
    # A camera that was outside may be anywhere now, and one that was inside may have left.
    leaving = config.jump * ANYWHERE
    inside = (1 - config.jump) * (shares @ moves) * len(positions) + config.jump * (1 - outside) + leaving * outside
    nowhere = (1 - leaving) * outside + leaving * (1 - outside)
    return np.asarray((inside / nowhere) * ANYWHERE / (1 - ANYWHERE))


def move(before: Candidates, now: Candidates, positions: Positions, vectors: Weights, config: Config) -> Weights:
    """T [m, n]: the probability that the camera goes from a candidate of the last frame to one of this frame."""
    reach = np.hypot(config.step, np.sqrt(2) * SCALE)  # both images lie off the true positions of the camera
    from_there = np.exp(-0.5 * (metres_apart(vectors[before.rows], vectors) / reach) ** 2)
    for number, row in enumerate(before.rows):
        turned = turn_between(float(positions.headings[row]), positions.headings) > SHARP_TURN  # not where unknown
        from_there[number, turned] *= config.turn
    return np.asarray(from_there[:, now.rows] / np.maximum(from_there.sum(axis=1, keepdims=True), 1e-12))

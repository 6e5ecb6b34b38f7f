"""Priors of a match: what is known before any picture is compared. Entries in, the candidates of each out.

    within_km         the positions in the two collections are at most this far apart
    diameter_ratio    the larger diameter is at most this many times the smaller

Priors are exact: they are computed from the positions of all entries, before the search, which then ranks their
candidates alone. An entry without position or diameter is an error, because a prior that does not hold for some entries
would hide their matches.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.audit.crater_entries import place, to_chord
from resight.audit.match.match_entries import MatchEntry
from resight.errors import InputError
from resight.geodesy import RADIUS, to_vectors
from resight.types import IntArray

DISTANCE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(km|m)\s*")
SLACK = 1 + 1e-12  # of rounding


@dataclass(frozen=True)
class Priors:
    within_km: float | None = None
    diameter_ratio: float | None = None

    def __post_init__(self) -> None:
        if self.within_km is not None and not self.within_km > 0:
            raise _refuse("a distance above 0", f"{self.within_km:g} km", "e.g. --within 30km")
        if self.diameter_ratio is not None and not self.diameter_ratio >= 1:
            raise _refuse("a ratio of at least 1", f"{self.diameter_ratio:g}", "e.g. --diameter-ratio 1.3")

    def __bool__(self) -> bool:
        return self.within_km is not None or self.diameter_ratio is not None


def parse_distance(text: str) -> float:
    """ "30km" and "500m" → kilometres."""
    found = DISTANCE.fullmatch(text)
    if found is None:
        raise _refuse("a number with its unit, km or m", text, "e.g. --within 30km")
    return float(found[1]) / (1000 if found[2] == "m" else 1)


def list_allowed(a: Sequence[MatchEntry], b: Sequence[MatchEntry], priors: Priors) -> list[IntArray]:
    """For each entry of `a` the numbers of the entries of `b` that the priors allow, in ascending order."""
    if priors.diameter_ratio is not None:
        _require(a, b, "diameter", "crater_lat, crater_lon and diameter_km", [one.crater for one in (*a, *b)])
    if not b:
        return [np.zeros(0, np.int64) for _ in a]
    if priors.within_km is None:
        return _by_ratio(a, b, priors.diameter_ratio or np.inf)
    near = _list_near(a, b, priors.within_km)
    if priors.diameter_ratio is None:
        return near
    sizes, others = _diameters(a), _diameters(b)
    bound = priors.diameter_ratio * SLACK
    return [
        rows[np.maximum(others[rows] / size, size / others[rows]) <= bound]
        for size, rows in zip(sizes, near, strict=True)
    ]


def _list_near(a: Sequence[MatchEntry], b: Sequence[MatchEntry], within_km: float) -> list[IntArray]:
    from scipy.spatial import cKDTree  # only audits need scipy

    craters = [one.crater for one in (*a, *b) if one.crater]
    if craters:
        _require(a, b, "position", "crater_lat, crater_lon and diameter_km", [one.crater for one in (*a, *b)])
        globes = {one.radius_km for one in craters}
        if len(globes) > 1:
            raise _refuse("craters of one globe", f"radii of {sorted(globes)} km", "match collections of one body")
        radius, vectors = globes.pop(), place(craters)
    else:
        places = [one.position for one in (*a, *b)]
        _require(a, b, "position", "lat and lon on Earth, or crater_lat, crater_lon and diameter_km", places)
        radius = RADIUS / 1000
        known = np.array([place for place in places if place], np.float64)
        vectors = radius * to_vectors(known[:, 0], known[:, 1])
    found = cKDTree(vectors[len(a) :]).query_ball_point(
        vectors[: len(a)], to_chord(within_km, radius) * SLACK, return_sorted=True
    )
    return [np.array(rows, np.int64) for rows in found]


def _by_ratio(a: Sequence[MatchEntry], b: Sequence[MatchEntry], ratio: float) -> list[IntArray]:
    sizes, others = _diameters(a), _diameters(b)
    order = np.argsort(others, kind="stable")
    first = np.searchsorted(others[order], sizes / (ratio * SLACK), side="left")
    last = np.searchsorted(others[order], sizes * ratio * SLACK, side="right")
    return [np.sort(order[low:high]) for low, high in zip(first.tolist(), last.tolist(), strict=True)]


def _diameters(entries: Sequence[MatchEntry]) -> NDArray[np.float64]:
    return np.array([one.crater.diameter_km for one in entries if one.crater], np.float64)


def _require(
    a: Sequence[MatchEntry], b: Sequence[MatchEntry], what: str, attributes: str, known: Sequence[object]
) -> None:
    missing = [one.ids[0] for one, value in zip((*a, *b), known, strict=True) if value is None]
    if missing:
        raise InputError(
            f"{len(missing):,} of {len(known):,} entries have no {what}",
            expected=f"the attributes {attributes}",
            actual=", ".join(map(repr, missing[:3])) + (" …" if len(missing) > 3 else ""),
            fix="index the images with these attributes, or leave out the option",
        )


def _refuse(expected: str, actual: str, fix: str) -> InputError:
    return InputError("no such prior", expected=expected, actual=actual, fix=fix)

"""Pairs of craters whose circles coincide, by their positions: craters in, Overlaps out.

Craters are compared with those of about their own size nearby: circles that share a part t of their union differ in
size by at most a factor 1/√t. So craters are sorted into classes of size, each with a tree of its positions on the
globe, and only pairs of one class or of two neighbouring ones are measured: never all with all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.audit.crater_entries import place, to_arc, to_chord
from resight.data.maps.crater_view import Circle, CraterView
from resight.errors import InputError
from resight.types import IntArray

Floats = NDArray[np.float64]
STEPS = 60  # of the bisection


@dataclass(frozen=True)
class Overlap:
    """Two circles: numbers of the craters, a < b."""

    a: int
    b: int
    iou: float
    offset: float  # of the centres, in diameters of the larger
    scale_ratio: float  # diameter of b in that of a
    offset_km: float | None = None  # on the globe; None: unknown


def find_overlaps(craters: Sequence[CraterView], least: float, split: int | None = None) -> list[Overlap]:
    """All pairs with an intersection over union of at least `least`, by a and b.

    With `split`, only pairs of one crater before that number and one from there on.
    """
    if not 0.05 <= least <= 1:
        raise InputError(
            "circles that hardly overlap cannot be listed",
            expected="an intersection over union of 0.05 to 1",
            actual=f"{least:g}",
            fix="give at least 0.05",
        )
    radii = np.array([crater.radius_km for crater in craters], np.float64)
    found: list[Overlap] = []
    for radius in np.unique(radii).tolist():  # craters of two globes never coincide
        rows = np.flatnonzero(radii == radius)
        found += _find_on_globe([craters[row] for row in rows.tolist()], rows, radius, least, split)
    return sorted(found, key=lambda one: (one.a, one.b))


def measure_ious(distances: Floats, one: Floats, two: Floats) -> Floats:
    """Intersection over union of discs at these distances, with radii `one` and `two`: all [n]."""
    small, large = np.minimum(one, two), np.maximum(one, two)
    apart = np.maximum(distances, 1e-300)
    # Where one disc lies in the other, or both apart, the angles are 0 or π by clipping.
    area = np.zeros_like(apart)
    for radius, other in ((small, large), (large, small)):
        angle = np.arccos(np.clip((apart**2 + radius**2 - other**2) / (2 * apart * radius), -1, 1))
        area += radius**2 * (angle - np.sin(angle) * np.cos(angle))
    return np.asarray(area / (np.pi * (small**2 + large**2) - area))


def farthest(least: float) -> float:
    """The distance, in radii, at which two equal discs still share `least` of their union; unequal ones share less."""
    low, high = 0.0, 2.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if Circle(0, 0, 1).iou(Circle(middle, 0, 1)) >= least else (low, middle)
    return high


def _find_on_globe(
    craters: Sequence[CraterView], rows: IntArray, radius: float, least: float, split: int | None
) -> Iterator[Overlap]:
    points, diameters = place(craters), np.array([crater.diameter_km for crater in craters], np.float64)
    pairs = list(_list_near(points, diameters, radius, least))
    if not pairs:
        return
    together = np.sort(np.concatenate(pairs), axis=1)
    first, second = together.T
    distances = to_arc(np.linalg.norm(points[first] - points[second], axis=1), radius)
    ious = measure_ious(distances, diameters[first] / 2, diameters[second] / 2)
    keep = ious >= least
    if split is not None:
        keep &= (rows[first] < split) & (rows[second] >= split)
    for a, b, iou, distance in zip(first[keep], second[keep], ious[keep], distances[keep], strict=True):
        larger = max(diameters[a], diameters[b])
        yield Overlap(
            int(rows[a]), int(rows[b]), float(iou), float(distance / larger), diameters[b] / diameters[a], distance
        )


def _list_near(points: Floats, diameters: Floats, radius: float, least: float) -> Iterator[IntArray]:
    """Pairs [n, 2] that may overlap enough, each once."""
    from scipy.spatial import cKDTree  # only audits need scipy

    step = -np.log(least) / 2 + 1e-9  # logarithm of the largest ratio of two diameters
    classes = np.floor(np.log(diameters) / step).astype(np.int64)
    members = {int(one): np.flatnonzero(classes == one) for one in np.unique(classes)}
    trees = {one: cKDTree(points[some]) for one, some in members.items()}
    for one, tree in trees.items():
        for other in (one, one + 1):
            if other not in trees:
                continue
            reach = to_chord(farthest(least) * diameters[members[other]].max() / 2, radius) * (1 + 1e-9)
            if one == other:
                yield members[one][tree.query_pairs(reach, output_type="ndarray")]
            else:
                near = tree.sparse_distance_matrix(trees[other], reach, output_type="ndarray")
                yield np.stack([members[one][near["i"]], members[other][near["j"]]], axis=1)

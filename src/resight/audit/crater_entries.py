"""The craters of a collection: stored images in, one Entry per crater out.

Several crops may show one crater at several scales: they have the same `label`, and make one entry. A collection counts
as one of craters if every image has position and diameter (resight.data.maps.crater_view). Positions are unit vectors
times the radius of the globe, so that neighbours are found without special cases at the poles and the antimeridian.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.data.maps.crater_view import CraterView, read_crater_view
from resight.errors import InputError
from resight.geodesy import to_vectors
from resight.store import ImageRecord


@dataclass(frozen=True)
class Entry:
    """A crater with its crops."""

    label: str
    ids: tuple[str, ...]  # of the images
    crater: CraterView
    sides: tuple[float, ...] = ()  # of the crops, in diameters; 0: unknown


def is_of_craters(records: Iterable[ImageRecord]) -> bool:
    """Whether every image, and at least one, is a crop of a crater with position and diameter."""
    some = False
    for record in records:
        some = True
        if read_crater_view(record.attributes) is None:
            return False
    return some


def list_entries(records: Iterable[ImageRecord]) -> list[Entry]:
    """In the order of their first crops; an image that is no crop of a crater is an InputError."""
    crops: dict[str, list[tuple[str, CraterView]]] = {}
    for record in records:
        view = read_crater_view(record.attributes)
        if view is None:
            raise InputError(
                f"{record.id!r} is not a crop of a crater with a known place",
                expected="the attributes crater_lat, crater_lon and diameter_km on every image",
                actual=", ".join(sorted(record.attributes)) or "no attributes",
                fix="make the collection with `resight craters`, or give the attributes in a manifest",
            )
        crops.setdefault(view.label or record.id, []).append((record.id, view))
    return [
        Entry(label, tuple(id for id, _ in some), _agree(label, some), tuple(view.view for _, view in some))
        for label, some in crops.items()
    ]


def place(craters: Sequence[CraterView]) -> NDArray[np.float64]:
    """Centres [n, 3] in kilometres from the middle of the globe."""
    lats, lons = [crater.lat for crater in craters], [crater.lon for crater in craters]
    radii = np.array([crater.radius_km for crater in craters], np.float64)
    return np.asarray(to_vectors(lats, lons) * radii[:, None])


def to_chord(km: float, radius_km: float) -> float:
    """The straight distance of two points on a globe that are `km` apart along its surface."""
    return float(2 * radius_km * np.sin(min(km / (2 * radius_km), np.pi / 2)))


def to_arc(chords: NDArray[np.float64], radius_km: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """The inverse of `to_chord`, for many."""
    return np.asarray(2 * radius_km * np.arcsin(np.clip(chords / (2 * radius_km), 0, 1)))


def _agree(label: str, crops: Sequence[tuple[str, CraterView]]) -> CraterView:
    """The crater that all crops show; crops of one label at two places are two craters, which is an error."""
    (first, view), *others = crops
    for id, other in others:
        if (other.lat, other.lon, other.diameter_km, other.radius_km) != (
            view.lat,
            view.lon,
            view.diameter_km,
            view.radius_km,
        ):
            raise InputError(
                f"two craters have the label {label!r}",
                expected="one label per crater: its crops have the same position and diameter",
                actual=f"{first!r}: {view.lat:g}, {view.lon:g}, {view.diameter_km:g} km; "
                f"{id!r}: {other.lat:g}, {other.lon:g}, {other.diameter_km:g} km",
                fix="give each crater a label of its own, or compare the pictures with --by image",
            )
    return view

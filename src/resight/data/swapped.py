"""Have latitude and longitude changed places? Positions of a database and its queries in, a ManifestError or nothing.

A latitude beyond 90 degrees is refused where it is read. In most of Europe and Africa both orders are possible, and a
table by itself cannot tell. Two tables can: where every query lies more than FAR from all images as it is written, and
nearly all of them within NEAR when lat and lon change places, one of the two was written in another order. Which of
them it is, nobody can tell from here.
"""

from collections.abc import Sequence

import numpy as np

from resight.data.nearby import Places
from resight.errors import ManifestError
from resight.types import ImageRef

FAR, NEAR = 50_000.0, 1_000.0  # metres
NEARLY_ALL = 0.9
LOOKED_AT = 200  # queries


def refuse_swapped(places: Places, queries: Sequence[ImageRef], name: str) -> None:
    placed = [ref for ref in queries if {"lat", "lon"} <= ref.attributes.keys()]
    chosen = [placed[row] for row in np.linspace(0, len(placed) - 1, min(len(placed), LOOKED_AT)).astype(int)]
    points = [(float(ref.attributes["lat"]), float(ref.attributes["lon"])) for ref in chosen]
    if not points or not places.ids or any(places.within(lat, lon, FAR) for lat, lon in points):
        return
    turned = sum(abs(lon) <= 90 and bool(places.within(lon, lat, NEAR)) for lat, lon in points)
    if turned >= NEARLY_ALL * len(points):
        lat, lon = points[0]
        raise ManifestError(
            f"{name}: lat and lon of the queries, or those of the database, look swapped",
            expected=f"queries within {FAR / 1000:g} km of the database",
            actual=f"none is; with lat and lon exchanged, {turned} of {len(points)} are within {NEAR / 1000:g} km, "
            f"e.g. {chosen[0].id!r} at {lat:g}, {lon:g}",
            fix="exchange the two columns on the side that is wrong",
        )

"""What is matched: stored images in, MatchEntries out.

Craters are matched as craters: all crops of one label are one entry, so that the best of its views counts. Other images
are matched one by one.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from resight.audit.crater_entries import is_of_craters, list_entries
from resight.collection.view import View
from resight.data.maps.crater_view import CraterView, read_crater_view
from resight.geodesy import Position, find_position, metres_between
from resight.store import ImageRecord


@dataclass(frozen=True)
class MatchEntry:
    name: str  # the label of a crater, or the id of an image
    ids: tuple[str, ...]  # of its images
    crater: CraterView | None = None
    position: Position | None = None  # on the Earth
    label: str = ""  # of an image, if it has one
    sides: tuple[float, ...] = ()  # of the crops of a crater, in diameters; 0: unknown

    def find_side(self, name: str) -> float:
        return self.sides[self.ids.index(name)] if self.sides else 0.0

    def distance_km(self, other: "MatchEntry") -> float | None:
        """None unless both positions are known, on one globe."""
        if self.crater and other.crater:
            return self.crater.distance_km(other.crater) if self.crater.radius_km == other.crater.radius_km else None
        if self.position and other.position:
            return float(metres_between(*self.position, *other.position)) / 1000
        return None

    def diameter_ratio(self, other: "MatchEntry") -> float | None:
        """The other's diameter in this one's."""
        return other.crater.diameter_km / self.crater.diameter_km if self.crater and other.crater else None


def are_craters(*views: View) -> bool:
    return all(is_of_craters(view.records()) for view in views)


def list_match_entries(records: Iterable[ImageRecord], craters: bool) -> list[MatchEntry]:
    if craters:
        return [
            MatchEntry(one.label, one.ids, one.crater, label=one.label, sides=one.sides)
            for one in list_entries(records)
        ]
    return [
        MatchEntry(
            record.id,
            (record.id,),
            read_crater_view(record.attributes),
            find_position(record.attributes),
            str(record.attributes.get("label", "")),
        )
        for record in records
    ]

"""The attributes of all images of one state: filters → ids, a summary to filter by, and positions.

In: a state of the store. Out: an AttributeTable. It is read once; the table of a later state reads only the images that
have changed. Values lie in columns, one per attribute, made when a filter first names it.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from resight.collection.crater_positions import CraterPositions, gather_craters
from resight.geodesy import Positions, find_number
from resight.search.filters import Circle, Filter, Group, make_column, make_position_column, refuse_name
from resight.search.position import gather_positions
from resight.store import Reader
from resight.types import Attribute

NAMES, VALUES = 50, 50  # at most in a summary
Kind = Literal["number", "text", "boolean"]


@dataclass(frozen=True)
class AttributeSummary:
    """One attribute over all images."""

    name: str
    kind: Kind
    count: int  # images that have it
    minimum: float | None = None  # of numbers
    maximum: float | None = None
    values: tuple[tuple[Attribute, int], ...] = ()  # the most common, with how many images have each


class AttributeTable:
    def __init__(self, stamps: Mapping[str, int], rows: Mapping[str, Mapping[str, Attribute]]) -> None:
        """`rows`: id → attributes, in the order of the store."""
        self._stamps = stamps
        self._rows = rows
        self._made: dict[str, Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def read(cls, reader: Reader, before: "AttributeTable | None" = None) -> "AttributeTable":
        """`before` is the table of an earlier state of the same collection."""
        stamps = reader.stamps
        old, known = (before._stamps, before._rows) if before else ({}, {})
        changed = [name for name, stamp in stamps.items() if old.get(name) != stamp]
        read = {record.id: record.attributes for record in reader.metadata(changed)}
        return cls(stamps, {name: read[name] if name in read else known[name] for name in stamps})

    def filter(self, filters: Sequence[Filter]) -> frozenset[str]:
        """The ids of the images that meet all filters."""
        keep = np.ones(len(self._rows), bool)
        for one in filters:
            keep &= self._meet(one)
        ids = list(self._rows)
        return frozenset(ids[row] for row in np.flatnonzero(keep))

    @property
    def names(self) -> frozenset[str]:
        """Every attribute that at least one image has."""
        names: frozenset[str] = self._once("names", lambda: frozenset(chain.from_iterable(self._rows.values())))
        return names

    @property
    def positions(self) -> Positions:
        positions: Positions = self._once("positions", lambda: gather_positions(self._rows.items()))
        return positions

    @property
    def craters(self) -> CraterPositions:
        craters: CraterPositions = self._once("craters", lambda: gather_craters(self._rows.items()))
        return craters

    def summarise(self) -> tuple[AttributeSummary, ...]:
        """At most NAMES attributes, those that most images have, each with its VALUES most common values."""
        summary: tuple[AttributeSummary, ...] = self._once("summary", lambda: summarise(list(self._rows.values())))
        return summary

    def _meet(self, condition: Filter) -> Any:
        rows = self._rows.values()
        if isinstance(condition, Group):
            combine = np.logical_and if condition.all else np.logical_or
            return combine.reduce([self._meet(part) for part in condition.parts])
        if isinstance(condition, Circle):
            return self._once("position column", lambda: make_position_column(rows)).meet(condition)
        name = condition.name
        column = self._once(f"column {name}", lambda: make_column(rows, name))
        if rows and not len(column.texts):
            raise refuse_name(name, self.names)
        return column.meet(condition)

    def _once(self, key: str, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]


def summarise(rows: Sequence[Mapping[str, Attribute]]) -> tuple[AttributeSummary, ...]:
    counts = Counter(name for attributes in rows for name in attributes)
    names = sorted(counts, key=lambda name: (-counts[name], name))[:NAMES]
    return tuple(_summarise(name, [attributes[name] for attributes in rows if name in attributes]) for name in names)


def _summarise(name: str, held: Sequence[Attribute]) -> AttributeSummary:
    # By type, too: True equals 1, and is another value.
    counts = Counter((type(value), value) for value in held)
    common = sorted(counts.items(), key=lambda item: (-item[1], str(item[0][1])))[:VALUES]
    values = tuple((value, count) for (_, value), count in common)
    if all(isinstance(value, bool) for value in held):
        return AttributeSummary(name, "boolean", len(held), values=values)
    numbers = [find_number({name: value}, name) for value in held]
    known = [number for number in numbers if number is not None]
    if len(known) < len(held):
        return AttributeSummary(name, "text", len(held), values=values)
    return AttributeSummary(name, "number", len(held), min(known), max(known), values)

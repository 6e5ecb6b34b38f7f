"""The values of a paper's table: what it prints, and how to measure it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NONE = "—"  # a cell that the paper leaves empty


@dataclass(frozen=True)
class Best:
    """Alternatives of a cell, of which the best by one metric is shown."""

    by: str
    over: tuple[tuple[str, ...], ...]  # each alternative: overrides


@dataclass(frozen=True)
class Column:
    name: str
    metric: str = ""  # a metric of resight.evaluate.metrics, or a fact such as "params"
    set: tuple[str, ...] = ()  # overrides, as of --set
    recipe: Mapping[str, Any] = field(default_factory=dict)  # replaces keys of the table's recipe
    unit: str = "fraction"
    text: bool = False  # words: shown, never measured
    best: Best | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # every further key, for the kind


@dataclass(frozen=True)
class Published:
    """A cell of the paper."""

    value: float | None = None  # in the column's unit, as printed; None: the paper has none, or it cannot be read
    doubt: str = ""  # why the value may be wrong
    text: str = NONE  # as printed


@dataclass(frozen=True)
class PaperRow:
    name: str
    group: str = ""  # heading above the row
    set: tuple[str, ...] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict)
    published: tuple[Published, ...] = ()  # one per column
    skip: str = ""  # why nobody can measure this row
    best: Best | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperTable:
    name: str  # "craterbench/table_9"
    title: str
    source: str
    kind: str
    unit: str = "fraction"
    data: tuple[str, ...] = ()  # names of data sets
    hours: float | None = None  # estimate for two CPU cores
    notes: tuple[str, ...] = ()
    baseline: str = ""  # the row that directions are judged against; empty if there are no rows
    like: str = ""  # the published table whose directions are compared
    recipe: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    rows: tuple[PaperRow, ...] = ()
    best: Best | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paper(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def measured(self) -> tuple[Column, ...]:
        """The columns that are not words."""
        return tuple(column for column in self.columns if not column.text)

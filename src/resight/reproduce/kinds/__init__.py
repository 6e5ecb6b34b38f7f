"""Kinds of tables, one per module: a PaperTable in, a Cell for every chosen row and measured column out.

A kind is a module with

    measure(table, rows, run) → (row name, column name, Cell), for every row of `rows` and every column without `text`

and, if it needs them,

    check(table)          raises InputError if the table's settings do not fit the kind
    requirements(table)   → Requirements; default: the encoders of all experiments
"""

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from resight import plugins
from resight.recipe.tables import read_choice, write_choice
from resight.reproduce.experiments import list_experiments
from resight.reproduce.paper_table import PaperRow, PaperTable
from resight.reproduce.run import Cell, Run


class Kind(Protocol):
    def measure(self, table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
        """(row name, column name, cell), for every chosen row and every column that is not words."""
        ...


@dataclass(frozen=True)
class Requirements:
    """What a table needs beside its data sets."""

    weights: tuple[str, ...] = ()  # where they come from: "hub facebook/dino-vits16", "a file of your own"
    packages: tuple[str, ...] = ()  # names to import
    missing: tuple[str, ...] = ()  # what is not here, and how to get it, one line each


def find(kind: str) -> Kind:
    return cast(Kind, plugins.find(__name__, kind))


def find_requirements(table: PaperTable) -> Requirements:
    """Those that the kind states, or those of the encoders."""
    module = plugins.find(__name__, table.kind)
    if hasattr(module, "requirements"):
        return cast(Requirements, module.requirements(table))
    return require_encoders(table)


def require_encoders(table: PaperTable) -> Requirements:
    """The weights of every encoder that an experiment of the table uses, and which are missing here."""
    encoders = {
        json.dumps(write_choice(branch.encoder), sort_keys=True)
        for experiment in list_experiments(table, table.rows)
        if experiment.recipe is not None
        for branch in experiment.recipe.branches
    }
    found = [_describe(encoder) for encoder in sorted(encoders)]
    return Requirements(
        weights=tuple(dict.fromkeys(weights for weights, _ in found if weights)),
        missing=tuple(dict.fromkeys(missing for _, missing in found if missing)),
    )


@functools.cache
def _describe(encoder: str) -> tuple[str, str]:
    """Where the weights of an encoder (as JSON) come from, and what is missing here; no network is loaded."""
    from resight.encode.catalogue import describe

    entry = describe(read_choice(json.loads(encoder), "encoder"))
    return entry.weights, entry.missing

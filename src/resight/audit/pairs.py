"""Pairs of images that show the same thing, as an audit lists them: values, and the CSV file that holds them.

Columns: a, b (ids), kind, probability, group, keep. A pair whose two images are not in one group has neither.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from resight.data.truth_files import read_table
from resight.errors import InputError, ManifestError
from resight.whole_files import write_whole

Kind = Literal["copy", "near_copy", "same"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COLUMNS = ("a", "b", "kind", "probability", "group", "keep")


@dataclass(frozen=True)
class Pair:
    a: str
    b: str
    kind: Kind  # copy: the same bytes or pixels; near_copy: the same picture, changed; same: the same thing, other view
    probability: float  # that both show the very same thing
    group: int | None = None
    keep: str = ""  # of the group
    machine: float | None = None  # the probability before votes corrected it, which no file holds; None: the same

    @property
    def uncorrected(self) -> "Pair":
        """As the machine gave it: what votes are asked about, and what they correct."""
        return self if self.machine is None else replace(self, probability=self.machine, machine=None)


def parse_kinds(text: str) -> frozenset[Kind]:
    """ "copy,same" → the kinds it names."""
    wanted = {part.strip() for part in text.split(",") if part.strip()}
    unknown = wanted - set(KINDS)
    if unknown or not wanted:
        raise InputError(
            "there is no such kind of pair",
            expected=f"some of {', '.join(KINDS)}, with commas between them",
            actual=", ".join(sorted(unknown)) or "none",
            fix="e.g. --kinds copy,near_copy",
        )
    return frozenset(kind for kind in KINDS if kind in wanted)


def write_pairs(pairs: Iterable[Pair], path: Path) -> None:
    with write_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for pair in pairs:
            row = {name: getattr(pair, name) for name in COLUMNS} | {"probability": f"{pair.probability:.6f}"}
            table.writerow(row | {"group": "" if pair.group is None else pair.group})


def read_pairs(path: Path) -> list[Pair]:
    """What `write_pairs` wrote; only a and b have to be there."""
    return [_read(row, path, line) for line, row in read_table(path, ("a", "b"), "name the columns in the first line")]


def _read(row: Mapping[str, str], path: Path, line: int) -> Pair:
    kind = row.get("kind") or "same"
    try:
        chance = float(row.get("probability") or 1.0)
        group = int(row["group"]) if row.get("group") else None
        known = next(name for name in KINDS if name == kind)
    except (ValueError, StopIteration) as error:
        raise ManifestError(
            f"{path}, line {line}: not a pair",
            expected=f"kind one of {', '.join(KINDS)}, probability and group numbers",
            actual=", ".join(f"{name} {value}" for name, value in row.items()),
            fix="correct the line",
        ) from error
    return Pair(row["a"], row["b"], known, chance, group, row.get("keep", ""))

"""Judge verified pairs, choose which to list, and read and write pairs.csv.

The probability that both images show the same instance is logistic in the logarithm of the inliers and in the agreement
of the aligned pictures, or in that agreement alone if no key points match; `benchmarks/fit_pairs.py` fitted it on
photographs of two Python packages, changed in known ways. A near copy is the same picture: only shifted, turned, scaled
or cropped (no perspective), one of the two nearly covered by the other, and most windows in agreement. Everything else
is the same instance in another picture.

A pair that is not listed joins no group either, so that a listed pair names every group's keeper. Exact copies are
certain and bypass the choice. Columns of pairs.csv: a, b (ids), kind, probability, group, keep. A pair whose two images
are not in one group has neither group nor keep.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from resight.audit.dedup.groups import Check, Link, form_groups
from resight.audit.dedup.verify import Finding
from resight.data.truth_tables import read_table
from resight.errors import InputError, ManifestError
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer
from resight.search.calibration import Calibration, Signals, load

Kind = Literal["copy", "near_copy", "same"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COLUMNS = ("a", "b", "kind", "probability", "group", "keep")


@dataclass(frozen=True)
class Pair:
    a: str
    b: str
    kind: Kind  # copy: same bytes or pixels; near_copy: same picture, changed; same: same instance, other view
    probability: float  # that both show the same instance
    group: int | None = None
    keep: str = ""  # id of the group's image to keep
    machine: float | None = None  # the probability before correction by votes; None: not corrected

    @property
    def uncorrected(self) -> "Pair":
        """With the estimated probability, before correction by votes."""
        return self if self.machine is None else replace(self, probability=self.machine, machine=None)


def parse_kinds(text: str) -> frozenset[Kind]:
    """ "copy,same" → the kinds it names."""
    wanted = {part.strip() for part in text.split(",") if part.strip()}
    unknown = wanted - set(KINDS)
    if unknown or not wanted:
        raise InputError(
            "unknown kind of pair",
            expected=f"some of {', '.join(KINDS)}, with commas between them",
            actual=", ".join(sorted(unknown)) or "none",
            fix="e.g. --kinds copy,near_copy",
        )
    return frozenset(kind for kind in KINDS if kind in wanted)


def write_pairs(pairs: Iterable[Pair], path: Path) -> None:
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file)
        table.writerow(COLUMNS)
        for pair in pairs:
            row = {name: getattr(pair, name) for name in COLUMNS} | {"probability": f"{pair.probability:.6f}"}
            row["group"] = "" if pair.group is None else pair.group
            table.writerow(row[name] for name in COLUMNS)


def read_pairs(path: Path) -> list[Pair]:
    """Read pairs.csv; only the columns a and b are required."""
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


FITTED = Path(__file__).with_name("calibration.json")
LEAST_AGREEMENT = 0.5
LEAST_SHARE = 0.8
MOST_PERSPECTIVE = 1.1


def judge(finding: Finding) -> float:
    signals = list_signals(finding)
    fitted = next(one for one in open_calibrations() if one.weights.keys() == signals.keys())
    return fitted.probability(fitted.log_odds(signals))


def classify(finding: Finding) -> Kind:
    laid = finding.registration
    covered = max(laid.share_a, laid.share_b) >= LEAST_SHARE and finding.perspective <= MOST_PERSPECTIVE
    return "near_copy" if covered and laid.agreement >= LEAST_AGREEMENT else "same"


def list_signals(finding: Finding) -> Signals:
    agreement = {"agreement": finding.registration.agreement}
    return {"inliers": float(finding.inliers), **agreement} if finding.inliers else agreement


@cache
def open_calibrations() -> tuple[Calibration, ...]:
    """The shipped calibrations: for pairs with matching key points, and for pairs without."""
    return tuple(load(FITTED))


@dataclass(frozen=True)
class Judged:
    """A finding with the probability that both show the same instance."""

    finding: Finding
    probability: float
    machine: float | None = None  # the probability before correction by votes; None: not corrected

    @property
    def kind(self) -> Kind:
        return classify(self.finding)

    def link(self, shift: int = 0) -> Link:
        """`shift` is the first row of the second side, if both are numbered together."""
        found, laid = self.finding, self.finding.registration
        return Link(found.a, found.b + shift, self.probability, laid.region_a, laid.region_b)


def list_within(
    ids: Sequence[str],
    order: Sequence[int],
    judged: Mapping[tuple[int, int], Judged],
    copies: Mapping[str, tuple[str, ...]],
    check: Check,
) -> list[Pair]:
    """Pairs within one collection. `check` may add to `judged`. Exact copies join the group of their representative."""
    centres = form_groups(order, [one.link() for one in judged.values()], check)
    by_id = {ids[row]: ids[centre] for row, centre in centres.items()}
    by_id |= {kept: kept for kept in copies if kept not in by_id}
    numbers = _number(order, ids, by_id)
    pairs = [_pair(ids[a], ids[b], one, by_id, numbers) for (a, b), one in judged.items()]
    exact = [(kept, other) for kept, others in copies.items() for other in others]
    return pairs + [Pair(a, b, "copy", 1.0, numbers[by_id[a]], by_id[a]) for a, b in exact]


def list_between(
    ids: tuple[Sequence[str], Sequence[str]],
    order: Sequence[int],
    judged: Mapping[tuple[int, int], Judged],
    equal: Iterable[tuple[int, int]],
    copies: Mapping[str, tuple[str, ...]],
) -> list[Pair]:
    """Pairs between two collections. Images of the first are kept; one of the second joins the group of one of them.

    `equal` lists pairs of rows that are exact copies; `copies` are those within the second collection.
    """
    shift = len(ids[0])
    exact = set(equal)
    links = [one.link(shift) for rows, one in judged.items() if rows not in exact]
    likeliest: dict[int, Link] = {}  # per image of the second collection
    for link in sorted([*links, *(Link(a, b + shift, 1.0) for a, b in exact)], key=lambda link: -link.probability):
        likeliest.setdefault(link.b, link)
    centres = form_groups(order, likeliest.values())
    numbers = {centre: number for number, centre in enumerate(dict.fromkeys(c for c in order if c in centres), start=1)}
    pairs: list[Pair] = []
    for a, b in sorted({*judged, *exact}):
        together = centres.get(b + shift) == a
        group, keep = (numbers[a], ids[0][a]) if together else (None, "")
        kind: Kind = "copy" if (a, b) in exact else judged[a, b].kind
        chances = (1.0, None) if (a, b) in exact else (judged[a, b].probability, judged[a, b].machine)
        names = (ids[1][b], *copies.get(ids[1][b], ()))
        pairs += [Pair(ids[0][a], name, kind, chances[0], group, keep, chances[1]) for name in names]
    return pairs


def _pair(a: str, b: str, one: Judged, centres: Mapping[str, str], numbers: Mapping[str, int]) -> Pair:
    """The image to keep comes first, if it is one of the two."""
    together = a in centres and centres[a] == centres.get(b)
    if not together:
        return Pair(a, b, one.kind, one.probability, machine=one.machine)
    keep = centres[a]
    a, b = (b, a) if b == keep else (a, b)
    return Pair(a, b, one.kind, one.probability, numbers[keep], keep, one.machine)


def _number(order: Sequence[int], ids: Sequence[str], centres: Mapping[str, str]) -> dict[str, int]:
    """Number groups from 1, in the order of their kept images."""
    kept = set(centres.values())
    return {name: number for number, name in enumerate((ids[row] for row in order if ids[row] in kept), start=1)}


RowPair = tuple[int, int]


def choose(judged: Mapping[RowPair, Judged], kinds: Collection[Kind], least: float) -> dict[RowPair, Judged]:
    return {rows: one for rows, one in judged.items() if one.kind in kinds and one.probability >= least}


def find_cut(chances: Iterable[float], false_alarms: float) -> float:
    """The lowest probability at which the expected share of wrong pairs stays within `false_alarms`.

    Equally likely pairs are listed together or not at all; infinity if none may be listed.
    """
    cut, wrong = math.inf, 0.0
    ranked = sorted(chances, reverse=True)
    for count, chance in enumerate(ranked, start=1):
        wrong += 1 - chance
        if wrong > false_alarms * count + 1e-12:  # the share only grows from here on
            break
        if count == len(ranked) or ranked[count] < chance:
            cut = chance
    return cut

"""Entries of a crater catalogue that are the same crater: collections of crops in, a CircleReport out.

    position     the circles on the globe, by the attributes crater_lat, crater_lon and diameter_km
    alignment    the circles in the pictures: each crop is searched for, and the crops found are laid on it

Two entries are duplicates if their circles coincide, measured by intersection over union, not if their crops share
ground: neighbours and nested craters do. The probability is logistic in that overlap, and for aligned crops also in how
well their ground agrees; `benchmarks/dedup_craters.py --fit` fitted it. Groups are stars, as for pictures
(audit/dedup/groups.py): every entry coincides with the one to keep, which is the one that agrees best with the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from resight.audit.circles.aligned_crops import AlignedOverlap, align_candidates, list_crops
from resight.audit.circles.circle_overlap import Overlap, find_overlaps
from resight.audit.crater_entries import Entry, list_entries
from resight.audit.dedup.branches import require_same_spaces
from resight.audit.dedup.find_duplicates import Report, Settings
from resight.audit.dedup.groups import Link, form_groups
from resight.audit.dedup.pairs import Pair, find_cut
from resight.collection import Collection
from resight.search.calibration import Calibration, load
from resight.types import Skipped

By = Literal["position", "alignment"]
FITTED = Path(__file__).with_name("circle_calibration.json")
LEAST_IOU = 0.3  # circles that overlap less are never listed
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Named:
    """An entry: its label, and one of its images."""

    label: str
    id: str
    side: int = 0  # 0: of the first collection, 1: of the other


@dataclass(frozen=True)
class CirclePair:
    pair: Pair
    label_a: str
    label_b: str
    overlap: Overlap


@dataclass(frozen=True)
class CircleReport:
    by: By
    report: Report
    pairs: tuple[CirclePair, ...]  # in the order of report.pairs
    named: tuple[Named, ...]
    entries: tuple[Entry, ...]  # with positions; empty if the entries have none
    centres: Mapping[int, int]  # number of an entry → that of the entry to keep, itself included

    @property
    def groups(self) -> dict[int, list[int]]:
        """Kept entry → all entries of its group, the kept one first."""
        members: dict[int, list[int]] = {}
        for one, centre in sorted(self.centres.items()):
            if one != centre:
                members.setdefault(centre, [centre]).append(one)
        return members


def find_circles(
    collection: Collection,
    other: Collection | None = None,
    settings: Settings | None = None,
    *,
    by: By = "position",
    work: Path | None = None,
    progress: Progress | None = None,
) -> CircleReport:
    """`work` is a folder for the resume log of `alignment`; it may be deleted afterwards."""
    settings = settings or Settings()
    sides = [collection] if other is None else [collection, other]
    if by == "position":
        listed = [list_entries(side.records()) for side in sides]
        entries = tuple(entry for some in listed for entry in some)
        split = None if other is None else len(listed[0])
        overlaps: Sequence[Overlap] = find_overlaps([entry.crater for entry in entries], LEAST_IOU, split)
        named = tuple(Named(entry.label, entry.ids[0], side) for side, some in enumerate(listed) for entry in some)
        skipped: tuple[Skipped, ...] = ()
    else:
        if other is not None:
            require_same_spaces(collection, other)
        crops = [list_crops(side) for side in sides]
        named = tuple(Named(crop.label, crop.id, side) for side, some in enumerate(crops) for crop in some)
        overlaps, skipped = align_candidates(sides, crops, LEAST_IOU, work, progress)
        entries = ()
    return _report(by, named, entries, overlaps, settings, skipped)


def judge(overlap: Overlap) -> float:
    """The probability that both entries are the same crater."""
    signals = {"iou": overlap.iou}
    if isinstance(overlap, AlignedOverlap):
        signals["agreement"] = overlap.agreement
    fitted = next(one for one in open_calibrations() if one.weights.keys() == signals.keys())
    return fitted.probability(fitted.log_odds(signals))


@cache
def open_calibrations() -> tuple[Calibration, ...]:
    """The shipped calibrations: for positions, and for aligned crops."""
    return tuple(load(FITTED))


def _report(
    by: By,
    named: tuple[Named, ...],
    entries: tuple[Entry, ...],
    overlaps: Sequence[Overlap],
    settings: Settings,
    skipped: tuple[Skipped, ...],
) -> CircleReport:
    judged = [(overlap, judge(overlap)) for overlap in overlaps]
    chances = [settings.correct(chance) if settings.correct else chance for _, chance in judged]
    cut = settings.least
    if settings.false_alarms is not None:
        cut = max(cut, find_cut((chance for chance in chances if chance >= cut), settings.false_alarms))
    chosen = [(*one, chance) for one, chance in zip(judged, chances, strict=True) if chance >= cut]
    centres = form_groups(_order(named, [one for one, _, _ in chosen]), [Link(o.a, o.b, c) for o, _, c in chosen])
    numbers = {centre: number for number, centre in enumerate(sorted(set(centres.values())), start=1)}
    pairs = []
    for overlap, machine, chance in chosen:
        turned = centres.get(overlap.b) == overlap.b
        kept = _turn(overlap) if turned else overlap
        together = centres.get(kept.a) is not None and centres.get(kept.a) == centres.get(kept.b)
        group, keep = (numbers[centres[kept.a]], named[centres[kept.a]].id) if together else (None, "")
        uncorrected = machine if settings.correct else None
        pair = Pair(named[kept.a].id, named[kept.b].id, "same", chance, group, keep, uncorrected)
        pairs.append(CirclePair(pair, named[kept.a].label, named[kept.b].label, kept))
    pairs.sort(key=lambda one: (one.pair.group is None, one.pair.group or 0, -one.pair.probability, one.pair.a))
    listed = tuple(one.pair for one in pairs)
    wrong = sum(1 - pair.probability for pair in listed)
    report = Report(listed, len(named), len(numbers), len(overlaps), wrong, 0, skipped)
    return CircleReport(by, report, tuple(pairs), named, entries, centres)


def _order(named: Sequence[Named], overlaps: Sequence[Overlap]) -> list[int]:
    """Entries in the order in which they would be kept: of the first collection, agreeing with most, first listed."""
    agreeing = [0.0] * len(named)
    for overlap in overlaps:
        agreeing[overlap.a] += overlap.iou
        agreeing[overlap.b] += overlap.iou
    return sorted(range(len(named)), key=lambda one: (named[one].side, -round(agreeing[one], 9), one))


def _turn(overlap: Overlap) -> Overlap:
    return replace(overlap, a=overlap.b, b=overlap.a, scale_ratio=1 / overlap.scale_ratio)

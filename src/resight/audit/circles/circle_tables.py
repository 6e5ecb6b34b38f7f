"""The files of a deduplicated crater catalogue: a CircleReport in; the pairs, and the merged catalogue, as CSV out.

Columns of the pairs: those of every duplicate search (a, b, kind, probability, group, keep), then

    label_a, label_b    the entries in the catalogue
    offset_km           distance of the centres on the globe; empty for aligned crops
    offset              the same in diameters of the larger circle
    scale_ratio         diameter of b in that of a
    iou                 intersection over union of the two circles

The merged catalogue has one row per crater: id, lon, lat, diameter_km, entries (how many were merged) and merged (their
ids, with semicolons between them). Merged entries get the mean direction of their centres and their mean diameter; all
others stay as they are. For aligned crops the kept entry stays as it is, because positions are not trusted then.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from resight.audit.circles.find_circles import CircleReport
from resight.audit.crater_entries import Entry
from resight.audit.dedup.pairs import COLUMNS
from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer
from resight.geodesy import to_degrees, to_vectors

CIRCLE_COLUMNS = (*COLUMNS, "label_a", "label_b", "offset_km", "offset", "scale_ratio", "iou")
MERGED_COLUMNS = ("id", "lon", "lat", "diameter_km", "entries", "merged")


def write_circle_pairs(report: CircleReport, path: Path) -> None:
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file)
        table.writerow(CIRCLE_COLUMNS)
        for one in report.pairs:
            pair, overlap = one.pair, one.overlap
            group = "" if pair.group is None else pair.group
            distance = "" if overlap.offset_km is None else f"{overlap.offset_km:.4f}"
            sizes = (f"{overlap.offset:.4f}", f"{overlap.scale_ratio:.4f}", f"{overlap.iou:.4f}")
            judged = (pair.a, pair.b, pair.kind, f"{pair.probability:.6f}", group, pair.keep)
            table.writerow([*judged, one.label_a, one.label_b, distance, *sizes])


def write_merged(report: CircleReport, entries: Sequence[Entry], path: Path) -> int:
    """`entries` have positions, in the order of the report's numbers; returns the number of rows."""
    _check_labels(entries)
    wide = any(entry.crater.lon > 180 for entry in entries)
    dropped = {one for one, centre in report.centres.items() if one != centre}
    groups = report.groups
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file)
        table.writerow(MERGED_COLUMNS)
        for number, entry in enumerate(entries):
            if number in dropped:
                continue
            members = [entries[one] for one in groups.get(number, [number])]
            merges = len(members) > 1 and report.by == "position"
            lon, lat, diameter = average(members, wide) if merges else _read(entry)
            names = ";".join(one.label for one in members) if len(members) > 1 else ""
            table.writerow([entry.label, lon, lat, diameter, len(members), names])
    return len(entries) - len(dropped)


def average(entries: Sequence[Entry], wide: bool) -> tuple[float, float, float]:
    """Longitude (0 to 360 if `wide`, else -180 to 180), latitude and diameter of the mean circle."""
    middle = to_vectors([one.crater.lat for one in entries], [one.crater.lon for one in entries]).mean(axis=0)
    lats, lons = to_degrees(middle[None])
    lon = float(lons[0]) % 360 if wide else float(lons[0])
    return (
        round(lon, 7),
        round(float(lats[0]), 7),
        round(float(np.mean([one.crater.diameter_km for one in entries])), 6),
    )


def _read(entry: Entry) -> tuple[float, float, float]:
    return entry.crater.lon, entry.crater.lat, entry.crater.diameter_km


def _check_labels(entries: Sequence[Entry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.label in seen:
            raise InputError(
                "two entries to merge have the same id",
                expected="ids that no other entry has, in both catalogues",
                actual=repr(entry.label),
                fix="rename them, or leave out --merged",
            )
        seen.add(entry.label)

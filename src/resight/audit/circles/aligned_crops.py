"""Pairs of craters whose circles coincide in their pictures, without coordinates: collections in, AlignedOverlaps out.

Each crater's crop is searched for in the collection, and the crops found are laid on it (crop_alignment.py). The
attribute `view` ("3x") tells how large the crater's circle is in its crop. Each entry's result is logged, so that a
stopped run continues.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from resight.audit.circles.circle_overlap import Overlap
from resight.audit.circles.crop_alignment import Grey, align, prepare_crop
from resight.audit.line_log import LineLog
from resight.boxes import crop as cut_box
from resight.collection import Collection
from resight.collection.view import View
from resight.data import image_files
from resight.data.maps.crater_view import read_side
from resight.errors import BoxError, ImageError, InputError
from resight.files.fingerprint import fingerprint
from resight.search.request import SearchRequest, StoredImage
from resight.types import Skipped

DEPTH = 5  # candidates per entry
BEST_VIEW = 3.0  # sides of a crop in diameters: of several crops of an entry the nearest to it is compared
HELD = 4096  # prepared crops in memory: 150 MB
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class AlignedOverlap(Overlap):
    agreement: float = 0.0  # correlation of the ground


@dataclass(frozen=True)
class Crop:
    """The crop by which an entry is compared."""

    label: str
    id: str
    view: float  # side in diameters


def list_crops(collection: Collection) -> list[Crop]:
    """One per label, in the order of the collection."""
    best: dict[str, Crop] = {}
    for record in collection.records():
        view = read_side(record.attributes.get("view"))
        if not view:
            raise InputError(
                f"it is not known how large the crater is in {record.id!r}",
                expected='the attribute view on every image, such as "3x": the crop is three diameters wide',
                actual=str(record.attributes.get("view", "no view")),
                fix="make the collection with `resight craters`, or give the attribute in a manifest",
            )
        label = str(record.attributes.get("label", "")) or record.id
        known = best.get(label)
        if known is None or abs(view - BEST_VIEW) < abs(known.view - BEST_VIEW):
            best[label] = Crop(label, record.id, view)
    return list(best.values())


def align_candidates(
    sides: Sequence[Collection],
    crops: Sequence[Sequence[Crop]],
    least: float,
    work: Path | None,
    progress: Progress | None,
) -> tuple[list[AlignedOverlap], tuple[Skipped, ...]]:
    """Pairs within the one collection, or between the two; numbers of the second continue those of the first."""
    views = [side.view() for side in sides]
    first, last = crops[0], crops[-1]
    shift = len(first) if len(sides) > 1 else 0
    number = {crop.id: shift + row for row, crop in enumerate(last)}
    key = fingerprint(repr(([view.commit_id for view in views], crops, least, DEPTH)))
    log = LineLog.open(work / "alignments.jsonl", key) if work else None
    skipped: dict[str, Skipped] = {}

    @lru_cache(HELD)
    def read(side: int, name: str) -> Grey | None:
        record = next(views[side].records([name]))
        try:
            picture = image_files.read(record.ref)
            picture = picture if record.ref.box is None else cut_box(picture, record.ref.box)
        except (ImageError, BoxError) as error:
            skipped[name] = Skipped(str(record.path), image_files.reason(error, record.path))
            return None
        return prepare_crop(picture.pixels)

    found: dict[tuple[int, int], AlignedOverlap] = {}
    tried: set[tuple[int, int]] = set()
    done = len(log.lines) if log else 0
    for pairs in log.lines if log else []:
        tried.update((min(a, b), max(a, b)) for a, b, *_ in pairs)
        found.update((pair, one) for pair, one in map(_restore, pairs) if one is not None)
    for a, crop in enumerate(first[done:], start=done):
        results: list[list[float]] = []
        for name in _list_candidates(views[0], views[-1], crop, number):
            b = number[name]
            pair = (min(a, b), max(a, b))
            if pair in tried:
                continue
            tried.add(pair)
            one, two = read(0, crop.id), read(len(sides) - 1, name)
            laid = align(one, two, crop.view, last[b - shift].view) if one is not None and two is not None else None
            if laid is None or laid.iou < least:
                results.append([*pair])
                continue
            ratio = laid.scale_ratio if a < b else 1 / laid.scale_ratio
            found[pair] = AlignedOverlap(*pair, laid.iou, laid.offset, ratio, agreement=laid.agreement)
            results.append([*pair, laid.iou, laid.offset, ratio, laid.agreement])
        if log:
            log.add(results)
        if progress:
            progress("aligning", a + 1, len(first))
    return [found[pair] for pair in sorted(found)], tuple(skipped.values())


def _restore(line: Sequence[Any]) -> tuple[tuple[int, int], AlignedOverlap | None]:
    a, b, *rest = line
    if not rest:
        return (a, b), None
    iou, offset, ratio, agreement = rest
    return (a, b), AlignedOverlap(a, b, iou, offset, ratio, agreement=agreement)


def _list_candidates(source: View, target: View, crop: Crop, known: Iterable[str]) -> list[str]:
    """The images of other entries that a search finds first, without its slower stages."""
    query = source.encode_query(SearchRequest(StoredImage(crop.id, rows_only=True)))
    per_entry = -(-len(target) // max(len(list(known)), 1))  # crops of one entry
    shortlist = next(target.ask_in_stages(SearchRequest(query, (DEPTH + 1) * per_entry)))
    compared = set(known)
    own = crop.id if source is target else None
    return [hit.id for hit in shortlist.hits if hit.id in compared and hit.id != own][:DEPTH]

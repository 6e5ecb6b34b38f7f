"""Find evaluation images whose instance the training images show. In: two collections. Out: Leaks, surest first.

The audit searches every evaluation image in the training images: the best k by the index, verified by geometry, with
the probability that both show the same instance. Byte-identical files are leaks whatever the search finds. A picture
that training files of many classes share (a placeholder, a blank) is uninformative: it is excluded and reported.

Some probable matches must wait for a person (`find_ambiguities`):
- Geometry found no plausible model: the pictures look alike, but may show different instances.
- Another class matches the same part of the evaluation image far better (WEAKER). One instance fills one spot: two
  versions of a motif share enough for a match, and the better match explains the weaker one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from resight.audit.dedup.pairs import Pair
from resight.boxes import area, intersect
from resight.collection import Collection
from resight.collection.view import View
from resight.data.image_files import reason
from resight.errors import ImageError, InputError
from resight.search.request import SearchRequest, StoredImage
from resight.store import ImageRecord
from resight.types import Box, FloatArray, Hit, Match

WEAKER = 0.5  # a match with fewer than this share of a rival's key points is weaker
SHARED = 0.5  # share of the smaller part that two matches must have in common to be rivals
INLIERS = "inliers"


def find_ambiguities(hits: Sequence[Hit], matches: Mapping[str, Match], class_attribute: str) -> Mapping[str, str]:
    """Reasons by id, for the answers to one query and their verified matches."""
    verified = any(INLIERS in hit.stages for hit in hits)
    reasons: dict[str, str] = {}
    for hit in hits:
        match = matches.get(hit.id)
        if match is None:
            if verified:
                reasons[hit.id] = "no believable geometry"
        elif (rival := _find_rival(hit, hits, matches, class_attribute)) is not None:
            reasons[hit.id] = f"{rival} matches the same part better"
    return reasons


def _find_rival(hit: Hit, hits: Sequence[Hit], matches: Mapping[str, Match], class_attribute: str) -> str | None:
    label, match = hit.attributes.get(class_attribute), matches[hit.id]
    for other in hits:
        better = matches.get(other.id)
        same_class = label is not None and other.attributes.get(class_attribute) == label
        if better is None or same_class or match.inliers >= WEAKER * better.inliers:
            continue
        if share_part(match.points[:, :2], better.points[:, :2]) > SHARED:
            return other.id
    return None


def share_part(one: FloatArray, two: FloatArray) -> float:
    """Share of the smaller of two bounding boxes of points [n, 2] that lies in the other."""
    first, second = _bound(one), _bound(two)
    return area(intersect(first, second)) / max(min(area(first), area(second)), 1e-9)


def _bound(points: FloatArray) -> Box:
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return x0, y0, x1, y1


CLASS = "label"
WORTH_A_LOOK = 0.02  # a pair of lower probability is not listed
MOST_LEFT_OUT = 50  # extra hits to request, in place of those that are left out
MOST_CLASSES = 3  # classes that copies of one picture may have before it is uninformative
ITSELF = "TRAIN and EVAL are the same images: no image is paired with itself, and each pair is listed once"
Progress = Callable[[int, int], None]
Part = tuple[str, Box | None]  # the hash of a file, and the box in it that an image shows


@dataclass(frozen=True)
class Leak:
    """A pair (a: evaluation, b: training) with its evidence."""

    pair: Pair
    inliers: int = 0  # key points that one model explains; 0: other signals, or equal files
    box: Box | None = None  # where in the training image
    doubt: str = ""  # why a person should decide, however probable it is


@dataclass(frozen=True)
class Overlap:
    leaks: tuple[Leak, ...]
    images: int  # evaluation images that were searched
    itself: bool  # both sets are the same images: none is paired with itself
    notes: tuple[str, ...] = ()


def find_overlap(
    train: Collection,
    evaluation: Collection,
    *,
    k: int = 10,
    class_attribute: str = CLASS,
    progress: Progress | None = None,
) -> Overlap:
    if k < 1:
        raise InputError("k is too small", expected="k of 1 or more", actual=f"k = {k}")
    target = train.view()
    source = evaluation.view() if evaluation.metadata.spaces == train.metadata.spaces else None
    records = list(evaluation.records())
    itself = _are_equal(records, train.records())
    copies, shared = _find_copies(records, train.records(), class_attribute)
    ignored = frozenset(name for names, _ in shared for name in names)
    leaks: dict[tuple[str, str], Leak] = {}
    notes = [ITSELF] if itself else []
    notes += [_report_shared(names, classes) for names, classes in shared]
    for done, record in enumerate(records, start=1):
        equal = [name for name in copies.get(_identify(record), ()) if name not in ignored]
        found = [_make_copy(record.id, name) for name in equal[: k + itself]]
        try:
            found += _search(record, source, target, k, class_attribute, ignored | {record.id} if itself else ignored)
        except ImageError as error:
            notes.append(f"{record.id}: {reason(error, record.path)}; only identical files were searched")
        for leak in found:
            if itself and leak.pair.a == leak.pair.b:
                continue
            leak = _sort(leak) if itself else leak
            key = leak.pair.a, leak.pair.b
            leaks[key] = _merge(leaks[key], leak) if key in leaks else leak
        if progress:
            progress(done, len(records))
    return Overlap(tuple(_rank(leaks.values())), len(records), itself, tuple(notes))


def _search(
    record: ImageRecord,
    source: View | None,
    target: View,
    k: int,
    class_attribute: str,
    left_out: frozenset[str],
) -> Iterator[Leak]:
    """Search one evaluation image in the training images: the best k without those that are left out.

    `source` holds its stored rows, which make the query without encoding the image again. None: its rows come from
    another recipe than those of the training images, so the search encodes its file.
    """
    image = source.encode_query(SearchRequest(StoredImage(record.id, rows_only=True))) if source else record.ref
    answer = target.ask(SearchRequest(image, k + min(len(left_out), MOST_LEFT_OUT)))
    hits = [hit for hit in answer.hits if hit.id not in left_out][:k]
    doubts = find_ambiguities(hits, answer.ranking.matches, class_attribute)
    for hit in hits:
        # Without a calibration, people decide.
        chance = 0.5 if hit.probability is None else hit.probability
        if chance >= WORTH_A_LOOK:
            match = answer.ranking.matches.get(hit.id)
            pair = Pair(record.id, hit.id, "same", chance, keep=record.id)
            yield Leak(pair, match.inliers if match else 0, hit.box, doubts.get(hit.id, ""))


def _sort(leak: Leak) -> Leak:
    """Order the pair by id, since votes are stored by that order. The box always lies in b."""
    a, b = leak.pair.a, leak.pair.b
    return leak if a < b else replace(leak, pair=replace(leak.pair, a=b, b=a, keep=b), box=None)


def _merge(known: Leak, leak: Leak) -> Leak:
    """The surer of two, with the box that either of them has."""
    surer, other = (leak, known) if leak.pair.probability > known.pair.probability else (known, leak)
    return surer if surer.box or surer.pair.kind == "copy" else replace(surer, box=other.box)


def _rank(leaks: Iterable[Leak]) -> list[Leak]:
    """Surest first; pairs of one evaluation image are a group."""
    ranked = sorted(leaks, key=lambda leak: (-leak.pair.probability, -leak.inliers, leak.pair.a, leak.pair.b))
    groups: dict[str, int] = {}
    return [
        replace(leak, pair=replace(leak.pair, group=groups.setdefault(leak.pair.a, len(groups) + 1))) for leak in ranked
    ]


def _make_copy(name: str, other: str) -> Leak:
    return Leak(Pair(name, other, "copy", 1.0, keep=name))


def _are_equal(records: Sequence[ImageRecord], others: Iterable[ImageRecord]) -> bool:
    files = {record.id: _identify(record) for record in records}
    count = 0
    for other in others:
        if files.get(other.id) != _identify(other):
            return False
        count += 1
    return count == len(files)


def _identify(record: ImageRecord) -> Part:
    """Two parts of one file are not copies of each other."""
    return record.sha256, record.ref.box


def _find_copies(
    records: Sequence[ImageRecord], others: Iterable[ImageRecord], class_attribute: str
) -> tuple[Mapping[Part, Sequence[str]], Sequence[tuple[frozenset[str], int]]]:
    """Training images by the evaluation file that they equal, and those that too many classes share."""
    wanted = {_identify(record) for record in records}
    found: dict[Part, list[str]] = {}
    classes: dict[Part, set[object]] = {}
    for other in others:
        part = _identify(other)
        if part in wanted:
            found.setdefault(part, []).append(other.id)
            classes.setdefault(part, set()).add(other.attributes.get(class_attribute))
    shared = [part for part, names in classes.items() if len(names) > MOST_CLASSES]
    return found, [(frozenset(found[part]), len(classes[part])) for part in shared]


def _report_shared(names: frozenset[str], classes: int) -> str:
    return (
        f"one picture, such as {min(names)}, is {len(names):,} training images of {classes:,} classes and in EVAL too: "
        "it is uninformative and excluded"
    )

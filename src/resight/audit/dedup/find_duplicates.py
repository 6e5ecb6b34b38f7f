"""Duplicates within a collection, or between two: exact copies, near copies, and other views of the same instance.

    exact copies aside → thumbnails → candidates → verify → judge → choose → groups → pairs

The search never compares all with all. Memory grows with the number of images; thumbnails and lists are mapped from the
folder `work`. Verification, the slow part, resumes if it was interrupted and `work` is the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from resight.audit.dedup.branches import Branches, choose_branches, read_local, require_same_spaces
from resight.audit.dedup.candidates import Candidates, Depth, find_candidates
from resight.audit.dedup.grey_thumbnails import Count, Side, make_thumbnails, outline_of
from resight.audit.dedup.groups import Link, collapse, join, keeper_rank
from resight.audit.dedup.pairs import (
    KINDS,
    Judged,
    Kind,
    Pair,
    RowPair,
    choose,
    find_cut,
    judge,
    list_between,
    list_within,
)
from resight.audit.dedup.resume_log import ResumeLog
from resight.audit.dedup.verify import Finding, examine, examine_pair
from resight.collection import Collection
from resight.store import ImageRecord
from resight.types import Skipped


@dataclass(frozen=True)
class Prepared:
    """A collection with its exact copies set aside."""

    records: Mapping[str, ImageRecord]
    copies: Mapping[str, tuple[str, ...]]  # id of a kept image → ids of its copies
    side: Side
    digests: Mapping[str, int]  # hash of a file or of its pixels → row
    blank: int

    @property
    def order(self) -> list[int]:
        """Rows in keeper order, best first."""
        return sorted(range(len(self.side)), key=lambda row: keeper_rank(self.records[self.side.ids[row]]))


def prepare(collection: Collection, file: Path, progress: Count | None) -> Prepared:
    """Set exact copies aside, first of files and then of pixels; write thumbnails of the rest to `file`."""
    view = collection.view()  # a snapshot: later writes do not change it
    records = list(view.records())
    files = collapse(records, lambda record: record.sha256)
    thumbnails = make_thumbnails(files.kept, file, progress)
    digests = dict(zip(thumbnails.ids, thumbnails.digests, strict=True))
    pixels = collapse(files.kept, lambda record: digests[record.id])
    kept = {record.id for record in pixels.kept}
    chosen = thumbnails.choose([row for row, name in enumerate(thumbnails.ids) if name in kept])
    side = Side(view, chosen.ids, tuple(map(outline_of, pixels.kept)), chosen)
    by_digest = {
        key: row
        for row, record in enumerate(pixels.kept)
        if record.ref.box is None
        for key in (record.sha256, digests[record.id])
        if key
    }
    copies = join(files.copies, pixels.copies)
    return Prepared({record.id: record for record in records}, copies, side, by_digest, int(thumbnails.flat.sum()))


Progress = Callable[[str, int, int], None]  # step, done, total
Correct = Callable[[float], float]  # probability → corrected probability


@dataclass(frozen=True)
class Settings:
    kinds: frozenset[Kind] = frozenset(KINDS)
    least: float = 0.5  # probability from which a pair is listed
    false_alarms: float | None = None  # largest expected share of wrong pairs, exact copies aside
    depth: Depth = field(default_factory=Depth)
    correct: Correct | None = None  # corrects every probability, as learnt from votes


@dataclass(frozen=True)
class Report:
    pairs: tuple[Pair, ...]  # by group, then by probability; those in no group last
    images: int
    groups: int
    candidates: int  # pairs that were verified
    expected_wrong: float  # number of wrong pairs among those listed, by their probabilities
    blank: int  # blank images, for which only exact copies are found
    skipped: tuple[Skipped, ...]  # missing or broken files, compared by their stored rows only

    @property
    def doubtful(self) -> int:
        """Number of listed pairs that are not exact copies."""
        return sum(pair.kind != "copy" for pair in self.pairs)

    @property
    def false_alarm_rate(self) -> float:
        """Expected share of wrong pairs, exact copies aside."""
        return self.expected_wrong / self.doubtful if self.doubtful else 0.0


def find_duplicates(
    collection: Collection,
    other: Collection | None = None,
    settings: Settings | None = None,
    *,
    work: Path,
    progress: Progress | None = None,
) -> Report:
    """`work` is a folder for thumbnails, lists and the resume log; it may be deleted afterwards."""
    settings = settings or Settings()
    if other is not None:
        require_same_spaces(collection, other)
    work.mkdir(parents=True, exist_ok=True)
    look = _label(progress, "reading files")
    one = prepare(collection, work / "thumbnails_a.npy", look)
    two = one if other is None else prepare(other, work / "thumbnails_b.npy", look)
    branches = choose_branches(collection.recipe)
    candidates = find_candidates(
        one.side, two.side, branches, settings.depth, work, _label(progress, "finding candidates")
    )
    findings = _verify(one.side, two.side, candidates, branches, work, progress)
    judged = _judge_all(findings, settings.correct)
    pairs = (
        _list_within(one, judged, branches, settings) if other is None else _list_between(one, two, judged, settings)
    )
    listed = sorted(pairs, key=_order)
    sides = [one] if other is None else [one, two]
    return Report(
        tuple(listed),
        sum(len(part.records) for part in sides),
        len({pair.group for pair in listed if pair.group is not None}),
        len(candidates.rows),
        sum(1 - pair.probability for pair in listed),
        sum(part.blank for part in sides),
        tuple(skipped for part in sides for skipped in part.side.thumbnails.skipped),
    )


def _verify(
    one: Side, two: Side, candidates: Candidates, branches: Branches, work: Path, progress: Progress | None
) -> list[Finding]:
    log = ResumeLog.open(work / "findings.jsonl", candidates, one.ids, two.ids)
    for done, found in examine(one, two, candidates, branches, log.done):
        log.add(done, found)
        if progress:
            progress("verifying", done, len(candidates.rows))
    return log.findings


def _judge_all(findings: Iterable[Finding], correct: Correct | None) -> dict[RowPair, Judged]:
    """If a pair was a candidate both plain and mirrored, keep the more probable finding."""
    best: dict[RowPair, Judged] = {}
    for finding in findings:
        rows, chance = (finding.a, finding.b), judge(finding)
        judged = Judged(finding, correct(chance), chance) if correct else Judged(finding, chance)
        if rows not in best or best[rows].probability < judged.probability:
            best[rows] = judged
    return best


def _list_within(one: Prepared, judged: Mapping[RowPair, Judged], branches: Branches, settings: Settings) -> list[Pair]:
    side, rate = one.side, settings.false_alarms
    chosen = choose(judged, settings.kinds, settings.least)
    cut = settings.least
    if rate is not None:
        chosen = choose(chosen, settings.kinds, find_cut((found.probability for found in chosen.values()), rate))
        cut = max(cut, 1 - rate)  # members that join later must not raise the share of wrong pairs

    def check(a: int, b: int) -> Link | None:
        """Verify two images that were not candidates: an image has only a few."""
        known = chosen.get((a, b)) or chosen.get((b, a))
        if known is not None or branches.local is None:
            return known.link() if known else None
        features = read_local(side.source, branches.local, [side.ids[a], side.ids[b]])
        first, second = features[side.ids[a]], features[side.ids[b]]
        turns = (False, True) if branches.mirrors else (False,)
        found = [examine_pair(side, side, (a, b), (first, second), mirrored) for mirrored in turns]
        both = _judge_all([finding for finding in found if finding is not None], settings.correct)
        best = choose(both, settings.kinds, cut)
        chosen.update(best)
        return best[a, b].link() if best else None

    copies = one.copies if "copy" in settings.kinds else {}
    return list_within(side.ids, one.order, chosen, copies, check)


def _list_between(one: Prepared, two: Prepared, judged: Mapping[RowPair, Judged], settings: Settings) -> list[Pair]:
    equal = {(one.digests[key], row) for key, row in two.digests.items() if key in one.digests}
    doubtful = {rows: found for rows, found in judged.items() if rows not in equal}
    chosen = choose(doubtful, settings.kinds, settings.least)
    if settings.false_alarms is not None:
        chances = [
            found.probability
            for (_, b), found in chosen.items()
            for _ in range(1 + len(two.copies.get(two.side.ids[b], ())))  # each copy is listed
        ]
        chosen = choose(chosen, settings.kinds, find_cut(chances, settings.false_alarms))
    exact = equal if "copy" in settings.kinds else set()
    return list_between((one.side.ids, two.side.ids), one.order, chosen, exact, two.copies)


def _order(pair: Pair) -> tuple[bool, int, float, str, str]:
    return pair.group is None, pair.group or 0, -pair.probability, pair.a, pair.b


def _label(progress: Progress | None, step: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(step, done, total)

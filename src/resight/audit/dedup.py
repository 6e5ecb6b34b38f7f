"""Duplicates within a collection, or between two: exact copies, near copies, and other views of the same thing.

    exact copies aside → thumbnails → candidates → verify → judge → groups → pairs

Nothing is compared all with all. What is held in memory grows with the number of images, and thumbnails and lists are
mapped from the folder `work`; verification, the slow part, goes on where it was stopped when `work` is the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from resight.audit.branches import Branches, choose_branches, read_local, require_same_spaces
from resight.audit.candidates import Candidates, Depth, find_candidates
from resight.audit.copies import collapse, join
from resight.audit.findings_log import FindingsLog
from resight.audit.groups import Link
from resight.audit.judging import judge
from resight.audit.keep import rank
from resight.audit.listing import Judged, list_between, list_within
from resight.audit.pairs import KINDS, Kind, Pair
from resight.audit.side import Side, outline_of
from resight.audit.thumbnails import make_thumbnails
from resight.audit.verification import Finding, examine, examine_pair
from resight.collection import Collection
from resight.store import ImageRecord
from resight.types import Skipped

Progress = Callable[[str, int, int], None]  # what is being done, how far, of how many


@dataclass(frozen=True)
class Settings:
    kinds: frozenset[Kind] = frozenset(KINDS)
    least: float = 0.5  # probability of a pair that is listed
    false_alarms: float | None = None  # at most this share of the listed pairs is expected to be wrong
    depth: Depth = field(default_factory=Depth)


@dataclass(frozen=True)
class Report:
    pairs: tuple[Pair, ...]  # by group, then by probability; those in no group last
    images: int
    groups: int
    candidates: int  # pairs that were verified
    expected_wrong: float  # listed pairs that are wrong, by their probabilities
    blank: int  # images that show nothing: of these only exact copies are found
    skipped: tuple[
        Skipped, ...
    ]  # files that are gone or broken: what is stored of them took part, their pixels did not

    @property
    def false_alarm_rate(self) -> float:
        return self.expected_wrong / len(self.pairs) if self.pairs else 0.0


def find_duplicates(
    collection: Collection,
    other: Collection | None = None,
    settings: Settings | None = None,
    *,
    work: Path,
    progress: Progress | None = None,
) -> Report:
    """`work` is a folder for thumbnails, lists and what was verified so far; it may be removed afterwards."""
    settings = settings or Settings()
    if other is not None:
        require_same_spaces(collection, other)
    work.mkdir(parents=True, exist_ok=True)
    one = _prepare(collection, work / "thumbnails_a.npy", progress)
    two = one if other is None else _prepare(other, work / "thumbnails_b.npy", progress)
    branches = choose_branches(collection.recipe)
    candidates = find_candidates(
        one.side, two.side, branches, settings.depth, work, _name(progress, "looking for candidates")
    )
    findings = _verify(one.side, two.side, candidates, branches, work, progress)
    judged = _judge_all(findings, settings.least)
    pairs = _list_within(one, judged, branches, settings) if other is None else _list_between(one, two, judged)
    listed = choose_listed(pairs, settings)
    sides = [one] if other is None else [one, two]
    return Report(
        tuple(sorted(listed, key=_order)),
        sum(len(part.records) for part in sides),
        len({pair.group for pair in listed if pair.group is not None}),
        len(candidates.rows),
        sum(1 - pair.probability for pair in listed),
        sum(part.blank for part in sides),
        tuple(skipped for part in sides for skipped in part.side.thumbnails.skipped),
    )


def choose_listed(pairs: Iterable[Pair], settings: Settings) -> list[Pair]:
    """Pairs of the kinds and as likely as asked for; with `false_alarms`, as many of the likeliest as that allows."""
    chosen = [pair for pair in pairs if pair.kind in settings.kinds and pair.probability >= settings.least]
    if settings.false_alarms is None:
        return chosen
    listed: list[Pair] = []
    wrong = 0.0
    for pair in sorted(chosen, key=lambda pair: -pair.probability):
        wrong += 1 - pair.probability
        if wrong > settings.false_alarms * (len(listed) + 1):
            break
        listed.append(pair)
    return listed


@dataclass(frozen=True)
class _Prepared:
    """A collection whose exact copies stand aside."""

    records: Mapping[str, ImageRecord]
    copies: Mapping[str, tuple[str, ...]]  # of those that are kept
    side: Side
    digests: Mapping[str, int]  # hash of a file or of its pixels → row
    blank: int

    @property
    def order(self) -> list[int]:
        """Rows, the one that is rather kept first."""
        return sorted(range(len(self.side)), key=lambda row: rank(self.records[self.side.ids[row]]))


def _prepare(collection: Collection, file: Path, progress: Progress | None) -> _Prepared:
    """Exact copies aside, first of files and then of pixels; thumbnails of the rest."""
    view = collection.view()  # what is written meanwhile does not take part
    records = list(view.records())
    files = collapse(records, lambda record: record.sha256)
    thumbnails = make_thumbnails(files.kept, file, _name(progress, "looking at files"))
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
    return _Prepared({record.id: record for record in records}, copies, side, by_digest, int(thumbnails.flat.sum()))


def _verify(
    one: Side, two: Side, candidates: Candidates, branches: Branches, work: Path, progress: Progress | None
) -> list[Finding]:
    log = FindingsLog.open(work / "findings.jsonl", candidates, one.ids, two.ids)
    for done, found in examine(one, two, candidates, branches, log.done):
        log.add(done, found)
        if progress:
            progress("verifying", done, len(candidates.rows))
    return log.findings


def _judge_all(findings: Iterable[Finding], least: float) -> dict[tuple[int, int], Judged]:
    """Of a pair that was a candidate as it is and mirrored, what is more likely."""
    best: dict[tuple[int, int], Judged] = {}
    for finding in findings:
        rows, chance = (finding.a, finding.b), judge(finding)
        if chance >= least and (rows not in best or best[rows].probability < chance):
            best[rows] = Judged(finding, chance)
    return best


def _list_within(
    one: _Prepared, judged: dict[tuple[int, int], Judged], branches: Branches, settings: Settings
) -> list[Pair]:
    side, more = one.side, dict(judged)

    def check(a: int, b: int) -> Link | None:
        """For two that were no candidates, because an image has few of them."""
        if branches.local is None:
            return None
        features = read_local(side.source, branches.local, [side.ids[a], side.ids[b]])
        first, second = features[side.ids[a]], features[side.ids[b]]
        turns = (False, True) if branches.mirrors else (False,)
        found = [examine_pair(side, side, (a, b), (first, second), mirrored) for mirrored in turns]
        best = _judge_all([finding for finding in found if finding is not None], settings.least)
        more.update(best)
        return best[a, b].link() if best else None

    return list_within(side.ids, one.order, more, one.copies, check)


def _list_between(one: _Prepared, two: _Prepared, judged: Mapping[tuple[int, int], Judged]) -> list[Pair]:
    equal = {(one.digests[key], row) for key, row in two.digests.items() if key in one.digests}
    return list_between((one.side.ids, two.side.ids), one.order, judged, equal, two.copies)


def _order(pair: Pair) -> tuple[bool, int, float, str, str]:
    return pair.group is None, pair.group or 0, -pair.probability, pair.a, pair.b


def _name(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(what, done, total)

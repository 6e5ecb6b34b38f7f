"""Match two collections: for each entry of the first its best match in the second, with box and probability.

    entries → priors → rank candidates, in one direction or both → one match each, or one-to-one → probability

Several entries of A may have the same match. `mutual` keeps the pairs of which each is the other's best. `one_to_one`
gives each entry of B to at most one of A, such that the sum of the scores of all pairs is largest. The report also
lists entries without a match of at least the probability `least`, and images that could not be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

from resight.audit.dedup.branches import require_same_spaces
from resight.audit.dedup.pairs import Pair
from resight.audit.line_log import LineLog
from resight.audit.match.bipartite_matching import match_one_to_one
from resight.audit.match.match_entries import MatchEntry, are_craters, list_match_entries
from resight.audit.match.match_priors import Priors, list_allowed
from resight.audit.match.match_probability import (
    Evidence,
    find_calibration,
    find_floor,
    fingerprint_spaces,
    judge,
    require_calibration,
)
from resight.audit.match.ranked_candidates import Candidate, Ranked, rank_candidates
from resight.collection import Collection
from resight.collection.view import View
from resight.errors import InputError
from resight.files.fingerprint import fingerprint
from resight.types import Box, Skipped

By = Literal["auto", "crater", "image"]
Progress = Callable[[str, int, int], None]
REVIEWED = 0.02  # least probability of a pair for a review


@dataclass(frozen=True)
class Settings:
    one_to_one: bool = False
    mutual: bool = False  # search in both directions, and keep pairs of which each is the other's best
    least: float = 0.5  # probability from which a match is listed
    candidates: int = 5  # in the other collection, per entry
    priors: Priors = field(default_factory=Priors)
    by: By = "auto"  # crater: all crops of a label are one entry; auto: crater if every image is a crop of a crater


@dataclass(frozen=True)
class Matched:
    """An entry of A with its match; `b` is empty if there is none, and the other fields are then 0 and None."""

    a: str  # ids of images
    b: str = ""
    probability: float = 0.0
    box: Box | None = None  # in b
    inliers: int = 0
    skipped: Skipped | None = None  # why it was not searched
    label_a: str = ""
    label_b: str = ""
    offset_km: float | None = None  # between the two positions
    diameter_ratio: float | None = None  # diameter of b in that of a
    runner_up: str = ""  # the next best entry of B: an image of it
    runner_up_probability: float = 0.0
    mutual: bool | None = None  # None: only one direction was searched


@dataclass(frozen=True)
class MatchReport:
    matches: tuple[Matched, ...]  # one per entry of A, in its order; without a match of at least `least`: an empty b
    best: tuple[Matched, ...]  # the same without that limit
    settings: Settings
    craters: bool  # whether the entries are craters
    fitted: bool  # whether the probabilities are fitted for matches, and not those of the search
    labels_b: frozenset[str]  # of all entries of B
    skipped: tuple[Skipped, ...]
    doubtful: tuple[Pair, ...]  # for a review: best pairs, and runners-up that may be right


def find_matches(
    a: Collection,
    b: Collection,
    settings: Settings | None = None,
    *,
    work: Path | None = None,
    progress: Progress | None = None,
) -> MatchReport:
    """`work` is a folder for the logs by which a stopped run continues; it may be deleted afterwards."""
    settings = settings or Settings()
    require_same_spaces(a, b)
    source, target = a.view(), b.view()
    craters = settings.by == "crater" or (settings.by == "auto" and are_craters(source, target))
    entries = list_match_entries(source.records(), craters)
    others = list_match_entries(target.records(), craters)
    if not others:
        alone = tuple(_leave_alone(entry, Ranked(())) for entry in entries)
        return MatchReport(alone, alone, settings, craters, False, frozenset(), (), ())
    fitted = find_calibration(target, craters, settings.mutual)
    by_one = find_calibration(target, craters, False)
    scored = "centred" if fitted else require_calibration(target)
    state = source.commit_id, target.commit_id, fingerprint_spaces(target), scored
    ranking = _Ranking(settings, work, progress, repr(state), fitted is not None)
    forward = ranking.rank("matching", (source, entries), (target, others))
    chosen = _assign(forward, find_floor(fitted, settings.least)) if settings.one_to_one else _take_best(forward)
    backward = None
    if settings.mutual:
        wanted = sorted({one.entry for one in chosen.values()})
        back = ranking.rank("matching back", (target, [others[number] for number in wanted]), (source, entries))
        backward = dict(zip(wanted, back, strict=True))
    evidence, one_way = Evidence(forward, backward, len(others)), Evidence(forward, None, len(others))

    def pair(number: int, found: Candidate) -> Matched:
        entry = entries[number]
        chance = judge(target, fitted, evidence.list_signals(number, found.entry))
        rest = [one for one in forward[number].candidates if one.entry != found.entry]
        second = judge(target, by_one, one_way.list_signals(number, rest[0].entry)) if rest else 0.0
        return Matched(
            *(found.a, found.b, chance, found.box, found.inliers, None, entry.label, others[found.entry].label),
            entry.distance_km(others[found.entry]),
            entry.diameter_ratio(others[found.entry]),
            rest[0].b if rest else "",
            second,
            evidence.is_mutual(number, found.entry),
        )

    best = [
        pair(number, chosen[number]) if number in chosen else _leave_alone(entries[number], some)
        for number, some in enumerate(forward)
    ]
    matches = [
        one if one.b and _is_listed(one, settings) else _leave_alone(entry, some)
        for one, entry, some in zip(best, entries, forward, strict=True)
    ]
    skipped = tuple(one for some in forward for one in some.skipped)
    doubtful = tuple(_list_doubtful(best))
    labels = frozenset(entry.label for entry in others if entry.label)
    return MatchReport(tuple(matches), tuple(best), settings, craters, fitted is not None, labels, skipped, doubtful)


def parse_by(text: str) -> By:
    for name in get_args(By):
        if name == text:
            return cast(By, name)
    raise InputError("no such entries to match", expected=", ".join(get_args(By)), actual=text, fix="e.g. --by image")


def list_truths(report: MatchReport) -> list[tuple[float, bool, bool]]:
    """Per entry of A with a label: the probability of its best match, whether that has the same label, whether any has.

    Counts pairs below `least`, too: their probabilities should hold as well.
    """
    return [
        (one.probability, bool(one.b) and one.label_a == one.label_b, one.label_a in report.labels_b)
        for one in report.best
        if one.label_a
    ]


Side = tuple[View, Sequence[MatchEntry]]


@dataclass(frozen=True)
class _Ranking:
    """How both directions are ranked; `key` names the states of the collections."""

    settings: Settings
    work: Path | None
    progress: Progress | None
    key: str
    centred: bool

    def rank(self, label: str, asked: Side, searched: Side) -> list[Ranked]:
        settings, progress = self.settings, self.progress
        names = [entry.name for entry in asked[1]]
        key = fingerprint(repr((self.key, settings.candidates, settings.priors, settings.by, names)))
        return rank_candidates(
            *(*asked, *searched, max(settings.candidates, 2)),
            allowed=list_allowed(asked[1], searched[1], settings.priors) if settings.priors else None,
            centred=self.centred,
            boxes=label == "matching",
            log=LineLog.open(self.work / f"{label.replace(' ', '_')}.jsonl", key) if self.work else None,
            progress=(lambda done, total: progress(label, done, total)) if progress else None,
        )


def _take_best(forward: Sequence[Ranked]) -> dict[int, Candidate]:
    return {number: some.candidates[0] for number, some in enumerate(forward) if some.candidates}


def _assign(forward: Sequence[Ranked], floor: float) -> dict[int, Candidate]:
    """Each entry of B at most once; a pair below the floor could never be listed.

    What another entry takes still counts as a competitor: an entry that is not in B at all must not seem sure of what
    is left.
    """
    known = {(number, one.entry): one for number, some in enumerate(forward) for one in some.candidates}
    weights = {(str(a), str(b)): one.score - floor + 1e-6 for (a, b), one in known.items()}
    pairs = {int(a): int(b) for a, b in match_one_to_one(weights).items()}
    return {a: known[a, b] for a, b in pairs.items()}


def _is_listed(one: Matched, settings: Settings) -> bool:
    return one.probability >= settings.least and (not settings.mutual or one.mutual is True)


def _leave_alone(entry: MatchEntry, ranked: Ranked) -> Matched:
    return Matched(entry.ids[0], skipped=next(iter(ranked.skipped), None), label_a=entry.label)


def _list_doubtful(best: Sequence[Matched]) -> list[Pair]:
    pairs: list[Pair] = []
    for one in best:
        if one.b and one.probability >= REVIEWED:
            pairs.append(Pair(one.a, one.b, "same", one.probability))
        if one.runner_up and one.runner_up_probability >= REVIEWED:
            pairs.append(Pair(one.a, one.runner_up, "same", one.runner_up_probability))
    return pairs

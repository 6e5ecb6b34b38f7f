"""A leak audit: does the training set contain evaluation objects, and which classes should go?

    overlap    search evaluation images in the training images, and verify           overlap.py
    review     people vote on the pairs                                              review/
    decisions  which pairs count                                                     here
    names      classes that a text suggests wait for a reviewer in candidates.csv    name_candidates.py
    removal    which training classes go, and tables of the effect                   removal.py, leak_report.py

In: two collections and the folder of the audit, which is also its review. Out: an Audit. A second run after people have
voted decides again and keeps the votes.

A pair is confirmed if at least one reviewer votes "same", and refuted if it has votes and none is "same" (unsure and
skipped are no confirmation). A pair without votes counts by its probability, unless only a person can decide.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight.audit.dedup.pairs import Pair
from resight.audit.leaks.name_candidates import FILE, Candidate, find_candidates, read_verdicts
from resight.audit.leaks.overlap import CLASS, Overlap, Progress, find_overlap
from resight.audit.leaks.removal import (
    Chosen,
    RemovedRow,
    SetRow,
    SizeRow,
    choose_removals,
    tabulate_removed,
    tabulate_sets,
    tabulate_sizes,
)
from resight.audit.leaks.sources import Classes, count_classes, read_class
from resight.audit.review.review import Review, has_settings, read_settings
from resight.audit.review.votes import Vote, check_reviewer, check_verdict
from resight.collection import Collection
from resight.data.truth_tables import read_table

LEAST = 0.9  # probability


@dataclass(frozen=True)
class Decisions:
    by_votes: tuple[Pair, ...]
    by_probability: tuple[Pair, ...]  # without votes
    refuted: tuple[Pair, ...]
    open: tuple[Pair, ...]  # neither voted on nor probable enough
    least: float

    @property
    def confirmed(self) -> tuple[Pair, ...]:
        return self.by_votes + self.by_probability


def decide(
    pairs: Sequence[Pair],
    votes: Iterable[Vote],
    least: float = LEAST,
    doubtful: frozenset[tuple[str, str]] = frozenset(),
) -> Decisions:
    verdicts: dict[tuple[str, str], set[str]] = {}
    for vote in votes:
        if vote.verdict != "skip":
            verdicts.setdefault((vote.a, vote.b), set()).add(vote.verdict)

    def pick(voted: bool, agreed: bool) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if judge(pair) == (voted, agreed))

    def judge(pair: Pair) -> tuple[bool, bool]:
        """Whether the pair has votes, and whether it counts."""
        key = pair.a, pair.b
        return (
            (True, "same" in verdicts[key])
            if key in verdicts
            else (False, pair.probability >= least and key not in doubtful)
        )

    return Decisions(pick(True, True), pick(False, True), pick(True, False), pick(False, False), least)


def read_votes(path: Path) -> list[Vote]:
    """Read a file of `resight votes --out`: the columns a, b, reviewer and verdict."""
    columns = ("a", "b", "reviewer", "verdict")
    return [
        Vote(check_reviewer(row["reviewer"]), row["a"], row["b"], check_verdict(row["verdict"]), row.get("at", ""))
        for _, row in read_table(path, columns, "write it with `resight votes FOLDER --out FILE`")
    ]


SET = "set"
MOST_NOTES = 20  # of one kind


@dataclass(frozen=True)
class Rules:
    k: int = 10  # matches per evaluation image
    least: float = LEAST  # probability from which a pair without votes counts
    texts: tuple[str, ...] = ()  # classes whose name contains one of them become candidates for removal
    every: bool = False  # remove all classes with a confirmed match, not only the most frequent per image
    class_attribute: str = CLASS
    name_attribute: str = ""  # attribute of training images that holds the readable name of their class


@dataclass(frozen=True)
class Audit:
    overlap: Overlap
    votes: int
    decisions: Decisions
    matches: tuple[Pair, ...]  # confirmed; from both sides if TRAIN and EVAL are the same images
    chosen: Chosen
    candidates: tuple[Candidate, ...]  # classes that a text suggests
    classes: Classes  # of the training images
    train_classes: Mapping[str, str | None]  # of the training images in pairs
    evaluation_classes: Mapping[str, str | None]
    sets: tuple[SetRow, ...]
    sizes: tuple[SizeRow, ...]
    removed: tuple[RemovedRow, ...]
    notes: tuple[str, ...]


def audit(
    train: Collection,
    evaluation: Collection,
    folder: Path,
    rules: Rules,
    votes: Iterable[Vote] = (),
    progress: Progress | None = None,
) -> Audit:
    """`votes` count in addition to those of the folder's own review."""
    if has_settings(folder):
        read_settings(folder)  # report a damaged review before the search, not after
    verdicts = read_verdicts(folder / FILE)
    overlap = find_overlap(train, evaluation, k=rules.k, class_attribute=rules.class_attribute, progress=progress)
    pairs = [leak.pair for leak in overlap.leaks]
    calibration = train.view().pipeline.calibration if pairs else None
    title = "Does the training set contain evaluation objects?"
    review = Review.create(folder, title, evaluation.path, train.path, pairs, calibration=calibration)
    cast = [*review.list_votes(), *votes]
    doubtful = frozenset((leak.pair.a, leak.pair.b) for leak in overlap.leaks if leak.doubt)
    decisions = decide(pairs, cast, rules.least, doubtful)
    classes = count_classes(train.records(), rules.class_attribute, rules.name_attribute)
    matches = (*decisions.confirmed, *(_swap(decisions.confirmed) if overlap.itself else ()))
    ids = sorted({pair.b for pair in (*pairs, *matches)})
    own = {record.id: read_class(record, rules.class_attribute) for record in (train.records(ids) if ids else ())}
    voted = {label for pair in decisions.by_votes if (label := own.get(pair.b)) is not None}
    candidates = find_candidates(classes.names, rules.texts, verdicts, voted)
    chosen = choose_removals(decisions.confirmed, own, candidates, every=rules.every)
    records = list(evaluation.records())
    others = {record.id: read_class(record, rules.class_attribute) for record in records}
    sets = {record.id: str(record.attributes.get(SET, "EVAL")) for record in records}
    notes = [
        _report_decisions(decisions, len(cast)),
        *_report_ambiguities(decisions, doubtful),
        *overlap.notes,
        *_report_candidates(candidates, {removal.name for removal in chosen.removals}),
        *_report_classes(decisions, chosen, classes, own, others),
    ]
    return Audit(
        overlap,
        len(cast),
        decisions,
        matches,
        chosen,
        candidates,
        classes,
        own,
        others,
        tabulate_sets(sets, matches, chosen.removals, classes.sizes),
        tabulate_sizes(classes, chosen.removals),
        tabulate_removed(chosen.removals, classes),
        tuple(notes),
    )


def _swap(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The same pairs from the other side, for images that are both in TRAIN and in EVAL."""
    return (replace(pair, a=pair.b, b=pair.a) for pair in pairs)


def _report_decisions(decisions: Decisions, votes: int) -> str:
    alone = f"{len(decisions.by_probability):,} pairs without votes count by probability (≥ {decisions.least:g})"
    if not votes:
        return f"no votes yet: {alone}; please review them"
    return f"{votes:,} votes confirm {len(decisions.by_votes):,} pairs and refute {len(decisions.refuted):,}; {alone}"


def _report_ambiguities(decisions: Decisions, doubtful: frozenset[tuple[str, str]]) -> Sequence[str]:
    """Pairs that would count by probability but wait for a vote."""
    waiting = [pair for pair in decisions.open if (pair.a, pair.b) in doubtful and pair.probability >= decisions.least]
    count = f"{len(waiting):,} probable pairs wait for a vote"
    return [f"{count}: see the column doubt of evidence.csv"] if waiting else []


def _report_candidates(candidates: Sequence[Candidate], gone: set[str]) -> Sequence[str]:
    """Classes that their name suggests, and that still wait for a reviewer."""
    waiting = [one.name for one in candidates if one.decision == "open" and one.name not in gone]
    if not waiting:
        return []
    count = "1 class is a candidate" if len(waiting) == 1 else f"{len(waiting):,} classes are candidates"
    return [f"{count} by name and stay until a reviewer confirms them: fill in the column verdict of {FILE}"]


def _report_classes(
    decisions: Decisions,
    chosen: Chosen,
    classes: Classes,
    own: Mapping[str, str | None],
    others: Mapping[str, str | None],
) -> Sequence[str]:
    unlabelled = [
        f"{count:,} training images have no class: of them, confirmed matches are removed one by one"
        for count in (classes.unlabelled,)
        if count
    ]
    left = [
        f"the class {name!r} stays with {count} confirmed matches, as another one has more of each image: "
        "a second object in it, or the same one under a second name (--every-class removes such classes too)"
        for name, count in chosen.left.items()
    ]
    met = {(others[pair.a], own[pair.b]) for pair in decisions.confirmed}
    renamed = [
        f"the evaluation class {theirs!r} is {ours!r} in the training set"
        for theirs, ours in sorted((a, b) for a, b in met if a is not None and b is not None and a != b)
    ]
    by_name = {name for name in others.values() if name is not None and name in classes.sizes}
    unconfirmed = [
        f"the class {name!r} is in both sets by name, without a confirmed match"
        for name in sorted(by_name - {theirs for theirs, _ in met})
    ]
    return [*unlabelled, *_cut(left), *_cut(renamed), *_cut(unconfirmed)]


def _cut(notes: Sequence[str]) -> Sequence[str]:
    """The first few; the files list all."""
    return [
        *notes[:MOST_NOTES],
        *([f"… and {len(notes) - MOST_NOTES:,} more like this"] if len(notes) > MOST_NOTES else []),
    ]

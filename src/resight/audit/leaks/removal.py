"""Choose the training classes to remove, and tabulate the effect. In: confirmed pairs and classes. Out: Removals, rows.

For each evaluation image, the class most frequent among its confirmed matches is removed whole, as in CiDeR (ties: the
surer class, then the first by name). Of images without a class, each confirmed match is removed by itself. A class
that its name suggests (name_candidates.py) goes too if a reviewer has confirmed it. Other classes with confirmed
matches stay and are reported, as they may be the same instance under a second name; `every` removes them as well.

Tables as in CiDeR: what the evaluation sets share with the training set (Table 2), the training set before and after
(Table 3), and the removed classes (Table A12). A class that several evaluation sets share counts for the set with most
of its images, so that rows add up.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from resight.audit.dedup.pairs import Pair
from resight.audit.leaks.name_candidates import Candidate
from resight.audit.leaks.sources import Classes


@dataclass(frozen=True)
class Removal:
    """`name` is a class, or the id of an image without one."""

    name: str
    labelled: bool
    why: Literal["matches", "text"]
    evaluation: tuple[str, ...] = ()  # evaluation images that are the reason
    pairs: int = 0  # confirmed
    text: str = ""


@dataclass(frozen=True)
class Chosen:
    removals: tuple[Removal, ...]
    left: Mapping[str, int]  # class that stays despite confirmed matches → number of these


def choose_removals(
    confirmed: Sequence[Pair],
    classes: Mapping[str, str | None],
    candidates: Iterable[Candidate] = (),
    *,
    every: bool = False,
) -> Chosen:
    """`classes` maps training images in pairs to their class; of `candidates`, confirmed ones go."""
    matches: dict[str, list[Pair]] = defaultdict(list)  # evaluation image → its pairs
    reasons: dict[tuple[str, bool], set[str]] = defaultdict(set)  # class, labelled → evaluation images
    counts: Counter[tuple[str, bool]] = Counter()
    for pair in confirmed:
        label = classes.get(pair.b)
        counts[(label, True) if label is not None else (pair.b, False)] += 1
        if label is None:
            reasons[pair.b, False].add(pair.a)
        elif every:
            reasons[label, True].add(pair.a)
        else:
            matches[pair.a].append(pair)
    for image, pairs in matches.items():
        reasons[_find_most_frequent(pairs, classes), True].add(image)
    removals = [
        Removal(name, labelled, "matches", tuple(sorted(images)), counts[name, labelled])
        for (name, labelled), images in sorted(reasons.items())
    ]
    gone = {removal.name for removal in removals if removal.labelled}
    removals += [
        Removal(one.name, True, "text", text=one.text)
        for one in candidates
        if one.decision == "confirmed" and one.name not in gone
    ]
    gone |= {removal.name for removal in removals if removal.labelled}
    left = {name: count for (name, labelled), count in sorted(counts.items()) if labelled and name not in gone}
    return Chosen(tuple(removals), left)


def _find_most_frequent(pairs: Sequence[Pair], classes: Mapping[str, str | None]) -> str:
    often: Counter[str] = Counter()
    surest: dict[str, float] = defaultdict(float)
    for pair in pairs:
        label = classes[pair.b]
        assert label is not None
        often[label] += 1
        surest[label] += pair.probability
    return min(often, key=lambda label: (-often[label], -surest[label], label))


TEXT, TOTAL = "text", "total"


@dataclass(frozen=True)
class SetRow:
    """One evaluation set: images with a confirmed match, and the classes and training images removed for it."""

    name: str
    images: int | None
    touched: int | None
    classes: int
    removed: int


@dataclass(frozen=True)
class SizeRow:
    """A training set."""

    name: str
    images: int
    classes: int


@dataclass(frozen=True)
class RemovedRow:
    """A removed class, or a removed image without a class."""

    name: str
    called: str
    images: int
    why: str
    evaluation: tuple[str, ...]


def tabulate_sets(
    sets: Mapping[str, str], confirmed: Sequence[Pair], removals: Sequence[Removal], sizes: Mapping[str, int]
) -> tuple[SetRow, ...]:
    """`sets`: evaluation image → its set."""
    touched = {pair.a for pair in confirmed}
    owners = [TEXT if removal.why == "text" else _find_main_set(removal, sets) for removal in removals]
    rows = []
    for name in sorted(set(sets.values())):
        members = {image for image, owner in sets.items() if owner == name}
        rows.append(SetRow(name, len(members), len(members & touched), *_count(name, owners, removals, sizes)))
    if TEXT in owners:
        rows.append(SetRow(TEXT, None, None, *_count(TEXT, owners, removals, sizes)))
    total = SetRow(
        TOTAL,
        len(sets),
        len(touched),
        sum(row.classes for row in rows),
        sum(row.removed for row in rows),
    )
    return (*rows, total)


def tabulate_sizes(before: Classes, removals: Sequence[Removal], name: str = "TRAIN") -> tuple[SizeRow, SizeRow]:
    gone = sum(count_images(removal, before.sizes) for removal in removals)
    classes = sum(removal.labelled for removal in removals)
    return (
        SizeRow(name, before.images, len(before.sizes)),
        SizeRow(f"{name} without the overlap", before.images - gone, len(before.sizes) - classes),
    )


def tabulate_removed(removals: Sequence[Removal], classes: Classes) -> tuple[RemovedRow, ...]:
    return tuple(
        RemovedRow(
            removal.name,
            classes.names.get(removal.name, "") if removal.labelled else "an image without a class",
            count_images(removal, classes.sizes),
            f"the name contains {removal.text!r}" if removal.why == "text" else f"{removal.pairs} confirmed matches",
            removal.evaluation,
        )
        for removal in removals
    )


def count_images(removal: Removal, sizes: Mapping[str, int]) -> int:
    return sizes[removal.name] if removal.labelled else 1


def _count(name: str, owners: Sequence[str], removals: Sequence[Removal], sizes: Mapping[str, int]) -> tuple[int, int]:
    own = [removal for removal, owner in zip(removals, owners, strict=True) if owner == name]
    return sum(removal.labelled for removal in own), sum(count_images(removal, sizes) for removal in own)


def _find_main_set(removal: Removal, sets: Mapping[str, str]) -> str:
    counts = Counter(sets[image] for image in removal.evaluation)
    return min(counts, key=lambda name: (-counts[name], name))

"""The tables of a leak audit, as in CiDeR: what the evaluation sets share with the training set (Table 2), the training
set before and after (Table 3), and the classes that go (Table A12). Decisions in, rows out.

A class that several evaluation sets share is counted with the one that has most of its images, so that rows add up.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resight.audit.classes import Classes
from resight.audit.pairs import Pair
from resight.audit.removal import Removal

TEXT, TOTAL = "text", "total"


@dataclass(frozen=True)
class SetRow:
    """An evaluation set: of its images, those with a confirmed match; classes and training images removed for it."""

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
    """A class that goes, or an image without one."""

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
    owners = [TEXT if removal.why == "text" else _find_owner(removal, sets) for removal in removals]
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


def _find_owner(removal: Removal, sets: Mapping[str, str]) -> str:
    counts = Counter(sets[image] for image in removal.evaluation)
    return min(counts, key=lambda name: (-counts[name], name))

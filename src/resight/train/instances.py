"""Which images show the same thing. In: a folder, and pairs or votes where folders do not say it. Out: Things, split.

    photos/this cup/1.jpg, 2.jpg …      one folder a thing
    pairs.csv                           columns a, b (paths below the folder), and same (yes or no) if you like
    votes.csv                           columns a, b, verdict, as `resight votes --out` writes them

What pairs call the same is one thing, also over several pairs. A pair that some call the same and some do not, is
left to the majority. A pair that is not the same but joined by others (a = b, b = c, a ≠ c) is told. Things with one
image teach nothing, and images that lie in no folder belong to no thing; both are counted and left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.data.sets.folder import walk
from resight.data.truth_tables import read_table
from resight.errors import ManifestError
from resight.types import ImageRef, Skipped

SHARES = (0.6, 0.15)  # of the things: to train on, and to choose by; the rest is for the final figures alone
SAME = {
    **dict.fromkeys(("same", "yes", "true", "1"), 1),
    **dict.fromkeys(("different", "no", "false", "0"), -1),
    **dict.fromkeys(("unsure", "skip"), 0),
}
FIX = "name the columns in the first line: a, b (paths below the folder), and same (yes or no) or verdict"

Joined = tuple[dict[str, str], tuple[tuple[str, str], ...]]  # image → thing; contradictions


@dataclass(frozen=True)
class Thing:
    name: str
    images: tuple[ImageRef, ...]


@dataclass(frozen=True)
class Things:
    known: tuple[Thing, ...]  # with two images or more, in order of name
    single: int  # things with one image
    loose: int  # images that lie in no folder
    contradictions: tuple[tuple[str, str], ...]  # pairs that are not the same, yet joined by others
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class Split:
    """Three parts that have no thing in common."""

    train: tuple[Thing, ...]
    validation: tuple[Thing, ...]
    test: tuple[Thing, ...]


def find_things(folder: Path, pairs: Path | None = None) -> Things:
    found = list(walk(folder))
    images = {item.id: item for item in found if isinstance(item, ImageRef)}
    names, contradictions = read_folders(images) if pairs is None else join_pairs(pairs, images)
    members: dict[str, list[ImageRef]] = {}
    for id, name in sorted(names.items()):
        members.setdefault(name, []).append(images[id])
    known = [Thing(name, tuple(refs)) for name, refs in sorted(members.items()) if len(refs) > 1]
    skipped = tuple(item for item in found if isinstance(item, Skipped))
    loose = len(images) - len(names) if pairs is None else 0
    return Things(tuple(known), len(members) - len(known), loose, contradictions, skipped)


def split_things(things: Sequence[Thing], generator: np.random.Generator) -> Split:
    order = [things[number] for number in generator.permutation(len(things))]
    first, second = (round(share * len(order)) for share in (SHARES[0], sum(SHARES)))
    return Split(tuple(order[:first]), tuple(order[first:second]), tuple(order[second:]))


def read_folders(ids: Iterable[str]) -> Joined:
    """The folder of every image that lies in one; folders do not contradict each other."""
    return {id: id.rpartition("/")[0] for id in ids if "/" in id}, ()


def join_pairs(path: Path, images: Mapping[str, ImageRef]) -> Joined:
    """The thing of every image that a pair names: the first, by name, of all that are joined by pairs. And
    contradictions: pairs that most call different, of one thing all the same."""
    said: Counter[tuple[str, str]] = Counter()
    for line, row in read_table(path, ("a", "b"), FIX):
        a, b = sorted((row["a"], row["b"]))
        for id in (a, b):
            if id not in images:
                raise ManifestError(
                    f"{path}, line {line}: there is no image {id!r} in the folder",
                    expected=f"paths below it, such as {next(iter(images), 'cup/1.jpg')!r}",
                    actual=repr(id),
                    fix="correct the path, or give the folder that the paths begin at",
                )
        said[a, b] += _read_verdict(row.get("same", row.get("verdict", "same")), path, line)
    leader = {id: id for pair in said for id in pair}

    def find(id: str) -> str:
        while leader[id] != id:
            leader[id] = leader[leader[id]]
            id = leader[id]
        return id

    for (a, b), votes in said.items():
        if votes > 0:
            first, second = sorted((find(a), find(b)))
            leader[second] = first
    contradictions = tuple((a, b) for (a, b), votes in sorted(said.items()) if votes < 0 and find(a) == find(b))
    return {id: find(id) for id in leader}, contradictions


def _read_verdict(word: str, path: Path, line: int) -> int:
    """1: the same, -1: different, 0: nothing is said."""
    votes = SAME.get(word.strip().lower())
    if votes is None:
        raise ManifestError(
            f"{path}, line {line}: whether both are the same is not said",
            expected=f"one of {', '.join(SAME)}",
            actual=repr(word),
            fix="write yes or no; leave the row out, or write unsure, where nobody knows",
        )
    return votes

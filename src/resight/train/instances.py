"""Which images show the same instance: a folder, and optionally pairs or votes, in; FoundInstances and a Split out.

    photos/this cup/1.jpg, 2.jpg …      one folder per instance
    pairs.csv                           columns a, b (paths below the folder), and optionally same (yes or no)
    votes.csv                           columns a, b, verdict, as `resight votes --out` writes them

Images joined by pairs, directly or through others, are one instance. If verdicts on a pair differ, the majority counts.
A pair that is marked different but joined by others (a = b, b = c, a ≠ c) is reported as a contradiction. Instances
with one image and images outside any folder are counted and left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.data.folder_walk import walk
from resight.data.truth_tables import read_table
from resight.errors import ManifestError
from resight.types import ImageRef, Skipped

SHARES = (0.6, 0.15)  # of the instances: training and validation; the rest is the test part
SAME = {
    **dict.fromkeys(("same", "yes", "true", "1"), 1),
    **dict.fromkeys(("different", "no", "false", "0"), -1),
    **dict.fromkeys(("unsure", "skip"), 0),
}
FIX = "name the columns in the first line: a, b (paths below the folder), and same (yes or no) or verdict"

Joined = tuple[dict[str, str], tuple[tuple[str, str], ...]]  # image → instance; contradictions


@dataclass(frozen=True)
class Instance:
    name: str
    images: tuple[ImageRef, ...]


@dataclass(frozen=True)
class FoundInstances:
    known: tuple[Instance, ...]  # with two images or more, in order of name
    single: int  # instances with one image
    loose: int  # images outside any folder
    contradictions: tuple[tuple[str, str], ...]  # pairs marked different, yet joined by others
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class Split:
    """Three parts without a common instance."""

    train: tuple[Instance, ...]
    validation: tuple[Instance, ...]
    test: tuple[Instance, ...]


def find_instances(folder: Path, pairs: Path | None = None) -> FoundInstances:
    found = list(walk(folder))
    images = {item.id: item for item in found if isinstance(item, ImageRef)}
    names, contradictions = read_folders(images) if pairs is None else join_pairs(pairs, images)
    members: dict[str, list[ImageRef]] = {}
    for id, name in sorted(names.items()):
        members.setdefault(name, []).append(images[id])
    known = [Instance(name, tuple(refs)) for name, refs in sorted(members.items()) if len(refs) > 1]
    skipped = tuple(item for item in found if isinstance(item, Skipped))
    loose = len(images) - len(names) if pairs is None else 0
    return FoundInstances(tuple(known), len(members) - len(known), loose, contradictions, skipped)


def split_instances(instances: Sequence[Instance], generator: np.random.Generator) -> Split:
    order = [instances[number] for number in generator.permutation(len(instances))]
    first, second = (round(share * len(order)) for share in (SHARES[0], sum(SHARES)))
    return Split(tuple(order[:first]), tuple(order[first:second]), tuple(order[second:]))


def read_folders(ids: Iterable[str]) -> Joined:
    """image → folder, for images in one; folders never contradict each other."""
    return {id: id.rpartition("/")[0] for id in ids if "/" in id}, ()


def join_pairs(path: Path, images: Mapping[str, ImageRef]) -> Joined:
    """image → instance, named by the first of its images; and the contradictions among the pairs."""
    verdicts: Counter[tuple[str, str]] = Counter()
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
        verdicts[a, b] += _read_verdict(row.get("same", row.get("verdict", "same")), path, line)
    leader = {id: id for pair in verdicts for id in pair}

    def find(id: str) -> str:
        while leader[id] != id:
            leader[id] = leader[leader[id]]
            id = leader[id]
        return id

    for (a, b), votes in verdicts.items():
        if votes > 0:
            first, second = sorted((find(a), find(b)))
            leader[second] = first
    contradictions = tuple((a, b) for (a, b), votes in sorted(verdicts.items()) if votes < 0 and find(a) == find(b))
    return {id: find(id) for id in leader}, contradictions


def _read_verdict(word: str, path: Path, line: int) -> int:
    """1: the same, -1: different, 0: undecided."""
    votes = SAME.get(word.strip().lower())
    if votes is None:
        raise ManifestError(
            f"{path}, line {line}: the verdict cannot be read",
            expected=f"one of {', '.join(SAME)}",
            actual=repr(word),
            fix="write yes or no; leave the row out, or write unsure, if you do not know",
        )
    return votes

"""Sets of real images with known truth, each split by identity into a tuning half and a test half.

An identity is what must not be in both halves: a painting, a product, a pair of pictures, a street corner, 20 frames of
a drive or walk. Its half is a hash of its name, so that every machine has the same split. Only queries are split: the
database is whole in both.

The unknown case asks the same query without its answer: the database without the right images, and without those that
show nearly the same (20 frames, 80 metres).
"""

import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from resight.data.sets import build
from resight.geodesy import Position, find_position, metres_between
from resight.types import Dataset, ImageRef, Judgement

SETS = {  # name → data set, folder
    "museum": ("museum", "museum"),
    "gardenspoint": ("gardens_point", "gardenspoint"),
    "halensee": ("halensee", "halensee"),
    "kudamm": ("manifest", "kudamm"),
    "grocery": ("manifest", "grocery"),
    "multimodal": ("manifest", "multimodal"),
}
FRAMES, METRES = 20, 80.0
DRIVES = ("gardenspoint", "kudamm")
HALVES = ("tuning", "test")


@dataclass(frozen=True)
class Half:
    """The queries of one half of a set that have an answer."""

    name: str
    part: str  # of HALVES
    dataset: Dataset
    queries: tuple[ImageRef, ...]

    def positives(self, query: ImageRef) -> frozenset[str]:
        return frozenset(positives(self.dataset.judgements[query.id]))

    def ignored(self, query: ImageRef) -> frozenset[str]:
        return frozenset(self.dataset.judgements[query.id].ignored)

    def unlike(self, query: ImageRef) -> frozenset[str]:
        """The images of the database that show something else."""
        show_same = self.positives(query) | self.ignored(query)
        near = neighbours(self.name, query)
        return frozenset(ref.id for ref in self.dataset.database if ref.id not in show_same and not near(ref))


def load_halves(half: str, most: int | None = None) -> Iterator[Half]:
    """One half of every set below RESIGHT_DATA; of more than `most` queries, as many evenly spaced ones."""
    root = os.environ.get("RESIGHT_DATA")
    for name, (source, folder) in SETS.items():
        if root is None or not (Path(root) / folder).is_dir():
            print(f"{name}: left out, RESIGHT_DATA has no folder {folder}")
            continue
        dataset = build(source).load(Path(root) / folder)
        queries = [query for query in dataset.queries if positives(dataset.judgements[query.id])]
        chosen = [query for query in queries if choose_half(identify(name, query, dataset)) == half]
        if most is not None and len(chosen) > most:
            chosen = [chosen[number * len(chosen) // most] for number in range(most)]
        yield Half(name, half, dataset, tuple(chosen))


def choose_half(identity: str) -> str:
    return HALVES[zlib.crc32(identity.encode()) % 2]


def identify(name: str, query: ImageRef, dataset: Dataset) -> str:
    if name in DRIVES:
        return f"{name} {frame(query) // FRAMES}"
    return f"{name} {min(positives(dataset.judgements[query.id]))}"


def neighbours(name: str, query: ImageRef) -> Callable[[ImageRef], bool]:
    """Whether an image was taken so near that it shows much of the same."""
    if name in DRIVES:
        return lambda ref: abs(frame(ref) - frame(query)) <= FRAMES
    if name == "halensee":
        there = find_position(query.attributes)
        return lambda ref: is_near(there, find_position(ref.attributes))
    return lambda _: False


def is_near(one: Position | None, other: Position | None) -> bool:
    return one is not None and other is not None and bool(metres_between(*one, [other[0]], [other[1]])[0] < METRES)


def frame(ref: ImageRef) -> int:
    return int(re.findall(r"\d+", Path(ref.id).name)[-1])


def positives(judgement: Judgement) -> list[str]:
    return [name for name, grade in judgement.grades.items() if grade > 0]

"""Pairs of images that show the same thing. In: labels, or a CSV file with the columns a and b. Out: pairs of ids.

A third column `same` may say 1 or 0; rows with 0 are left out. Pairs come once each, in the order of their ids.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from resight.data.truth_files import read_table
from resight.errors import ManifestError

FIX = "name the columns in the first line: a, b (ids in the collection), and same (1 or 0) if you like"
MOST_OF_A_LABEL = 100  # so that one thing with very many images does not speak for all
Pair = tuple[str, str]


def pair_by_labels(labels: Mapping[str, object], generator: np.random.Generator) -> list[Pair]:
    """Images with the same label (None: without one); where a label has many, MOST_OF_A_LABEL pairs drawn at random."""
    members: dict[object, list[str]] = {}
    for name in sorted(labels):
        if labels[name] is not None:
            members.setdefault(labels[name], []).append(name)
    pairs: list[Pair] = []
    for images in members.values():
        total = len(images) * (len(images) - 1) // 2
        numbers = np.arange(total)
        if total > MOST_OF_A_LABEL:
            numbers = np.sort(generator.choice(total, MOST_OF_A_LABEL, replace=False))
        pairs += [(images[first], images[second]) for first, second in map(_unrank, numbers.tolist())]
    return pairs


def read_pairs(path: Path, known: frozenset[str]) -> list[Pair]:
    """The pairs of a file; every id has to be in `known`."""
    pairs: dict[Pair, None] = {}
    missing: dict[str, None] = {}
    for line, row in read_table(path, ("a", "b"), FIX):
        a, b = row["a"], row["b"]
        if is_same(row.get("same", "1"), path, line):
            missing.update({name: None for name in (a, b) if name not in known})
            pairs[(a, b) if a < b else (b, a)] = None
    if missing:
        raise ManifestError(
            f"{path} names {len(missing)} images that are not in the collection",
            expected=f"ids as `resight search` shows them, such as {', '.join(map(repr, sorted(known)[:2]))}",
            actual=", ".join(map(repr, list(missing)[:3])) + (", …" if len(missing) > 3 else ""),
            fix="correct the ids, or index the images",
        )
    return [pair for pair in pairs if pair[0] != pair[1]]


def is_same(text: str, path: Path, line: int) -> bool:
    if text not in ("0", "1"):
        raise ManifestError(f"{path}, line {line}: same is neither 0 nor 1", expected="0 or 1", actual=text)
    return text == "1"


def _unrank(number: int) -> tuple[int, int]:
    """0, 1, 2, 3, … → (0, 1), (0, 2), (1, 2), (0, 3), …"""
    second = int((1 + (1 + 8 * number) ** 0.5) / 2)
    second -= second * (second - 1) // 2 > number  # rounding of the root
    return number - second * (second - 1) // 2, second

"""A data set's labelled images → those that are trained on, and those of other classes that are only validated on.

The label is the attribute `label`; images without one are left out and counted. No class is in both parts.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from resight.errors import InputError
from resight.train.settings import Settings
from resight.types import Dataset, ImageRef

SHOWN = 5  # names in a message


@dataclass(frozen=True)
class Examples:
    refs: tuple[ImageRef, ...]
    labels: tuple[str, ...]  # of each

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.labels)))


@dataclass(frozen=True)
class Parts:
    train: Examples
    held_out: Examples
    notes: tuple[str, ...]  # what was left out, and why


def choose_examples(dataset: Dataset, settings: Settings, left_out: Collection[str] = ()) -> Parts:
    """`left_out` are classes that must not be trained on."""
    labelled = [(ref, str(ref.attributes["label"])) for ref in dataset.database if "label" in ref.attributes]
    kept = [(ref, label) for ref, label in labelled if label not in left_out]
    notes = [
        _say(len(dataset.database) - len(labelled), "image", "without a label left out"),
        _say(len(labelled) - len(kept), "image", "of classes that overlap with the evaluation set left out"),
    ]
    counts = Counter(label for _, label in kept)
    single = sorted(label for label, count in counts.items() if count == 1)
    if single and settings.single == "refuse":
        raise InputError(
            f"{len(single):,} of {len(counts):,} classes of {dataset.name} have one image",
            expected="two images or more of each class: one alone teaches nothing of what stays the same",
            actual=", ".join(single[:SHOWN]) + (" …" if len(single) > SHOWN else ""),
            fix="add images, or set train.single=leave_out (or keep, for losses with centres)",
        )
    if single and settings.single == "leave_out":
        kept = [(ref, label) for ref, label in kept if counts[label] > 1]
        notes.append(_say(len(single), "class", "with one image left out"))
    validated = hold_out([label for _, label in kept], settings)
    parts = Parts(
        _gather(kept, lambda label: label not in validated),
        _gather(kept, lambda label: label in validated),
        tuple(note for note in notes if note),
    )
    if len(parts.train.classes) < 2:
        raise InputError(
            f"nothing to train on in {dataset.name}",
            expected="two classes or more that are not held out (`label` of a manifest, a folder each with labels)",
            actual=f"{len(parts.train.classes)} of {len(set(counts))} classes, {len(labelled):,} images with a label",
            fix="use a data set with classes, e.g. --set data.labels=true for a folder of folders",
        )
    return parts


def hold_out(labels: Sequence[str], settings: Settings) -> frozenset[str]:
    """Classes for validation, by chance: a share of those with two images or more, as far as the images allow."""
    counts = Counter(labels)
    able = sorted(label for label, count in counts.items() if count > 1)
    wanted = min(round(settings.held_out * len(counts)), len(able))
    if settings.held_out > 0 and len(counts) > 3:
        wanted = max(wanted, min(2, len(able)))  # with one class everything found is right
    order = np.random.default_rng([settings.seed, len(able)]).permutation(len(able))
    chosen: list[str] = []
    images = 0
    for number in order[:wanted]:
        images += counts[able[number]]
        if images > settings.held_out_images and len(chosen) >= 2:
            break
        chosen.append(able[number])
    return frozenset(chosen)


def _gather(kept: Sequence[tuple[ImageRef, str]], wanted: Callable[[str], bool]) -> Examples:
    chosen = [(ref, label) for ref, label in kept if wanted(label)]
    return Examples(tuple(ref for ref, _ in chosen), tuple(label for _, label in chosen))


def _say(count: int, noun: str, words: str) -> str:
    plural = {"image": "images", "class": "classes"}[noun]
    return f"{count:,} {noun if count == 1 else plural} {words}" if count else ""

"""Training examples: the labelled images of a data set in, those to train on and those to validate on out.

The label is the attribute `label`; images without one are left out and counted. No class is in both parts.

`read_sizes` gives the width and height of every image for group-size sampling: upright as EXIF demands, of the box if a
reference has one. It reads only file headers, and stores the sizes in a file, as a million headers take a while. A file
that cannot be opened counts as square; loading it reports the error.
"""

import json
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image

from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.files.remote import open_file
from resight.train.train_config import Settings
from resight.types import Dataset, ImageRef, IntArray

SHOWN = 5  # names in a message
SIDEWAYS = (5, 6, 7, 8)  # EXIF orientations that exchange width and height
SQUARE = (1, 1)


@dataclass(frozen=True)
class Examples:
    refs: tuple[ImageRef, ...]
    labels: tuple[str, ...]  # one per image

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.labels)))


@dataclass(frozen=True)
class Parts:
    train: Examples
    held_out: Examples
    notes: tuple[str, ...]  # what was left out, and why


def choose_examples(dataset: Dataset, settings: Settings, left_out: Collection[str] = ()) -> Parts:
    """Split the database into training and validation; `left_out` are classes that must not be trained on."""
    labelled = [(ref, str(ref.attributes["label"])) for ref in dataset.database if "label" in ref.attributes]
    kept = [(ref, label) for ref, label in labelled if label not in left_out]
    notes = [
        _note(len(dataset.database) - len(labelled), "image", "without a label left out"),
        _note(len(labelled) - len(kept), "image", "of classes that overlap with the evaluation set left out"),
    ]
    counts = Counter(label for _, label in kept)
    single = sorted(label for label, count in counts.items() if count == 1)
    if single and settings.single == "refuse":
        raise InputError(
            f"{len(single):,} of {len(counts):,} classes of {dataset.name} have one image",
            expected="two images or more per class, since one alone cannot show what stays the same",
            actual=", ".join(single[:SHOWN]) + (" …" if len(single) > SHOWN else ""),
            fix="add images, or set train.single=leave_out (or keep, for losses with class centres)",
        )
    if single and settings.single == "leave_out":
        kept = [(ref, label) for ref, label in kept if counts[label] > 1]
        notes.append(_note(len(single), "class", "with one image left out"))
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
    """Draw classes for validation: a share of those with two images or more, up to `held_out_images`."""
    counts = Counter(labels)
    able = sorted(label for label, count in counts.items() if count > 1)
    wanted = min(round(settings.held_out * len(counts)), len(able))
    if settings.held_out > 0 and len(counts) > 3:
        wanted = max(wanted, min(2, len(able)))  # with one class every answer is right
    order = np.random.default_rng([settings.seed, len(able)]).permutation(len(able))
    chosen: list[str] = []
    images = 0
    for number in order[:wanted]:
        images += counts[able[number]]
        if images > settings.held_out_images and len(chosen) >= 2:
            break
        chosen.append(able[number])
    return frozenset(chosen)


def read_sizes(refs: Sequence[ImageRef], file: Path, progress: Callable[[int, int], None] | None = None) -> IntArray:
    """Sizes [n, 2]. `file` holds known sizes by id; it is written again if some were missing."""
    known = load_json(file.read_text(encoding="utf-8")) if file.exists() else {}
    missing = [ref for ref in refs if ref.id not in known]
    found = dict(known)
    for number, ref in enumerate(missing, 1):
        found[ref.id] = read_size(ref)
        if progress is not None:
            progress(number, len(missing))
    if missing:
        with write_atomic(file) as temporary:
            temporary.write_text(json.dumps(found), encoding="utf-8")
    return np.array([found[ref.id] for ref in refs], np.int64).reshape(-1, 2)


def read_size(ref: ImageRef) -> tuple[int, int]:
    if ref.box is not None:
        x0, y0, x1, y1 = ref.box
        return max(1, round(x1 - x0)), max(1, round(y1 - y0))
    try:
        with warnings.catch_warnings(action="ignore"), open_file(ref.path) as opened, Image.open(opened) as image:
            width, height = image.size
            return (height, width) if image.getexif().get(ExifTags.Base.Orientation) in SIDEWAYS else (width, height)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return SQUARE


def _gather(kept: Sequence[tuple[ImageRef, str]], wanted: Callable[[str], bool]) -> Examples:
    chosen = [(ref, label) for ref, label in kept if wanted(label)]
    return Examples(tuple(ref for ref, _ in chosen), tuple(label for _, label in chosen))


def _note(count: int, noun: str, words: str) -> str:
    plural = {"image": "images", "class": "classes"}[noun]
    return f"{count:,} {noun if count == 1 else plural} {words}" if count else ""

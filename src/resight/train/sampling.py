"""Sampling: the class and size of every image in, the batches of an epoch out (`plan_epoch`), all of equal length.

Group-size sampling (Yokoo et al., 2020; CiDeR, Table A23): images of similar aspect ratio share a batch, which is
resized to the group's own proportions with about size² pixels, in whole cells of the network. The rest of a group
joins the next wider one, so that no image is lost; images of the same epoch fill up the last batch. `fixed` resizes
every image to one square.

`together` images of a class form a run, which stays in one batch, in the group of its middle image; a class with too
few images for its runs shows some twice. The batches depend only on the seed and the epoch.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from resight.train.train_config import Settings
from resight.types import IntArray

WIDEST = 2.0  # log2(width / height) beyond which an image is distorted rather than given a group of its own
Run = list[int]  # images of one class


@dataclass(frozen=True)
class Batch:
    images: tuple[int, ...]  # their numbers
    width: int
    height: int


def plan_epoch(labels: IntArray, sizes: IntArray | None, settings: Settings, cell: int, epoch: int) -> list[Batch]:
    """`labels` [n] are classes from 0, `sizes` [n, 2] widths and heights; without sizes there is one group."""
    generator = np.random.default_rng([settings.seed, epoch])
    groups = find_groups(sizes, settings) if sizes is not None else np.zeros(len(labels), np.int64)
    by_group: dict[int, list[Run]] = {}
    for run in _list_runs(labels, groups, settings, generator):
        by_group.setdefault(int(groups[run[len(run) // 2]]), []).append(run)
    batches: list[Batch] = []
    left: list[int] = []
    for group, runs in sorted(by_group.items()):
        order = generator.permutation(len(runs))
        images = left + [image for number in order for image in runs[number]]
        width, height = choose_size(group, settings, cell)
        whole = len(images) - len(images) % settings.batch
        starts = range(0, whole, settings.batch)
        batches += [Batch(tuple(images[start : start + settings.batch]), width, height) for start in starts]
        left = images[whole:]
    if left:
        shown = [*left, *(image for batch in batches for image in batch.images)]
        filled = itertools.islice(itertools.cycle(shown), settings.batch)
        batches.append(Batch(tuple(filled), width, height))
    return [batches[number] for number in generator.permutation(len(batches))]


def count_steps(labels: IntArray, settings: Settings) -> int:
    """The number of batches per epoch; it does not depend on the grouping."""
    counts = _share_out(np.bincount(labels), settings)
    shown = sum(-(-int(count) // settings.together) * settings.together for count in counts)
    return -(-shown // settings.batch)


def find_groups(sizes: IntArray, settings: Settings) -> IntArray:
    """The group of each image: log2(width / height), in steps."""
    ratios = np.log2(sizes[:, 0] / sizes[:, 1]).clip(-WIDEST, WIDEST)
    return np.rint(ratios / settings.ratio_step).astype(np.int64)


def choose_size(group: int, settings: Settings, cell: int) -> tuple[int, int]:
    """Width and height of a group's batches, in whole cells."""
    if settings.sampling == "fixed":
        return settings.size, settings.size
    stretch = 2 ** (group * settings.ratio_step / 2)
    columns, rows = settings.size * stretch / cell, settings.size / stretch / cell
    return max(1, round(columns)) * cell, max(1, round(rows)) * cell


def _list_runs(labels: IntArray, groups: IntArray, settings: Settings, generator: np.random.Generator) -> Iterator[Run]:
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    for members, shown in zip(np.split(order, np.cumsum(counts)[:-1]), _share_out(counts, settings), strict=True):
        if not shown:
            continue
        turns = -(-int(shown) // len(members))  # rounds through the class; the last may be partial
        drawn = np.concatenate([generator.permutation(members) for _ in range(turns)])[:shown]
        alike = drawn[np.argsort(groups[drawn], kind="stable")]  # so that runs have one group if possible
        for start in range(0, len(alike), settings.together):
            run = [int(image) for image in alike[start : start + settings.together]]
            yield run if len(run) == settings.together else _fill(run, members, settings.together)


def _fill(run: Run, members: IntArray, length: int) -> Run:
    """Fill up a run with others of the class, or with the same images again."""
    spare = [int(image) for image in members if image not in run] or run
    return run + list(itertools.islice(itertools.cycle(spare), length - len(run)))


def _share_out(counts: IntArray, settings: Settings) -> Sequence[int]:
    """The number of images that an epoch shows of each class."""
    if settings.balance == "images":
        return [int(count) for count in counts]
    present = np.count_nonzero(counts)
    return [-(-int(counts.sum()) // int(present)) if count else 0 for count in counts]

"""Which preset suits your images: a sample of them in, one trial per preset out, and the preset to take.

A sample becomes a small collection per preset, and the same queries search each: those of your own ground truth, or,
without any, new views of sampled images (synthetic_views.py), half of them flat things in another scene and half places
in other light. A preset is *as good as the best* if the 95 % interval of its paired difference in R@1 reaches 0; of
these, the one with the quickest search is suggested. Synthetic views say little about other sides of a solid object.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.collection import open_collection
from resight.data import image_files
from resight.errors import ImageError, InputError
from resight.evaluate.statistics.tests import bootstrap_interval, paired_interval
from resight.evaluate.synthetic_views import show_flat, show_place
from resight.search.request import SearchRequest
from resight.types import Dataset, ImageRef, Picture, Recipe

LARGEST = 800  # pixels of the longer side of an image that views are made of
FEWEST = 8  # images
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Trial:
    """How one preset did on the sample.

    Attributes:
        preset: Its name.
        recall: R@1, the share of queries whose first answer is right.
        interval: Of `recall`, 95 %, by a bootstrap over the queries.
        milliseconds: Per query, by the clock.
        bytes_per_image: On disk, indexes included.
        as_good_as_the_best: Whether the paired interval of the difference to the best preset reaches 0.
    """

    preset: str
    recall: float
    interval: tuple[float, float]
    milliseconds: float
    bytes_per_image: float
    as_good_as_the_best: bool


@dataclass(frozen=True)
class Suggestion:
    preset: str
    trials: tuple[Trial, ...]  # the best first
    images: int
    queries: int
    synthetic: bool  # the queries were made from the images


@dataclass(frozen=True)
class Sample:
    database: tuple[ImageRef, ...]
    queries: tuple[tuple[ImageRef | Picture, frozenset[str]], ...]  # with the ids of the right answers
    synthetic: bool


def suggest(sample: Sample, recipes: Sequence[Recipe], progress: Progress | None = None) -> Suggestion:
    """Try every recipe on the sample."""
    right: dict[str, np.ndarray] = {}
    costs: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="resight-suggest-") as scratch:
        for number, recipe in enumerate(recipes):
            right[recipe.name], *cost = _try(sample, recipe, Path(scratch) / f"{number}.resight")
            costs[recipe.name] = (cost[0], cost[1])
            if progress is not None:
                progress(number + 1, len(recipes))
    names = sorted(right, key=lambda name: (-right[name].mean(), costs[name][0]))
    trials = tuple(_compare(name, right[name], right[names[0]], costs[name]) for name in names)
    chosen = min((trial for trial in trials if trial.as_good_as_the_best), key=lambda trial: trial.milliseconds)
    return Suggestion(chosen.preset, trials, len(sample.database), len(sample.queries), sample.synthetic)


def sample_truth(dataset: Dataset, images: int, queries: int, generator: np.random.Generator) -> Sample:
    """Queries with an answer, their answers, and other images of the database."""
    known = {ref.id: ref for ref in dataset.database}
    judged = []
    for ref in dataset.queries:
        grades = dataset.judgements[ref.id].grades if ref.id in dataset.judgements else {}
        answers = frozenset(name for name, grade in grades.items() if grade > 0 and name in known)
        if answers:
            judged.append((ref, answers))
    _require(len(judged), "queries with an answer")
    chosen = [judged[row] for row in sorted(generator.permutation(len(judged))[:queries])]
    needed = dict.fromkeys(name for _, answers in chosen for name in sorted(answers))
    others = [name for name in known if name not in needed]
    extra = generator.permutation(len(others))[: max(images - len(needed), 0)]
    kept = {*needed, *(others[row] for row in extra)}
    return Sample(tuple(ref for name, ref in known.items() if name in kept), tuple(chosen), synthetic=False)


def sample_views(refs: Sequence[ImageRef], images: int, queries: int, generator: np.random.Generator) -> Sample:
    """A sample of images, and new views of some of them; unreadable images are left out."""
    pictures = []
    for row in generator.permutation(len(refs))[:images]:
        try:
            pictures.append(image_files.read(refs[row], max_side=LARGEST))
        except ImageError:
            continue
    _require(len(pictures), "readable images")
    views = []
    for number, picture in enumerate(pictures[:queries]):
        scene = pictures[int(generator.integers(len(pictures)))]
        pixels = (
            show_place(picture.pixels, generator) if number % 2 else show_flat(picture.pixels, scene.pixels, generator)
        )
        name = f"view {number}"
        view = Picture(ImageRef(name, Path(name)), pixels, (pixels.shape[1], pixels.shape[0]))
        views.append((view, frozenset([picture.ref.id])))
    return Sample(tuple(picture.ref for picture in pictures), tuple(views), synthetic=True)


def _try(sample: Sample, recipe: Recipe, folder: Path) -> tuple[np.ndarray, float, float]:
    """Whether each query's first answer is right [n], milliseconds per query, and bytes per image."""
    collection = open_collection(folder, recipe)
    collection.add(list(sample.database))
    view = collection.view()
    right = []
    view.ask(SearchRequest(sample.queries[0][0], 1))  # opens indexes and loads networks
    start = time.perf_counter()
    for query, answers in sample.queries:
        # A query that is in the database, too, finds itself.
        own = query.id if isinstance(query, ImageRef) else ""
        hits = [hit.id for hit in view.ask(SearchRequest(query, 2)).hits if hit.id != own]
        right.append(bool(hits) and hits[0] in answers)
    milliseconds = 1000 * (time.perf_counter() - start) / len(right)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return np.array(right, np.float64), milliseconds, size / len(sample.database)


def _compare(name: str, right: np.ndarray, best: np.ndarray, cost: tuple[float, float]) -> Trial:
    low, high = bootstrap_interval(right, np.random.default_rng(0))
    _, most = paired_interval(right, best, np.random.default_rng(0))
    return Trial(name, float(right.mean()), (low, high), *cost, as_good_as_the_best=most >= 0)


def _require(count: int, what: str) -> None:
    if count < FEWEST:
        raise InputError(
            f"too few {what} to compare presets on", expected=f"{FEWEST} or more", actual=str(count), fix="give more"
        )

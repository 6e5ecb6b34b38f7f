"""Code books from one's own images: a random sample of local features of every image, then k-means.

Code books that are learnt from the very images that are indexed: `codebook = "learn"` in a recipe.

In: a recipe, the images of a new collection, and its folder. Out: the collection, whose own recipe names the learnt
files, which it keeps. Branches with the same encoder, words and way of learning share a code book, and branches with
the same encoder the sample of features. A collection that is there already keeps the words that it was made with.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.boxes import crop
from resight.collection import Collection, metadata, open_collection
from resight.collection.add import Progress, Source, list_refs
from resight.collection.location import is_there
from resight.data import image_files
from resight.encode import backbones, codebook, models
from resight.encode.backbones import Backbone
from resight.encode.codebook import Codebook, learn
from resight.encode.descriptors._vocabulary import LEARN, VocabularySettings, take_rows
from resight.encode.encoder import build_backbone
from resight.encode.extract import run_ahead
from resight.encode.feature_cache import FeatureCache
from resight.errors import BoxError, ImageError, InputError, RecipeError, SpaceMismatch
from resight.plugins import configure, find
from resight.types import Branch, ImageRef, Picture, Recipe

Rows = NDArray[Any]


def learn_codebook(
    sources: Sequence[Source], words: int, encoder: str, features: int, seed: int, progress: Progress | None = None
) -> Codebook:
    """`features` bounds the memory: each image gives its share of them, drawn at random."""
    return learn(sample_features(sources, backbones.build(encoder), features, seed, progress=progress), words, seed)


def sample_features(
    sources: Sequence[Source],
    backbone: Backbone,
    most: int,
    seed: int,
    *,
    normalise: bool = False,
    progress: Progress | None = None,
) -> Rows:
    """At most about `most` local features [n, D] of all images, which share them out; the same ones each time."""
    total = sum(1 for source in sources for _ in list_refs(source))
    if total == 0:
        raise InputError("no images to learn from", expected="a folder with images", fix="check the path")
    share = max(most // total, 1)

    def take(item: tuple[int, ImageRef]) -> Rows | None:
        number, ref = item
        try:
            picture = _read(ref, backbone.max_side)
        except (ImageError, BoxError):
            return None  # whoever indexes the images lists what cannot be read
        (features,) = backbone.extract([picture])
        rows = take_rows(features, 0, normalise)
        return rows[np.random.default_rng([seed, number]).permutation(len(rows))[:share]]

    workers = os.cpu_count() or 1
    parts: list[Rows] = []
    with ThreadPoolExecutor(workers, thread_name_prefix="sample") as pool:
        for done, rows in enumerate(run_ahead(_number(sources), take, pool, 2 * workers), start=1):
            parts += [] if rows is None else [rows]
            if progress:
                progress(done, total)
    if not parts:
        raise InputError("no image could be read", expected="images", actual=f"{total} files", fix="check the path")
    return np.concatenate(parts)


def _number(sources: Sequence[Source]) -> Iterator[tuple[int, ImageRef]]:
    refs = (ref for source in sources for ref in list_refs(source) if isinstance(ref, ImageRef))
    yield from enumerate(refs)


def _read(ref: ImageRef, max_side: int | None) -> Picture:
    if ref.box is None:
        return image_files.read(ref, max_side=max_side)
    return crop(image_files.read(ref), ref.box)


DESCRIPTORS = "resight.encode.descriptors"


def open_learning(
    folder: Path,
    recipe: Recipe,
    sources: Sequence[Source],
    *,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> Collection:
    """The collection in `folder`, made when missing; what its recipe wants learnt is learnt from `sources` first."""
    if not any(map(_is_to_learn, recipe.branches)):
        return open_collection(folder, recipe, cache=cache)
    if is_there(folder, metadata.FILE):
        return open_collection(folder, _take_over(recipe, metadata.read(folder).recipe), cache=cache)
    with tempfile.TemporaryDirectory(prefix="resight-words-") as scratch:
        return open_collection(folder, prepare(recipe, sources, Path(scratch), cache, progress), cache=cache)


def prepare(
    recipe: Recipe,
    sources: Sequence[Source],
    folder: Path,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> Recipe:
    """The recipe with learnt files, which lie in `folder`, in the place of "learn"."""
    learner = _Learner(sources, folder, cache, progress)
    branches = [learner.fill_in(branch) if _is_to_learn(branch) else branch for branch in recipe.branches]
    return replace(recipe, branches=tuple(branches))


class _Learner:
    def __init__(
        self, sources: Sequence[Source], folder: Path, cache: FeatureCache | None, progress: Progress | None
    ) -> None:
        # An iterator could be run through once only.
        self._sources = [source if isinstance(source, (str, Path)) else list(source) for source in sources]
        self._folder = folder
        self._cache = cache
        self._progress = progress
        self._samples: dict[str, Rows] = {}
        self._files: dict[str, Path] = {}

    def fill_in(self, branch: Branch) -> Branch:
        settings = _read_settings(branch)
        if settings.words is None:
            raise RecipeError(
                'codebook = "learn" does not say how many words',
                expected="words, a number",
                actual="none",
                fix=f'e.g. descriptor = {{ name = "{branch.descriptor.name}", codebook = "learn", words = 2000 }}',
            )
        key = repr((branch.encoder, settings.sample, settings.seed, settings.normalise))
        place = repr((key, settings.words, settings.branching))
        if place not in self._files:
            rows = self._sample(branch, settings, key)
            book = codebook.learn(rows, settings.words, settings.seed, branching=settings.branching)
            self._files[place] = self._folder / f"words_{len(self._files)}.npz"
            codebook.save(book, self._files[place])
        return _put(branch, self._files[place])

    def _sample(self, branch: Branch, settings: VocabularySettings, key: str) -> Rows:
        if key not in self._samples:
            backbone = build_backbone(branch.encoder, self._cache)
            self._samples = {  # one at a time: they are large, and branches of one encoder mostly follow each other
                key: sample_features(
                    self._sources,
                    backbone,
                    settings.sample,
                    settings.seed,
                    normalise=settings.normalise,
                    progress=self._progress,
                )
            }
        return self._samples[key]


def _take_over(recipe: Recipe, made: Recipe) -> Recipe:
    """The recipe with the code books of the collection that it made, or that one like it made."""
    mine = [models.resolve_branch(branch) for branch in recipe.branches]
    if [_without_file(branch) for branch in mine] != [_without_file(branch) for branch in made.branches]:
        raise SpaceMismatch(
            "the collection has learnt other words, or from other features",
            expected="; ".join(map(_say, made.branches)),
            actual="; ".join(map(_say, mine)),
            fix="leave out --encoder and --recipe to use what it was made with, or index into a new collection",
        )
    files = [branch.descriptor.settings.get("codebook") for branch in made.branches]
    branches = [
        _put(branch, file) if _is_to_learn(branch) else branch
        for branch, file in zip(recipe.branches, files, strict=True)
    ]
    return replace(recipe, branches=tuple(branches))


def _is_to_learn(branch: Branch) -> bool:
    return str(branch.descriptor.settings.get("codebook", "")) == LEARN


def _read_settings(branch: Branch) -> VocabularySettings:
    plugin = find(DESCRIPTORS, branch.descriptor.name)
    settings: Any = configure(plugin.Config, branch.descriptor.settings, f"descriptor {branch.descriptor.name!r}")
    assert isinstance(settings, VocabularySettings)
    return settings


def _put(branch: Branch, file: Any) -> Branch:
    settings: Mapping[str, Any] = {**branch.descriptor.settings, "codebook": str(file)}
    return replace(branch, descriptor=replace(branch.descriptor, settings=settings))


def _without_file(branch: Branch) -> Branch:
    """What says how rows are made, apart from where the words are."""
    settings = {name: value for name, value in branch.descriptor.settings.items() if name != "codebook"}
    return replace(branch, weight=0.0, index=None, descriptor=replace(branch.descriptor, settings=settings))


def _say(branch: Branch) -> str:
    kept = {name: value for name, value in branch.descriptor.settings.items() if name != "codebook"}
    return f"{branch.encoder.name} {dict(branch.encoder.settings)} > {branch.descriptor.name} {kept}"

"""Codebooks learnt from a user's own images: local features of every image, sampled at random, then k-means.

`open_learning` makes a collection by a recipe with `codebook = "learn"`. In: the recipe, the images and the
folder. Out: the collection, whose own recipe names the learnt files, which it keeps. Branches with the same encoder,
words and way of learning share a codebook; branches with the same encoder share the sample. A collection that exists
keeps its words. `learn_codebook` learns one for a file (`resight codebook`).
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.boxes import crop
from resight.collection import Collection, metadata, open_collection
from resight.collection.add import Progress, ReadImage
from resight.collection.image_list import ImageList, Source
from resight.data import image_files
from resight.encode import codebook, named_networks
from resight.encode.backbones import Backbone
from resight.encode.codebook import Codebook
from resight.encode.descriptors._vocabulary import LEARN, VocabularySettings, read_rows
from resight.encode.encoder import build_backbone, see_through
from resight.encode.extract import run_ahead
from resight.encode.feature_cache import Cached, FeatureCache
from resight.errors import BoxError, ImageError, InputError, RecipeError, SpaceMismatch
from resight.plugins import configure, find
from resight.types import Branch, Choice, ImageRef, Picture, Recipe

DESCRIPTORS = "resight.encode.descriptors"
Rows = NDArray[Any]
Networks = dict[str, Backbone]  # by the repr of the encoder's Choice, as an Encoder has them


def open_learning(
    folder: Path,
    recipe: Recipe,
    sources: Sequence[Source | ImageList],
    *,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
    read: ReadImage = image_files.read,
) -> Collection:
    """The collection in `folder`, made if missing; codebooks that its recipe lacks are learnt from `sources` first."""
    if not any(map(_is_to_learn, recipe.branches)):
        return open_collection(folder, recipe, cache=cache, read=read)
    if metadata.exists(folder):
        return open_collection(folder, _use_codebooks(recipe, metadata.read(folder).recipe), cache=cache, read=read)
    networks: Networks = {}
    with tempfile.TemporaryDirectory(prefix="resight-words-") as scratch:
        learnt = learn_codebooks(recipe, sources, Path(scratch), cache, progress, networks)
        return open_collection(folder, learnt, cache=cache, read=read, networks=networks)


def learn_codebooks(
    recipe: Recipe,
    sources: Sequence[Source | ImageList],
    folder: Path,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
    networks: Networks | None = None,
) -> Recipe:
    """The recipe with files, written to `folder`, instead of "learn"; `networks` gets the networks that were loaded."""
    lists = [source if isinstance(source, ImageList) else ImageList(source) for source in sources]
    learner = _Learner(lists, folder, cache, progress, {} if networks is None else networks)
    branches = [learner.learn(branch) if _is_to_learn(branch) else branch for branch in recipe.branches]
    return replace(recipe, branches=tuple(branches))


def learn_codebook(
    sources: Sequence[Source], words: int, encoder: str, features: int, seed: int, progress: Progress | None = None
) -> Codebook:
    """`features` bounds the memory: the images share them equally, each drawing its own at random."""
    lists = [ImageList(source) for source in sources]
    rows = sample_features(lists, build_backbone(Choice(encoder)), features, seed, progress=progress)
    return codebook.learn(rows, words, seed)


def sample_features(
    lists: Sequence[ImageList],
    backbone: Backbone,
    most: int,
    seed: int,
    *,
    normalise: bool = False,
    progress: Progress | None = None,
) -> Rows:
    """About `most` local features [n, D] at most, an equal share per image; the same ones each time."""
    total = sum(map(len, lists))
    if total == 0:
        raise InputError("no images to learn from", expected="a folder with images", fix="check the path")
    share = max(most // total, 1)

    def sample(item: tuple[int, ImageRef]) -> Rows | None:
        number, ref = item
        try:
            picture = _read(ref, backbone.max_side)
        except (ImageError, BoxError):
            return None  # adding the images reports it
        (features,) = backbone.extract([picture])
        rows = read_rows(features, 0, normalise)
        return rows[np.random.default_rng([seed, number]).permutation(len(rows))[:share]]

    workers = os.cpu_count() or 1
    refs = (ref for images in lists for ref in images.refs)
    parts: list[Rows] = []
    with ThreadPoolExecutor(workers, thread_name_prefix="sample") as pool:
        for done, rows in enumerate(run_ahead(enumerate(refs), sample, pool, 2 * workers), start=1):
            parts += [] if rows is None else [rows]
            if progress:
                progress(done, total)
    if not parts:
        raise InputError("no image could be read", expected="images", actual=f"{total} files", fix="check the path")
    return np.concatenate(parts)


def _read(ref: ImageRef, max_side: int | None) -> Picture:
    if ref.box is None:
        return image_files.read(ref, max_side=max_side)
    return crop(image_files.read(ref), ref.box)


class _Learner:
    def __init__(
        self,
        lists: Sequence[ImageList],
        folder: Path,
        cache: FeatureCache | None,
        progress: Progress | None,
        networks: Networks,
    ) -> None:
        self._lists = lists
        self._folder = folder
        self._cache = cache
        self._progress = progress
        self._networks = networks
        self._samples: dict[str, Rows] = {}
        self._files: dict[str, Path] = {}

    def learn(self, branch: Branch) -> Branch:
        """The branch with the file of its codebook."""
        settings = _read_settings(branch)
        if settings.words is None:
            raise RecipeError(
                'codebook = "learn" needs a number of words',
                expected="words, a number",
                actual="none",
                fix=f'e.g. descriptor = {{ name = "{branch.descriptor.name}", codebook = "learn", words = 2000 }}',
            )
        sample_key = repr((branch.encoder, branch.photometric, settings.sample, settings.seed, settings.normalise))
        key = repr((sample_key, settings.words, settings.branching))
        if key not in self._files:
            rows = self._sample(branch, settings, sample_key)
            book = codebook.learn(rows, settings.words, settings.seed, branching=settings.branching)
            self._files[key] = self._folder / f"words_{len(self._files)}.npz"
            codebook.save(book, self._files[key])
        return _set_codebook(branch, self._files[key])

    def _sample(self, branch: Branch, settings: VocabularySettings, key: str) -> Rows:
        if key not in self._samples:
            network = repr(branch.encoder)
            if network not in self._networks:
                self._networks[network] = build_backbone(branch.encoder)
            backbone = see_through(self._networks[network], branch.photometric)
            rows = sample_features(
                self._lists,
                backbone if self._cache is None else Cached(backbone, self._cache),
                settings.sample,
                settings.seed,
                normalise=settings.normalise,
                progress=self._progress,
            )
            self._samples = {key: rows}  # the last one alone: samples are large, and an encoder's branches are adjacent
        return self._samples[key]


def _use_codebooks(recipe: Recipe, made: Recipe) -> Recipe:
    """The recipe with the codebooks of the collection that a recipe like it made."""
    mine = [named_networks.resolve_branch(branch) for branch in recipe.branches]
    if [_without_file(branch) for branch in mine] != [_without_file(branch) for branch in made.branches]:
        raise SpaceMismatch(
            "the collection has learnt other words, or from other features",
            expected="; ".join(map(_format, made.branches)),
            actual="; ".join(map(_format, mine)),
            fix="leave out --preset and --recipe to use what it was made with, or index into a new collection",
        )
    files = [branch.descriptor.settings.get("codebook") for branch in made.branches]
    branches = [
        _set_codebook(branch, file) if _is_to_learn(branch) else branch
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


def _set_codebook(branch: Branch, file: Any) -> Branch:
    settings: Mapping[str, Any] = {**branch.descriptor.settings, "codebook": str(file)}
    return replace(branch, descriptor=replace(branch.descriptor, settings=settings))


def _without_file(branch: Branch) -> Branch:
    """The settings that rows depend on, apart from the file of the words."""
    settings = {name: value for name, value in branch.descriptor.settings.items() if name != "codebook"}
    return replace(branch, weight=0.0, index=None, descriptor=replace(branch.descriptor, settings=settings))


def _format(branch: Branch) -> str:
    settings = {name: value for name, value in branch.descriptor.settings.items() if name != "codebook"}
    return f"{branch.encoder.name} {dict(branch.encoder.settings)} > {branch.descriptor.name} {settings}"

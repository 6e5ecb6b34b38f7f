"""Code books that are learnt from the very images that are indexed: `codebook = "learn"` in a recipe.

In: a recipe, the images of a new collection, and its folder. Out: the collection, whose own recipe names the learnt
files, which it keeps. Branches with the same encoder, words and way of learning share a code book, and branches with
the same encoder the sample of features. A collection that is there already keeps the words that it was made with.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from resight.collection import Collection, description, open_collection
from resight.collection.adding import Progress, Source
from resight.collection.codebooks import Rows, sample_features
from resight.collection.home import is_there
from resight.encode import backbones, codebook, models
from resight.encode.backbones import Backbone
from resight.encode.feature_cache import Cached, FeatureCache
from resight.encode.vocabulary.settings import LEARN, VocabularySettings
from resight.errors import RecipeError, SpaceMismatch
from resight.plugins import configure, find
from resight.types import Branch, Recipe

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
    if is_there(folder, description.FILE):
        return open_collection(folder, _take_over(recipe, description.read(folder).recipe), cache=cache)
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
            backbone: Backbone = backbones.build(branch.encoder.name, **branch.encoder.settings)
            if self._cache is not None:
                backbone = Cached(backbone, self._cache)
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

"""`load_encoder`: a recipe, or an encoder by name, file or object, in; an ImageEncoder out, which needs no collection.

A recipe gives what its branches describe: its first branch of one vector per image becomes `pooled`, its first of
tokens `tokens`, its first of regions `regions`. An encoder alone gives its own vector (head, or CLS, or the mean patch)
and all its patches. Where tokens or regions are all there is, their mean is the pooled vector.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resight import plugins
from resight import recipe as recipes
from resight.collection.embeddings import Embeddings, compare_pooled, compare_tokens, join_rows, pool
from resight.collection.own_encoder import load_network, name_encoder, probe
from resight.data.image_inputs import is_batch, read_input
from resight.encode import named_networks
from resight.encode.encoder import Encoder, encode_stored
from resight.encode.extract import Encoded, encode_ahead
from resight.encode.named_networks import BACKBONES
from resight.encode.query import TOKEN_DESCRIPTORS
from resight.errors import InputError, RecipeError, ResightError, did_you_mean
from resight.progress import Progress, in_notebook, open_bar
from resight.types import Branch, Choice, Descriptors, FloatArray, Picture, Recipe, Skipped

POOLED = ("pooled", "cells", "vlad")  # descriptors of one vector per image


def load_encoder(encoder: Any) -> "ImageEncoder":
    """Load an encoder, to get the vectors of images.

    Args:
        encoder: A recipe ("tokens", "craters", a .toml file or a Recipe), the name of a network ("dinov2_vits14";
            `resight encoders` lists them), an ONNX file, or an encoder of your own, as for `resight.open`. A name of
            both is the recipe.

    Returns:
        The encoder.

    Raises:
        RecipeError: There is no such recipe or encoder.
        MissingWeights: Its weights are not here and cannot be downloaded.

    Examples:
        >>> import resight
        >>> encoder = resight.load_encoder("tokens")
        >>> found = encoder.encode(["query.jpg", "photos/eiffel-2.png", "photos/castle.png"])
        >>> found.pooled.shape, found.tokens[0].shape
        ((3, 208), (32, 208))
        >>> encoder.maxsim(found, found).argsort(axis=1)[0, ::-1].tolist()  # most similar to the query first
        [0, 1, 2]
    """
    if isinstance(encoder, ImageEncoder):
        return encoder
    recipe = _find_recipe(encoder)
    if recipe is not None:
        return ImageEncoder(recipe.name, recipe.branches, Encoder(recipe.branches))
    choice, network = load_network(encoder)
    branches = _describe(choice, probe(network))
    return ImageEncoder(name_encoder(choice), branches, Encoder(branches, networks={repr(choice): network}))


class ImageEncoder:
    """Turns images into vectors; `load_encoder` returns it.

    Examples:
        >>> import resight
        >>> encoder = resight.load_encoder("tokens")
        >>> encoder.name
        'tokens'
        >>> encoder.similarity("query.jpg", ["photos/eiffel-2.png", "photos/castle.png"]).shape
        (1, 2)
    """

    def __init__(self, name: str, branches: Sequence[Branch], encoder: Encoder) -> None:
        self.name = name
        self._encoder = encoder
        kinds = [_find_kind(branch) for branch in branches]
        self._chosen = {kind: kinds.index(kind) for kind in ("pooled", "tokens", "regions") if kind in kinds}
        if not self._chosen:
            raise InputError(
                f"the recipe {name!r} has no vectors that can be compared alone",
                expected="a branch of pooled vectors, tokens or regions",
                actual=", ".join(branch.descriptor.name for branch in branches),
                fix='e.g. resight.load_encoder("tokens")',
            )

    def encode(self, images: Any, *, show_progress: bool | None = None, errors: str = "raise") -> Embeddings:
        """Encode one image or many, which are read and encoded side by side.

        Args:
            images: One image in any form that `Collection.search` takes (but no stored id), or a list, an iterator or a
                4-dimensional array of them.
            show_progress: True shows a bar, False none; default: a bar in a notebook.
            errors: "raise" ends with the first image that cannot be read; "skip" leaves it out and lists it in
                `skipped`.

        Returns:
            The vectors, in the order of the images.

        Raises:
            ImageError: An image cannot be read.
        """
        if errors not in ("raise", "skip"):
            raise InputError("errors has no such value", expected='"raise" or "skip"', actual=repr(errors))
        several = images if is_batch(images) else [images]
        total = len(several) if hasattr(several, "__len__") else None
        pictures: list[Picture] = []
        rows: list[tuple[Descriptors, ...]] = []
        skipped: list[Skipped] = []
        with _open_bar(f"encoding with {self.name}", show_progress) as shown:
            for number, done in enumerate(self._run(several), start=1):
                shown(number, total or 0)
                if isinstance(done, Skipped):
                    if errors == "raise" and isinstance(done, _Unreadable):
                        raise done.error.at_image(number) if is_batch(images) else done.error
                    skipped.append(done)
                else:
                    pictures.append(done[0])
                    rows.append(done[1])
        return self._collect(pictures, rows, skipped)

    def similarity(self, a: Any, b: Any) -> FloatArray:
        """Compare the pooled vectors of images.

        Args:
            a: Embeddings of `encode`, or images.
            b: The same.

        Returns:
            [len(a), len(b)] cosines.
        """
        return compare_pooled(self._ensure(a), self._ensure(b))

    def maxsim(self, a: Any, b: Any) -> FloatArray:
        """Compare the tokens of images by late interaction: the mean over the tokens of `a` of the best dot product.

        Args:
            a: Embeddings of `encode`, or images.
            b: The same.

        Returns:
            [len(a), len(b)] scores.
        """
        return compare_tokens(self._ensure(a), self._ensure(b))

    def _run(self, images: Any) -> Iterator["Encoded | Skipped"]:
        encoder = self._encoder

        def read(image: Any) -> Picture | Skipped:
            try:
                return read_input(image, encoder.max_side)
            except ResightError as error:
                return _Unreadable(_show(image), error.problem, error)

        def encode(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
            return encode_stored(pictures, encoder)

        return encode_ahead(images, read, encode, encoder.batch, os.cpu_count() or 1)

    def _collect(
        self, pictures: Sequence[Picture], rows: Sequence[tuple[Descriptors, ...]], skipped: Sequence[Skipped]
    ) -> Embeddings:
        found = {kind: join_rows([one[branch] for one in rows]) for kind, branch in self._chosen.items()}
        pooled, tokens, regions = (found.get(kind) for kind in ("pooled", "tokens", "regions"))
        alone = regions if tokens is None else tokens
        return Embeddings(
            ids=tuple(picture.ref.id for picture in pictures),
            sizes=np.array([picture.size for picture in pictures], np.int64).reshape(-1, 2),
            pooled=pooled.vectors if pooled is not None else None if alone is None else pool(alone),
            tokens=tokens,
            regions=regions,
            encoder=self.name,
            spaces=self._encoder.spaces,
            skipped=tuple(Skipped(one.path, one.reason) for one in skipped),
        )

    def _ensure(self, given: Any) -> Embeddings:
        return given if isinstance(given, Embeddings) else self.encode(given)


@dataclass(frozen=True)
class _Unreadable(Skipped):
    error: ResightError


def _find_recipe(encoder: Any) -> Recipe | None:
    if isinstance(encoder, Recipe):
        return encoder
    if not isinstance(encoder, (str, Path)):
        return None
    name, known = str(encoder), recipes.shipped()
    if name.endswith(".toml") or name in known:
        return recipes.load(encoder)
    networks = [*plugins.own_names(BACKBONES), *named_networks.catalogue()]
    if name.lower().endswith(".onnx") or name in networks or plugins.exists(BACKBONES, name):
        return None
    raise RecipeError(
        f"there is no recipe and no encoder called {name!r}",
        expected="a recipe, a network that `resight encoders` lists, or an ONNX file",
        actual=repr(name),
        fix=did_you_mean(name, [*known, *networks], "check the spelling, or install the package that brings it"),
    )


def _describe(choice: Choice, features: Any) -> tuple[Branch, ...]:
    pooling = "head" if features.head is not None else "cls" if features.cls is not None else "mean"
    pooled = Branch(choice, Choice("pooled", {"pooling": pooling}))
    return (pooled, Branch(choice, Choice("tokens"))) if features.patches.shape[1] > 1 else (pooled,)


def _find_kind(branch: Branch) -> str:
    if branch.regions is not None:
        return "regions"
    name = branch.descriptor.name
    is_merged = name == "aggregated" and branch.descriptor.settings.get("pool", "none") != "none"
    return "pooled" if name in POOLED or is_merged else "tokens" if name in TOKEN_DESCRIPTORS else ""


def _show(image: Any) -> str:
    return str(image) if isinstance(image, (str, os.PathLike)) else f"a {type(image).__name__}"


@contextmanager
def _open_bar(label: str, is_shown: bool | None) -> Iterator[Progress]:
    """The bar of a notebook; in a terminal one of Rich, if it is asked for."""
    if not is_shown or in_notebook():
        with open_bar(is_shown is not False, label) as bar:
            yield bar
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total or None)

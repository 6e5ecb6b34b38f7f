"""A collection with an encoder that the program gives: the encoder, and a recipe if there is one, in; a recipe and the
loaded network out.

Without a recipe, an encoder of tokens is searched by late interaction of 32 merged tokens, one of single vectors by
their cosine. In a recipe it takes the place of every encoder of grids; those of key points stay.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from resight.encode import named_networks
from resight.encode.backbones import Backbone, own, precomputed
from resight.encode.encoder import build_backbone
from resight.errors import InputError, RecipeError, SpaceMismatch, did_you_mean
from resight.types import Branch, Choice, Features, ImageRef, Picture, Recipe

ON_GRIDS = ("pooled", "cells", "tokens", "aggregated", "ames_local")
TOKENS = Choice("aggregated", {"k": 32})
PROBE = 128  # pixels per side of the picture that shows what an encoder returns


def attach(
    encoder: Any, recipe: Recipe | None, made: Recipe | None, spaces: tuple[str, ...]
) -> tuple[Recipe | None, Mapping[str, Backbone]]:
    """The recipe to open a collection with, and its loaded networks; `made` and `spaces` are an existing one's."""
    choice, network = load_network(encoder)
    if made is None:
        return make_recipe(choice, network, recipe), {repr(choice): network}
    networks = check_made_with(choice, network, made, spaces)
    return recipe and make_recipe(choice, network, recipe), {**networks, repr(choice): network}


def load_network(encoder: Any) -> tuple[Choice, Backbone]:
    """An encoder by name, from an ONNX file or as an object: what a recipe calls it, and its network."""
    if isinstance(encoder, own.OwnEncoder):
        return encoder.choice, encoder
    if not isinstance(encoder, (str, Path, Choice)):
        wrapped = own.wrap_encoder(encoder)
        return wrapped.choice, wrapped
    choice = encoder if isinstance(encoder, Choice) else _name(encoder)
    return choice, build_backbone(named_networks.resolve(choice))


def make_recipe(choice: Choice, network: Backbone, recipe: Recipe | None) -> Recipe:
    """The recipe with this encoder; without a recipe one for what the encoder returns."""
    if recipe is not None:
        branches = tuple(_replace(branch, choice) for branch in recipe.branches)
        if branches == recipe.branches:
            raise RecipeError(
                f"the recipe {recipe.name!r} has no branch for this encoder",
                expected=f"a branch with one of the descriptors {', '.join(ON_GRIDS)}",
                actual=", ".join(branch.descriptor.name for branch in recipe.branches),
                fix="leave the recipe out, or choose another",
            )
        return replace(recipe, name=f"{recipe.name} with {name_encoder(choice)}", branches=branches)
    descriptor, index = (Choice("pooled", {"pooling": "head"}), Choice("exact"))
    if choice.name == precomputed.NAME:
        many = bool(choice.settings.get("tokens"))
        descriptor = Choice("tokens", {"normalise": False}) if many else Choice("pooled")
        index = Choice("maxsim") if many else index
    else:
        features = probe(network)
        if features.patches.shape[1] > 1:
            descriptor, index = TOKENS, Choice("maxsim")
        elif features.head is None:
            descriptor = Choice("pooled")
    return Recipe(name_encoder(choice), (Branch(choice, descriptor),), index=index)


def probe(network: Backbone) -> Features:
    """What an encoder returns for a picture of noise; InputError for one of key points."""
    pixels = np.random.default_rng(0).integers(0, 256, (PROBE, PROBE, 3), np.uint8)
    (features,) = network.extract([Picture(ImageRef("noise", Path("noise")), pixels, (PROBE, PROBE))])
    if features.grid is None:
        raise InputError(
            "this encoder finds key points, which need a recipe",
            expected="an encoder of vectors or tokens",
            actual=network.fingerprint,
            fix='e.g. the recipe "sift"',
        )
    return features


def check_made_with(
    choice: Choice, network: Backbone, recipe: Recipe, spaces: tuple[str, ...]
) -> Mapping[str, Backbone]:
    """The network under each name that the recipe of an existing collection has for it; refuses another encoder."""
    named = [branch.encoder for branch in recipe.branches]
    held = [one for one, space in zip(named, spaces, strict=True) if space.startswith(network.fingerprint)]
    if held:
        return {repr(one): network for one in held}
    for other in named:
        if other.name == choice.name == "own":
            own.check_given(other, choice)
    raise SpaceMismatch(
        "the collection was made with another encoder",
        expected=" | ".join(spaces),
        actual=network.fingerprint,
        fix="leave the encoder out, or index into a new collection",
    )


def name_encoder(choice: Choice) -> str:
    return str(choice.settings.get("encoder") or choice.settings.get("model") or choice.name)


def _name(encoder: str | Path) -> Choice:
    text = str(encoder)
    if text.lower().endswith(".onnx"):
        return Choice("onnx", {"model": text})
    if Path(text).suffix and not isinstance(encoder, str):
        raise InputError(
            f"{text} is no encoder",
            expected="an ONNX file, or the name of an encoder",
            actual=text,
            fix=did_you_mean(text, named_networks.catalogue(), "`resight encoders` lists them"),
        )
    return Choice(text)


def _replace(branch: Branch, choice: Choice) -> Branch:
    return replace(branch, encoder=choice) if branch.descriptor.name in ON_GRIDS else branch

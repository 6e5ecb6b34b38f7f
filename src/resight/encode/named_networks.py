"""The catalogue: networks by name, so that one word of a recipe selects a network, its weights and its size.

In: models.toml, one table per network. Out: Models, and `resolve`, which replaces a name by its plug-in and settings:
`encoder = "dino_vits16"`, or `{ name = "dino_vits16", size = 448 }` to change a setting.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from resight import plugins
from resight.errors import MissingWeights, RecipeError, did_you_mean
from resight.recipe.tables import read_branch, read_choice, write_branch
from resight.types import Branch, Choice

BACKBONES = "resight.encode.backbones"


@dataclass(frozen=True)
class Model:
    name: str
    title: str  # as papers write it
    family: str
    encoder: Choice
    training: str  # data and method
    dimensions: int
    tokens: int  # patches or cells at the default size
    parameters: float  # millions
    licence: str  # of the weights
    gated: bool = False  # the makers require consent to their conditions
    own_weights: bool = False  # not to be downloaded: `weights` must name a file
    source: str = ""  # of the weights; empty: the hub


@dataclass(frozen=True)
class Cost:
    """Of one part of a network."""

    part: str
    parameters: int
    operations: int  # multiplications with their additions, for one image of the usual size


@cache
def catalogue() -> Mapping[str, Model]:
    text = (resources.files("resight.encode") / "models.toml").read_text(encoding="utf-8")
    return {
        name: Model(name=name, **{**table, "encoder": read_choice(table["encoder"], "encoder")})
        for name, table in tomllib.loads(text).items()
    }


def find(name: str) -> str | Model:
    """A plug-in's own name, or the network of that name."""
    if name in plugins.own_names(BACKBONES):
        return name
    if name in catalogue():
        return catalogue()[name]
    if plugins.exists(BACKBONES, name):
        return name
    raise _refuse(name)


def resolve(choice: Choice) -> Choice:
    """The plug-in and settings that a name of the catalogue stands for, with the given settings on top."""
    model = find(choice.name)
    if isinstance(model, str):
        return choice
    if model.own_weights and "weights" not in choice.settings and not choice.settings.get("untrained"):
        raise MissingWeights(
            f"{model.title} needs a weights file",
            expected="the setting weights, the path of a .safetensors or .pth file",
            actual="none",
            fix=f'encoder = {{ name = "{model.name}", weights = "FILE" }}'
            + (f" ({model.source})" if model.source else ""),
        )
    return replace(model.encoder, settings={**model.encoder.settings, **choice.settings})


def resolve_branch(branch: Branch) -> Branch:
    """The branch with all names of the catalogue resolved, also in the parts of a fused encoder."""
    choice = resolve(branch.encoder)
    parts: Any = choice.settings.get("parts")
    if parts is not None:
        own = [write_branch(resolve_branch(read_branch(part))) for part in parts]
        choice = replace(choice, settings={**choice.settings, "parts": own})
    return replace(branch, encoder=choice)


def _refuse(name: str) -> RecipeError:
    known = [*plugins.names(BACKBONES), *catalogue()]
    return RecipeError(
        f"there is no encoder called {name!r}",
        expected=f"one of {', '.join(plugins.names(BACKBONES))}, or a network that `resight encoders` lists",
        actual=repr(name),
        fix=did_you_mean(name, known, "check the spelling in the recipe, or install the package that brings it"),
    )

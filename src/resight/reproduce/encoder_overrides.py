"""Overrides of a network by its name, in every recipe of a table that has it.

    encoders.marsdino_vits16.weights=FILE      of every encoder called marsdino_vits16, also as a part of `fused`

A table compares several networks, so that `branches.0.encoder.weights=FILE` would give the file to all of them. Any
other override is applied as recipe/overrides.py has it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from resight.encode import named_networks
from resight.errors import RecipeError
from resight.recipe.overrides import apply

PREFIX = "encoders."


def apply_override(table: dict[str, Any], override: str) -> None:
    """Apply one override to the tables of a recipe, in place."""
    key, equals, value = override.strip().partition("=")
    if not key.startswith(PREFIX):
        apply(table, override)
        return
    name, dot, setting = key.removeprefix(PREFIX).partition(".")
    if not (equals and dot and name and setting):
        raise RecipeError(
            f"cannot use {override!r}",
            expected="encoders.NAME.SETTING=VALUE",
            actual=override,
            fix="e.g. encoders.marsdino_vits16.weights=FILE",
        )
    named_networks.find(name)  # refuses a name that no encoder has
    for path in list(_find_encoders(table.get("branches"), "branches", name)):
        apply(table, f"{path}.{setting}={value}")


def _find_encoders(owners: Any, path: str, name: str) -> Iterator[str]:
    """Dotted keys of the encoders called `name`: of branches, and of the parts of a fused encoder."""
    for number, owner in enumerate(owners if isinstance(owners, list) else ()):
        encoder = owner.get("encoder") if isinstance(owner, Mapping) else None
        at = f"{path}.{number}.encoder"
        if (encoder["name"] if isinstance(encoder, Mapping) and "name" in encoder else encoder) == name:
            yield at
        if isinstance(encoder, Mapping):
            yield from _find_encoders(encoder.get("parts"), f"{at}.parts", name)

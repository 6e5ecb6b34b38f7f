"""Which branch of a recipe a head is for (`find_branch`), and the recipe that applies it (`add_head`)."""

from dataclasses import replace
from pathlib import Path

from resight.errors import RecipeError
from resight.types import Choice, Recipe

VECTORS = ("tokens", "aggregated", "pooled", "vlad")  # descriptors whose rows are vectors of real numbers


def find_branch(recipe: Recipe) -> int:
    """The first branch that has a say and whose rows are vectors."""
    for number, branch in enumerate(recipe.branches):
        if branch.weight > 0 and branch.descriptor.name in VECTORS:
            return number
    raise RecipeError(
        f"the recipe {recipe.name!r} has no vectors that a head could be put over",
        expected="a branch with the descriptor tokens, aggregated, pooled or vlad",
        actual=", ".join(branch.descriptor.name for branch in recipe.branches),
        fix="take another recipe, such as tokens",
    )


def add_head(recipe: Recipe, branch: int, file: Path) -> Recipe:
    """The recipe with the head behind all other transforms of the branch."""
    branches = list(recipe.branches)
    chain = (*branches[branch].transforms, Choice("head", {"file": str(file.absolute())}))
    branches[branch] = replace(branches[branch], transforms=chain)
    return replace(recipe, name=f"{recipe.name} with a head", branches=tuple(branches))

"""An index as a recipe names it → the same index where an engine keeps it.

`--engine ray` spreads every index of a search over the nodes of a Ray cluster: those of the branches, and those that
rerankers have of their own. The recipe stays as it is, and so do the answers. An index that cannot be kept in shards
without changing them (learnt codes in blocks, a cascade, weights that count all images) stays where the search runs.
"""

from collections.abc import Sequence

from resight import index as indexes
from resight.errors import InputError
from resight.ray_cluster import connect, parse_engine
from resight.types import Choice, Recipe

SHARDS = 8  # of an index that does not say; nodes beyond that many times its replication have nothing to do
LOCAL = "local"


def start_engine(engine: str) -> None:
    """Connected, or an error; nothing to do where searches run in this process."""
    kind = parse_engine(engine).kind
    if kind == "ray":
        connect(engine)
    elif kind != "local":
        raise InputError(
            f"a collection is not opened in {engine}",
            expected="local, ray, ray://HOST:PORT or ray://auto",
            actual=engine,
            fix="export it with `resight export`, and search it there with `resight search --engine`",
        )


def spread(choice: Choice, engine: str) -> Choice:
    """The index to open in place of `choice`."""
    if parse_engine(engine).kind != "ray" or choice.name == "ray_shards" or not _is_spreadable(choice):
        return choice
    # The address is not part of it: the same shards serve whichever cluster this process is connected to.
    return Choice("ray_shards", {"inner": choice, "shards": SHARDS})


def list_local(recipe: Recipe, engine: str) -> Sequence[str]:
    """The indexes of a recipe's branches that stay in this process although an engine was named."""
    choices = [branch.index or recipe.index for branch in recipe.branches if branch.weight > 0]
    return [choice.name for choice in choices if engine != LOCAL and spread(choice, engine).name != "ray_shards"]


def _is_spreadable(choice: Choice) -> bool:
    from resight.index.ray_shards import is_spreadable  # it needs Ray

    return is_spreadable(indexes.build(choice.name, **choice.settings))

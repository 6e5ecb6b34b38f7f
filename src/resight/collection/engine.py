"""Where searches run: in this process, or on the nodes of a Ray cluster.

In: an index as a recipe names it. Out: the same index as the engine keeps it. `--engine ray` spreads every index of a
search over the cluster: those of the branches, and those of rerankers. The recipe stays the same, and so do the
answers. An index whose answers shards would change (learnt codes in blocks, a cascade, weights that count all images)
stays in this process.
"""

from collections.abc import Sequence

from resight import index as indexes
from resight.errors import InputError
from resight.ray_cluster import connect, parse_engine
from resight.types import Choice, Recipe

SHARDS = 8  # by default; nodes beyond SHARDS times the replication stay idle


def start_engine(engine: str) -> None:
    """Connect to the engine, or raise an error; the engine of this process needs no start."""
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
    """The index to open instead of `choice`."""
    if parse_engine(engine).kind != "ray" or choice.name == "ray_shards" or not _is_spreadable(choice):
        return choice
    # Without the address: the same shards serve every cluster that this process connects to.
    return Choice("ray_shards", {"inner": choice, "shards": SHARDS})


def list_local(recipe: Recipe, engine: str) -> Sequence[str]:
    """The indexes of a recipe's branches that stay in this process although the engine is another."""
    on_ray = parse_engine(engine).kind == "ray"
    choices = [branch.index or recipe.index for branch in recipe.branches if branch.weight > 0]
    return [choice.name for choice in choices if on_ray and spread(choice, engine).name != "ray_shards"]


def _is_spreadable(choice: Choice) -> bool:
    from resight.index.ray_shards import is_spreadable  # needs Ray

    return is_spreadable(indexes.build(choice.name, **choice.settings))

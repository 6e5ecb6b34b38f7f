"""An index as a recipe names it → the same index where an engine keeps it.

`--engine ray` spreads every index of a search over the nodes of a Ray cluster: those of the branches, and those that
rerankers have of their own. The recipe stays as it is, and so do the answers. An index that cannot be kept in shards
without changing them (learnt codes in blocks, a cascade, weights that count all images) stays where the search runs.

A recipe → the stages of its search over one state of a collection.
"""

from collections.abc import Sequence
from pathlib import Path

from resight import index as indexes
from resight.errors import InputError, RecipeError
from resight.ray_cluster import connect, parse_engine
from resight.search import calibration as calibrations
from resight.search import fusions, rerankers
from resight.search.gallery import Gallery
from resight.search.pipeline import Pipeline
from resight.search.shortlist import Shortlister, name_standout
from resight.types import Branch, Choice, Recipe

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


def build_pipeline(recipe: Recipe, spaces: Sequence[str], gallery: Gallery, calibration_file: Path) -> Pipeline:
    """`spaces` are those of the branches; the file holds the collection's own calibration, where it has one."""
    shortlisters = tuple(
        Shortlister(_signal(branch, recipe.branches), number, branch.weight, gallery.searcher(number, None))
        for number, branch in enumerate(recipe.branches)
        if branch.weight > 0
    )
    if not shortlisters:
        raise RecipeError(
            "no branch takes part in the shortlist", expected="a branch with weight above 0", fix="set a weight"
        )
    chain = tuple(rerankers.build(choice.name, **choice.settings) for choice in recipe.rerankers)
    scores = {part.name: spaces[part.branch] for part in shortlisters}
    signals = [name_standout(name, len(scores)) for name in scores] + [name for part in chain for name in part.signals]
    calibration = calibrations.choose(signals, calibration_file, scores)
    fusion = recipe.fusion or Choice("score")
    built = fusions.build(fusion.name, **fusion.settings)
    return Pipeline(shortlisters, chain, calibration, gallery, built)


def _signal(branch: Branch, branches: Sequence[Branch]) -> str:
    """The name of a branch's score: its descriptor, with the encoder before it where that alone is not unique."""
    same = [other for other in branches if other.weight > 0 and other.descriptor.name == branch.descriptor.name]
    return branch.descriptor.name if len(same) == 1 else f"{branch.encoder.name}_{branch.descriptor.name}"

"""A recipe and one state of a collection in, the stages of its search (search/pipeline.py) out."""

from collections.abc import Sequence
from pathlib import Path

from resight.errors import RecipeError
from resight.search import calibration as calibrations
from resight.search import fusions, rerankers
from resight.search.gallery import Gallery
from resight.search.pipeline import Pipeline
from resight.search.shortlist import Shortlister, name_standout
from resight.types import Branch, Choice, Recipe


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
    return Pipeline(shortlisters, fusions.build(fusion.name, **fusion.settings), chain, calibration, gallery)


def _signal(branch: Branch, branches: Sequence[Branch]) -> str:
    """The name of a branch's score: its descriptor, with the encoder before it where that alone is not unique."""
    same = [other for other in branches if other.weight > 0 and other.descriptor.name == branch.descriptor.name]
    return branch.descriptor.name if len(same) == 1 else f"{branch.encoder.name}_{branch.descriptor.name}"

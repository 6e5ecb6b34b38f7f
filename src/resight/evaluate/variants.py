"""The recipes that a recipe's alternatives make, measured on the same queries: one row a recipe.

Recipes with the same encoders share a collection, so that each image goes through an encoder once: the collection has
the branches of all of them, and each recipe gives weight to its own alone. Rerankers choose their branch themselves;
recipes that have any share a collection only with those of the very same branches.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from resight import recipe as recipes
from resight.collection import Collection
from resight.collection.adding import Progress
from resight.evaluate.bench import Bench, Way, measure, prepare
from resight.evaluate.comparison import Comparison, Fact, Row, choose_metric
from resight.evaluate.results import RunResult
from resight.types import Branch, Recipe


def compare(
    variants: Sequence[Recipe],
    root: Path,
    *,
    metric: str = "",
    keep: Path | None = None,
    by: str = "set",
    progress: Progress | None = None,
) -> Comparison:
    """Evaluate every variant; differences are to the first, in `metric` or the first metric."""
    judged = choose_metric(variants[0], metric)
    rows: dict[int, Row] = {}
    groups = group(variants)
    for number, members in enumerate(groups):
        branches = join([variants[member] for member in members])
        place = keep if keep is None or len(groups) == 1 else keep / str(number)
        with prepare(replace(variants[members[0]], branches=branches), root, keep=place, progress=progress) as bench:
            ways = [_find_way(bench, variants[member], branches) for member in members]
            for member, way, result in zip(members, ways, measure(bench, ways, by, progress), strict=True):
                size = sum(count_bytes(bench.collection, position) for position in way.branches or ())
                rows[member] = _row(result, size / max(len(bench.collection), 1))
    first = rows[0].result
    return Comparison(
        title=f"{first.recipe.name.removesuffix(recipes.BEFORE_LABEL + rows[0].label)}: {first.dataset}, "
        f"{first.database:,} images",
        heading="variant",
        rows=tuple(rows[number] for number in range(len(variants))),
        reference=0,
        metric=judged,
        cells="interval",
        notes=("bytes an image: vectors, visual words and key points, as the descriptors give them",),
    )


def group(variants: Sequence[Recipe]) -> list[list[int]]:
    """Numbers of the variants that may share a collection, in the order of the first of each group."""
    groups: dict[object, list[int]] = {}
    for number, variant in enumerate(variants):
        encodings = [_encoding(branch) for branch in variant.branches]
        encoders = [branch.encoder for branch in variant.branches]
        distinct = [encoder for position, encoder in enumerate(encoders) if encoder not in encoders[:position]]
        groups.setdefault(repr(encodings if variant.rerankers else distinct), []).append(number)
    return list(groups.values())


def join(variants: Sequence[Recipe]) -> tuple[Branch, ...]:
    """The distinct encodings of all branches, none with a weight; a branch that a recipe has twice stays twice."""
    joined: list[Branch] = []
    for variant in variants:
        free = list(joined)
        for branch in map(_encoding, variant.branches):
            if branch in free:
                free.remove(branch)
            else:
                joined.append(branch)
    return tuple(joined)


def weigh(variant: Recipe, branches: Sequence[Branch]) -> tuple[Recipe, frozenset[int]]:
    """The variant over the joined branches, the others without a weight; and which of them are its own."""
    places = list(branches)
    own: set[int] = set()
    for branch in variant.branches:
        position = next(
            number for number, part in enumerate(branches) if part == _encoding(branch) and number not in own
        )
        places[position] = branch
        own.add(position)
    return replace(variant, branches=tuple(places)), frozenset(own)


def count_bytes(collection: Collection, branch: int) -> int:
    """What the stored rows of a branch take, without the boxes that only show where a token lies."""
    return sum(
        array.nbytes
        for chunk in collection.descriptors(branch)
        for array in (chunk.vectors, chunk.words, chunk.points)
        if array is not None
    )


def _find_way(bench: Bench, variant: Recipe, branches: Sequence[Branch]) -> Way:
    weighed, own = weigh(variant, branches)
    return Way(variant, bench.pipeline(weighed), own)


def _encoding(branch: Branch) -> Branch:
    """The branch without what does not change its rows."""
    return replace(branch, weight=0.0, index=None)


def _row(result: RunResult, size: float) -> Row:
    return Row(recipes.label(result.recipe), {"bytes an image": Fact(size, f"{size:,.0f}")}, result)

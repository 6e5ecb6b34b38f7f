"""Many recipes (the rows and alternatives of one, or of several), measured on the same queries: one row a recipe.

Recipes with the same encoders share a collection, so that each image goes through an encoder once: the collection has
the branches of all of them, and each recipe gives weight to its own alone. Rerankers choose their branch themselves;
recipes that have any share a collection only with those of the very same branches.

Where weights or a package are missing, the rows that need them are left without figures, and the others run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from resight import recipe as recipes
from resight.collection import Collection
from resight.collection.add import Progress
from resight.encode.feature_cache import FeatureCache
from resight.errors import MissingExtra
from resight.evaluate.comparison import Absent, Comparison, Fact, Row, choose_metric
from resight.evaluate.evaluate import Bench, Extras, Way, load_dataset, measure, prepare
from resight.evaluate.result_cache import ResultCache, make_key, mark_dataset
from resight.evaluate.results import RunResult, keep_spots
from resight.types import Branch, Choice, Dataset, Recipe


def compare(
    variants: Sequence[Recipe],
    root: Path,
    *,
    name: str = "",
    metric: str = "",
    keep: Path | None = None,
    cache: FeatureCache | None = None,
    by: str = "set",
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
    extras: Extras | None = None,
) -> Comparison:
    """Evaluate every variant; differences are to the first that could run, in `metric` or the first metric.

    `name` says what is compared (else the name that they share); `tell` is told which rows are being evaluated.
    Of `extras`, the map is drawn for the first row alone.
    """
    judged = choose_metric(variants[0], metric)
    labels = recipes.label_all(variants)
    wanted = extras or Extras()
    dataset = load_dataset(variants[0], root)
    memory = _Memory(variants, dataset, cache, by, wanted)
    rows = {number: _row(labels[number], *found) for number in range(len(variants)) if (found := memory.recall(number))}
    recalled = len(rows)
    missing: dict[int, MissingExtra] = {}
    left = [number for number in range(len(variants)) if number not in rows]
    groups = [[left[member] for member in members] for members in group([variants[number] for number in left])]
    for number, members in enumerate(groups):
        if tell and len(groups) > 1:
            tell(f"evaluating {_say_rows([labels[member] for member in members])}, {number + 1} of {len(groups)}")
        branches = join([variants[member] for member in members])
        place = keep if keep is None or len(groups) == 1 else keep / str(number)
        try:
            joined = replace(variants[members[0]], branches=branches)
            with prepare(joined, dataset, keep=place, cache=cache, progress=progress) as bench:
                ways = [_find_way(bench, variants[member], branches) for member in members]
                results = measure(bench, ways, by, progress, replace(wanted, map=wanted.map and 0 in members))
                for member, way, result in zip(members, ways, results, strict=True):
                    total = sum(count_bytes(bench.collection, position) for position in way.branches or ())
                    size = total / max(len(bench.collection), 1)
                    rows[member] = _row(labels[member], result, size)
                    memory.keep(member, result, size)
        except MissingExtra as error:
            missing |= dict.fromkeys(members, error)
    if not rows:
        raise _refuse(missing[0], len(variants)) from missing[0]
    measured = [replace(rows[member], result=keep_spots(rows[member].result, dataset)) for member in sorted(rows)]
    first = measured[0].result
    return Comparison(
        title=f"{name or _shared_name(first.recipe)}: {first.dataset}, {first.database:,} images",
        heading="variant",
        rows=tuple(measured),
        reference=0,
        metric=judged,
        cells="interval",
        notes=(
            *([f"{recalled} of the rows were measured before, and came from the cache"] if recalled else []),
            "bytes an image: vectors, visual words and key points, as the descriptors give them",
            "ms to encode: median of a query, from the file to all descriptors of the rows that share its encoders",
        ),
        absent=tuple(_find_absent(labels, rows, missing)),
        ranked=True,
    )


class _Memory:
    """What was measured before, where there is a cache and no ranking has to be recorded."""

    def __init__(
        self, variants: Sequence[Recipe], dataset: Dataset, cache: FeatureCache | None, by: str, extras: Extras
    ) -> None:
        self._variants = variants
        self._cache = ResultCache(cache.folder / "results") if cache and not extras.record else None
        self._keys: list[str] = []
        if self._cache:
            mark = mark_dataset(dataset)
            parts = [sorted(extras.split.items())] if extras.split is not None else []
            self._keys = [
                make_key(recipe, mark, by, extras.strata, extras.bins, extras.map and number == 0, *parts)
                for number, recipe in enumerate(variants)
            ]

    def recall(self, number: int) -> tuple[RunResult, float] | None:
        return self._cache.read(self._keys[number], self._variants[number]) if self._cache else None

    def keep(self, number: int, result: RunResult, bytes_an_image: float) -> None:
        if self._cache:
            self._cache.write(self._keys[number], result, bytes_an_image)


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
    positions: list[int] = []
    for branch in map(_encoding, variant.branches):
        positions.append(
            next(number for number, part in enumerate(branches) if part == branch and number not in positions)
        )
    places = list(branches)
    for position, branch in zip(positions, variant.branches, strict=True):
        places[position] = replace(branch, index=branch.index and _renumber(branch.index, positions))
    return replace(variant, branches=tuple(places), index=_renumber(variant.index, positions)), frozenset(positions)


def _renumber(index: Choice, positions: Sequence[int]) -> Choice:
    """An index that learns from another branch, which has another number among the joined ones."""
    teacher = index.settings.get("train_branch")
    if not isinstance(teacher, int) or not 0 <= teacher < len(positions):  # whoever builds it complains
        return index
    return replace(index, settings={**index.settings, "train_branch": positions[teacher]})


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


def _row(label: str, result: RunResult, size: float) -> Row:
    encoding = 1000 * float(np.median([query.encode_seconds for query in result.queries]))
    facts = {"bytes an image": Fact(size, f"{size:,.0f}"), "ms to encode": Fact(encoding, f"{encoding:.0f}")}
    return Row(label, facts, result)


def _find_absent(labels: Sequence[str], rows: Mapping[int, Row], missing: Mapping[int, MissingExtra]) -> list[Absent]:
    return [
        Absent(
            labels[member],
            sum(other < member for other in rows),
            "; ".join(text for text in (missing[member].problem, missing[member].fix) if text),
        )
        for member in sorted(missing)
    ]


def _refuse(error: MissingExtra, count: int) -> MissingExtra:
    """The error where nothing is left to compare; a single row's own says it all."""
    if count == 1:
        return error
    return type(error)(
        f"none of {count} rows could run; the first: {error.problem}",
        expected=error.expected,
        actual=error.actual,
        fix=error.fix,
    )


def _shared_name(recipe: Recipe) -> str:
    return recipe.name.removesuffix(recipes.LABEL_SEPARATOR + recipes.label(recipe))


def _say_rows(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more"

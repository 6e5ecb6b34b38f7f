"""Measure many recipes (the rows and alternatives of one, or of several) on the same queries.

In: recipes and their data set. Out: an Evaluation with a row per recipe. Recipes with the same encoders share a
collection, so that each image goes through an encoder once: the collection has the branches of all of them, and each
recipe gives weight only to its own. Rerankers choose their branch themselves, so recipes with rerankers share a
collection only if their branches are identical.

If weights or a package are missing, the rows that need them have no figures, and the others run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from resight import recipe as recipes
from resight.collection import Collection
from resight.collection.add import Progress
from resight.encode.feature_cache import FeatureCache
from resight.errors import MissingExtra
from resight.evaluate.evaluation import BYTES, HEADINGS, AbsentRow, Evaluation, Fact, Row, choose_metric
from resight.evaluate.measure import EncodedDataset, Extras, SearchVariant, measure, prepare
from resight.evaluate.result_cache import ResultCache, fingerprint_dataset, make_key
from resight.evaluate.results import RunResult, add_positions
from resight.evaluate.summary import summarise
from resight.types import Branch, Choice, Dataset, Recipe


def measure_variants(
    variants: Sequence[Recipe],
    dataset: Dataset,
    *,
    name: str = "",
    metric: str = "",
    keep: Path | None = None,
    cache: FeatureCache | None = None,
    by: str = "set",
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
    extras: Extras | None = None,
) -> Evaluation:
    """Evaluate every variant; differences are to the first that could run, in `metric` or the first metric.

    `name` is the title (default: the name that the variants share); `report` receives which rows are being evaluated.
    Of `extras`, the map is drawn for the first row alone.
    """
    difference_metric = choose_metric(variants[0], metric)
    labels = recipes.label_all(variants)
    wanted = extras or Extras()
    memory = _Memory(variants, dataset, cache, by, wanted)
    found = {number: known for number in range(len(variants)) if (known := memory.recall(number))}
    recalled = len(found)
    missing: dict[int, MissingExtra] = {}
    left = [number for number in range(len(variants)) if number not in found]
    groups = [[left[member] for member in members] for members in group([variants[number] for number in left])]
    for number, members in enumerate(groups):
        if report and len(groups) > 1:
            report(f"evaluating {_name_rows([labels[member] for member in members])}, {number + 1} of {len(groups)}")
        branches = join([variants[member] for member in members])
        folder = keep if keep is None or len(groups) == 1 else keep / str(number)
        try:
            joined = replace(variants[members[0]], branches=branches)
            with prepare(joined, dataset, keep=folder, cache=cache, progress=progress) as encoded:
                searched = [_make_variant(encoded, variants[member], branches) for member in members]
                results = measure(encoded, searched, by, progress, replace(wanted, map=wanted.map and 0 in members))
                for member, variant, result in zip(members, searched, results, strict=True):
                    total = sum(count_bytes(encoded.collection, position) for position in variant.branches or ())
                    found[member] = result, total / max(len(encoded.collection), 1)
                    memory.store(member, *found[member])
        except MissingExtra as error:
            missing |= dict.fromkeys(members, error)
    if not found:
        raise _refuse(missing[0], len(variants)) from missing[0]
    rows = tuple(_make_row(labels[number], dataset, *found[number]) for number in sorted(found))
    first = found[min(found)][0]
    return Evaluation(
        title=f"{name or _shared_name(first.recipe)}: {first.dataset}, {first.database:,} images",
        heading="variant",
        rows=rows,
        metric=difference_metric,
        notes=(
            *([f"{recalled} of the rows were measured before and came from the cache"] if recalled else []),
            f"{HEADINGS[BYTES]}: vectors, visual words and key points, as the descriptors give them",
            "ms to encode: median of a query, from the file to all descriptors of the rows that share its encoders",
        ),
        absent=tuple(_list_absent(labels, sorted(found), missing)),
        ranked=True,
    )


class _Memory:
    """Results measured before, if there is a cache and rankings need not be recorded."""

    def __init__(
        self, variants: Sequence[Recipe], dataset: Dataset, cache: FeatureCache | None, by: str, extras: Extras
    ) -> None:
        self._variants = variants
        self._cache = ResultCache(cache.folder / "results") if cache and not extras.record else None
        self._keys: list[str] = []
        if self._cache:
            mark = fingerprint_dataset(dataset)
            parts = [sorted(extras.split.items())] if extras.split is not None else []
            self._keys = [
                make_key(recipe, mark, by, extras.strata, extras.bins, extras.map and number == 0, *parts)
                for number, recipe in enumerate(variants)
            ]

    def recall(self, number: int) -> tuple[RunResult, float] | None:
        return self._cache.read(self._keys[number], self._variants[number]) if self._cache else None

    def store(self, number: int, result: RunResult, bytes_an_image: float) -> None:
        if self._cache:
            self._cache.write(self._keys[number], result, bytes_an_image)


def group(variants: Sequence[Recipe]) -> list[list[int]]:
    """Numbers of the variants that may share a collection, groups in the order of their first member."""
    groups: dict[object, list[int]] = {}
    for number, variant in enumerate(variants):
        encodings = [_encoding(branch) for branch in variant.branches]
        encoders = [branch.encoder for branch in variant.branches]
        distinct = [encoder for position, encoder in enumerate(encoders) if encoder not in encoders[:position]]
        groups.setdefault(repr(encodings if variant.rerankers else distinct), []).append(number)
    return list(groups.values())


def join(variants: Sequence[Recipe]) -> tuple[Branch, ...]:
    """The distinct encodings of all branches, without weights; a branch that a recipe has twice stays twice."""
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
    """The variant over the joined branches, weighting only its own; and the positions of these."""
    positions: list[int] = []
    for branch in map(_encoding, variant.branches):
        positions.append(
            next(number for number, part in enumerate(branches) if part == branch and number not in positions)
        )
    weighed = list(branches)
    for position, branch in zip(positions, variant.branches, strict=True):
        weighed[position] = replace(branch, index=branch.index and _renumber(branch.index, positions))
    return replace(variant, branches=tuple(weighed), index=_renumber(variant.index, positions)), frozenset(positions)


def _renumber(index: Choice, positions: Sequence[int]) -> Choice:
    """The branch that an index learns from has another number among the joined branches."""
    teacher = index.settings.get("train_branch")
    if not isinstance(teacher, int) or not 0 <= teacher < len(positions):  # building the index refuses it
        return index
    return replace(index, settings={**index.settings, "train_branch": positions[teacher]})


def count_bytes(collection: Collection, branch: int) -> int:
    """Size of the stored rows of a branch, without the boxes of tokens."""
    return sum(
        array.nbytes
        for chunk in collection.descriptors(branch)
        for array in (chunk.vectors, chunk.words, chunk.points)
        if array is not None
    )


def _make_variant(encoded: EncodedDataset, variant: Recipe, branches: Sequence[Branch]) -> SearchVariant:
    weighed, own = weigh(variant, branches)
    return SearchVariant(variant, encoded.pipeline(weighed), own)


def _encoding(branch: Branch) -> Branch:
    """The branch without the settings that do not change its rows."""
    return replace(branch, weight=0.0, index=None)


def _make_row(label: str, dataset: Dataset, result: RunResult, size: float) -> Row:
    summary = summarise(add_positions(result, dataset))
    encoding = 1000 * summary.encode_seconds
    facts = {BYTES: Fact(size, f"{size:,.0f}"), "ms to encode": Fact(encoding, f"{encoding:.0f}")}
    return Row(label, summary, facts)


def _list_absent(
    labels: Sequence[str], measured: Sequence[int], missing: Mapping[int, MissingExtra]
) -> list[AbsentRow]:
    return [
        AbsentRow(
            labels[number],
            sum(other < number for other in measured),
            "; ".join(text for text in (missing[number].problem, missing[number].fix) if text),
        )
        for number in sorted(missing)
    ]


def _refuse(error: MissingExtra, count: int) -> MissingExtra:
    """The error if no row could run."""
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


def _name_rows(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more"

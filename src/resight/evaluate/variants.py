"""Measure many recipes (the rows and alternatives of one, or of several) on the same queries.

In: recipes and their data set. Out: an Evaluation with a row per recipe. Recipes with the same encoders share a
collection, so that each image goes through an encoder once: the collection has the branches of all of them, and each
recipe gives weight only to its own. Rerankers choose their branch themselves, so recipes with rerankers share a
collection only if their branches are identical.

A row that fails (weights, a package or a file are missing, a setting does not fit) has no figures, and the others run.
The bytes of a row are those that a search reads: the codes of an index that keeps nothing else, or the stored rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight import recipe as recipes
from resight.collection.add import Progress
from resight.encode.feature_cache import FeatureCache
from resight.errors import ResightError
from resight.evaluate.evaluation import BYTES, HEADINGS, AbsentRow, Evaluation, Fact, Row, choose_metric
from resight.evaluate.measure import EncodedDataset, Extras, SearchVariant, measure, prepare
from resight.evaluate.result_cache import ResultCache, fingerprint_dataset, make_key
from resight.evaluate.results import RunResult, add_positions
from resight.evaluate.sizes import Sizes, list_facts, measure_sizes
from resight.evaluate.summary import summarise
from resight.search.rescoring import remember_scores
from resight.types import Branch, Choice, Dataset, Recipe

Outcome = tuple[RunResult, Sizes] | ResightError


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
    mark: str = "",
) -> Evaluation:
    """Evaluate every variant; differences are to the first that could run, in `metric` or the first metric.

    `name` is the title (default: the name that the variants share); `report` receives which rows are being evaluated.
    Of `extras`, the map is drawn for the first row alone. `mark` replaces the fingerprint of the data set in the cache
    of results, for files that are made again for every run.
    """
    difference_metric = choose_metric(variants[0], metric)
    labels = recipes.label_all(variants)
    wanted = extras or Extras()
    memory = _Memory(variants, dataset, cache, by, wanted, mark)
    found = {number: known for number in range(len(variants)) if (known := memory.recall(number))}
    recalled = len(found)
    failed: dict[int, ResightError] = {}
    left = [number for number in range(len(variants)) if number not in found]
    groups = [[left[member] for member in members] for members in group([variants[number] for number in left])]
    for number, members in enumerate(groups):
        if report and len(groups) > 1:
            report(f"evaluating {_name_rows([labels[member] for member in members])}, {number + 1} of {len(groups)}")
        folder = keep if keep is None or len(groups) == 1 else keep / str(number)
        how = _How(variants, dataset, cache, by, progress, wanted)
        for member, outcome in _measure_group(how, members, folder).items():
            if isinstance(outcome, ResightError):
                failed[member] = outcome
            else:
                found[member] = outcome
                memory.store(member, *outcome)
    if not found:
        raise _refuse(failed[0], len(variants)) from failed[0]
    rows = tuple(_make_row(labels[number], dataset, *found[number]) for number in sorted(found))
    first = found[min(found)][0]
    return Evaluation(
        title=f"{name or _shared_name(first.recipe)}: {first.dataset}, {first.database:,} images",
        heading="variant",
        rows=rows,
        metric=difference_metric,
        notes=(
            *([f"{recalled} of the rows were measured before and came from the cache"] if recalled else []),
            f"{HEADINGS[BYTES]}: what a search reads: the codes and words of an index that keeps only these, else "
            "vectors, visual words and key points as they are stored",
            "ms to encode: median of a query, from the file to all descriptors of the rows that share its encoders",
        ),
        absent=tuple(_list_absent(labels, sorted(found), failed)),
        ranked=True,
    )


@dataclass(frozen=True)
class _How:
    """What all groups of variants share."""

    variants: Sequence[Recipe]
    dataset: Dataset
    cache: FeatureCache | None
    by: str
    progress: Progress | None
    extras: Extras


def _measure_group(how: _How, members: Sequence[int], folder: Path | None) -> dict[int, Outcome]:
    """The variants of one collection. If it cannot be made, each set of branches gets a collection of its own."""
    branches = join([how.variants[member] for member in members])
    joined = replace(how.variants[members[0]], branches=branches)
    try:
        with prepare(joined, how.dataset, keep=folder, cache=how.cache, progress=how.progress) as encoded:
            return _search_group(how, members, encoded, branches)
    except ResightError as error:
        parts: dict[str, list[int]] = {}
        for member in members:
            parts.setdefault(repr([_encoding(branch) for branch in how.variants[member].branches]), []).append(member)
        if len(parts) == 1:
            return dict.fromkeys(members, error)
        outcomes: dict[int, Outcome] = {}
        for part in parts.values():
            outcomes |= _measure_group(how, part, folder and folder / f"row {part[0]}")
        return outcomes


def _search_group(
    how: _How, members: Sequence[int], encoded: EncodedDataset, branches: Sequence[Branch]
) -> dict[int, Outcome]:
    outcomes: dict[int, Outcome] = {}
    ready: dict[int, SearchVariant] = {}
    for member in members:
        try:
            ready[member] = _make_variant(encoded, how.variants[member], branches)
        except ResightError as error:
            outcomes[member] = error
    with remember_scores():
        measured = _measure_halves(how, list(ready.items()), encoded)
    for member, result in measured.items():
        try:
            outcomes[member] = (
                result
                if isinstance(result, ResightError)
                else (result, measure_sizes(encoded, *weigh(how.variants[member], branches)))
            )
        except ResightError as error:
            outcomes[member] = error
    return outcomes


def _measure_halves(
    how: _How, variants: Sequence[tuple[int, SearchVariant]], encoded: EncodedDataset
) -> dict[int, RunResult | ResightError]:
    """All variants together; if that fails, in two halves, down to the one that fails."""
    if not variants:
        return {}
    members = [member for member, _ in variants]
    extras = replace(how.extras, map=how.extras.map and 0 in members)
    try:
        results = measure(encoded, [variant for _, variant in variants], how.by, how.progress, extras)
        return dict(zip(members, results, strict=True))
    except ResightError as error:
        if len(variants) == 1:
            return {members[0]: error}
        half = len(variants) // 2
        return _measure_halves(how, variants[:half], encoded) | _measure_halves(how, variants[half:], encoded)


class _Memory:
    """Results measured before, if there is a cache and rankings need not be recorded."""

    def __init__(
        self,
        variants: Sequence[Recipe],
        dataset: Dataset,
        cache: FeatureCache | None,
        by: str,
        extras: Extras,
        mark: str = "",
    ) -> None:
        self._variants = variants
        self._cache = ResultCache(cache.folder / "results") if cache and not extras.record else None
        self._keys: list[str] = []
        if self._cache:
            mark = mark or fingerprint_dataset(dataset)
            parts = [sorted(extras.split.items())] if extras.split is not None else []
            self._keys = [
                make_key(recipe, mark, by, extras.strata, extras.bins, extras.map and number == 0, *parts)
                for number, recipe in enumerate(variants)
            ]

    def recall(self, number: int) -> tuple[RunResult, Sizes] | None:
        return self._cache.read(self._keys[number], self._variants[number]) if self._cache else None

    def store(self, number: int, result: RunResult, sizes: Sizes) -> None:
        if self._cache:
            self._cache.write(self._keys[number], result, sizes)


def group(variants: Sequence[Recipe]) -> list[list[int]]:
    """Numbers of the variants that may share a collection, groups in the order of their first member."""
    groups: dict[object, list[int]] = {}
    for number, variant in enumerate(variants):
        encodings = [_encoding(branch) for branch in variant.branches]
        encoders = [(branch.encoder, branch.photometric) for branch in variant.branches]
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


def _make_variant(encoded: EncodedDataset, variant: Recipe, branches: Sequence[Branch]) -> SearchVariant:
    weighed, own = weigh(variant, branches)
    return SearchVariant(variant, encoded.pipeline(weighed), own)


def _encoding(branch: Branch) -> Branch:
    """The branch without the settings that do not change its rows."""
    return replace(branch, weight=0.0, index=None)


def _make_row(label: str, dataset: Dataset, result: RunResult, sizes: Sizes) -> Row:
    summary = summarise(add_positions(result, dataset))
    encoding = 1000 * summary.encode_seconds
    facts = list_facts(sizes, result.database - len(result.unreadable))
    return Row(label, summary, {**facts, "ms to encode": Fact(encoding, f"{encoding:.0f}")})


def _list_absent(labels: Sequence[str], measured: Sequence[int], failed: Mapping[int, ResightError]) -> list[AbsentRow]:
    return [
        AbsentRow(
            labels[number],
            sum(other < number for other in measured),
            "; ".join(text for text in (failed[number].problem, failed[number].fix) if text),
        )
        for number in sorted(failed)
    ]


def _refuse(error: ResightError, count: int) -> ResightError:
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

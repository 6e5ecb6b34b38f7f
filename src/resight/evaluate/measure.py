"""Search every query of a data set by one or several variants of a recipe, and judge the rankings.

`prepare` encodes the database of a data set once. `measure` encodes each query once, searches it by every variant over
the whole database, and judges each ranking by the recipe's metrics. In: an EncodedDataset and SearchVariants. Out: a
RunResult per variant, whose seconds are those of the search alone. Variants take turns on each query, and at being
first, so that other load on the machine slows all of them alike. Queries without a positive cannot be judged: reports
count them, and ask whether the first answer's probability separates them from the others (AUC).
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from resight.collection import Collection
from resight.collection.add import Progress
from resight.collection.fit.fit_codebook import open_learning
from resight.collection.own_vectors import NO_FILE
from resight.collection.view import View
from resight.data import sets
from resight.encode.extract import gather
from resight.encode.feature_cache import FeatureCache
from resight.errors import CollectionError, ManifestError, RecipeError
from resight.evaluate import metrics
from resight.evaluate.embedding import MapMaker
from resight.evaluate.judge_query import judge_all
from resight.evaluate.properties import find_properties
from resight.evaluate.results import (
    ANSWERS,
    JudgedQuery,
    RunResult,
    add_positions,
    find_positive_ranks,
    list_answers,
)
from resight.evaluate.strata import break_down, check_split
from resight.search.locate_boxes import BY_TOKENS
from resight.search.pipeline import Pipeline, search
from resight.search.request import SearchRequest, StoredImage
from resight.types import Box, Dataset, Descriptors, FloatArray, ImageRef, Judgement, Query, Ranking, Recipe

RecordRanking = Callable[[Recipe, str, Sequence[str], FloatArray], None]
QUERY_BATCH = 64  # queries encoded together before they are searched
LARGE_GRID = 50  # variants


@dataclass(frozen=True)
class EncodedDataset:
    """A data set whose database is encoded in a collection."""

    collection: Collection
    dataset: Dataset
    unreadable: tuple[str, ...]  # database images that could not be read
    index_seconds: float
    found_before: int = 0  # hits of the cache before this data set

    @property
    def cached(self) -> int:
        """Images whose features came from the cache."""
        cache = self.collection.cache
        return cache.found - self.found_before if cache else 0

    def sizes(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Width and height of the database images that could be read."""
        wanted = set(ids)
        return {record.id: record.size for record in self.collection.records() if record.id in wanted}

    def view(self, recipe: Recipe) -> View:
        """The collection, searched by a recipe that encodes its branches in the same way."""
        return Collection(self.collection.path, self.collection.metadata, recipe, self.collection.cache).view()

    def pipeline(self, recipe: Recipe) -> Pipeline:
        """The stages of such a recipe."""
        return self.view(recipe).pipeline


Preparation = Callable[[], AbstractContextManager[EncodedDataset]]  # encodes when it is entered


@dataclass(frozen=True)
class SearchVariant:
    """A recipe and its search stages."""

    recipe: Recipe
    pipeline: Pipeline
    branches: frozenset[int] | None = None  # those of the collection that it uses; None: all
    depth: int | None = None  # number of images per ranking; None: all


@dataclass(frozen=True)
class Extras:
    """What `measure` finds out beside the figures."""

    strata: tuple[str, ...] = ()  # properties of the positives, see properties.py
    bins: int = 5
    map: bool = False  # of the images, as the first variant sees them
    record: RecordRanking | None = None  # receives every ranking
    split: Mapping[str, str] | None = None  # query → its part; replaces the attribute `by`


def load_dataset(recipe: Recipe, root: Path | Dataset) -> Dataset:
    """The recipe's data set at `root`, or already loaded; refuses a recipe whose metrics cannot be measured on it."""
    if recipe.data is None or not recipe.metrics:
        raise RecipeError(
            f"the recipe {recipe.name!r} cannot be evaluated",
            expected="a recipe with data and metrics",
            actual="no data" if recipe.data is None else "no metrics",
            fix='e.g. data = "manifest" and metrics = ["recall@1", "ap"]',
        )
    judge_all((), recipe.metrics)  # refuses unknown metrics and those of whole runs before any image is encoded
    dataset = root if isinstance(root, Dataset) else sets.build(recipe.data.name, **recipe.data.settings).load(root)
    if not any(_has_truth(dataset, query) for query in dataset.queries):
        raise ManifestError(
            f"{dataset.name} has no query with a positive",
            expected="queries and their truth",
            fix="see docs/guides/own-data.md",
        )
    return dataset


@contextmanager
def prepare(
    recipe: Recipe,
    dataset: Dataset,
    *,
    keep: Path | None = None,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> Iterator[EncodedDataset]:
    """Encode the database of a data set; `keep` is a folder for the collection, so that the next run starts from it."""
    with _open_folder(keep) as folder:
        found_before = cache.found if cache else 0
        collection = open_learning(folder, recipe, [dataset.database], cache=cache, progress=progress)
        started = time.perf_counter()
        report = collection.add(dataset.database, progress=progress)
        _refuse_other_images(collection, dataset)
        skipped = tuple(item.path for item in report.skipped)
        yield EncodedDataset(collection, dataset, skipped, time.perf_counter() - started, found_before)


def measure_recipe(
    recipe: Recipe,
    dataset: Dataset,
    *,
    keep: Path | None = None,
    cache: FeatureCache | None = None,
    by: str = "set",
    progress: Progress | None = None,
    extras: Extras | None = None,
) -> RunResult:
    """One recipe on its data set, with the positions that the data set knows."""
    with prepare(recipe, dataset, keep=keep, cache=cache, progress=progress) as encoded:
        (result,) = measure(encoded, [SearchVariant(recipe, encoded.collection.view().pipeline)], by, progress, extras)
        return add_positions(result, dataset)


def measure(
    encoded: EncodedDataset,
    variants: Sequence[SearchVariant],
    by: str = "set",
    progress: Progress | None = None,
    extras: Extras | None = None,
) -> list[RunResult]:
    """Search every query by every variant and judge each ranking by the recipe's metrics.

    `by` is the attribute of the queries whose values are strata. A positive beyond a variant's depth was not found.
    """
    dataset, queries = encoded.dataset, encoded.dataset.queries
    extras = extras or Extras()
    if extras.split is not None:
        check_split(extras.split, [ref.id for ref in queries])
    properties = find_properties(dataset, extras.strata, encoded.sizes)
    paths = {ref.id: ref.path for ref in dataset.database}
    maker = MapMaker(min(variants[0].branches or {0})) if extras.map else None
    sizes = encoded.sizes([name for judgement in dataset.judgements.values() for name in judgement.boxes])
    judged: list[list[JudgedQuery]] = [[] for _ in variants]
    for done, (ref, query, encode_seconds) in enumerate(_encode_queries(encoded.collection, queries), start=1):
        if maker:
            maker.add_query(ref, query)
        judgement = dataset.judgements[ref.id] if _has_truth(dataset, ref) else Judgement({})
        stratum = str(ref.attributes.get(by, "")) if extras.split is None else extras.split.get(ref.id, "")
        for turn in range(len(variants)):
            number = (done + turn) % len(variants)
            variant = variants[number]
            ranking, seconds = _search(encoded, query, variant, len(variants))
            if extras.record:
                extras.record(variant.recipe, ref.id, ranking.ids, ranking.scores)
            boxes = _list_boxes(sizes, ranking, judgement)
            values = _judge(ranking, judgement, boxes, variant.recipe.metrics)
            best = ranking.ids[0] if ranking.ids else ""
            judged[number].append(
                JudgedQuery(
                    ref.id,
                    stratum,
                    values,
                    best,
                    ranking.probabilities.get(best),
                    seconds,
                    encode_seconds,
                    ranking.seconds,
                    find_positive_ranks(ranking.ids, judgement, boxes) if values else None,
                    list_answers(ranking, judgement, paths),
                    ref.path,
                    ref.box,
                )
            )
        if progress:
            progress(done, len(queries))
    return [
        RunResult(
            variant.recipe,
            dataset.name,
            len(dataset.database),
            variant.recipe.metrics,
            {name: metrics.build(name).convention for name in variant.recipe.metrics},
            tuple(results),
            encoded.unreadable,
            encoded.index_seconds,
            encoded.cached,
            break_down(results, properties, variant.recipe.metrics, extras.bins),
            maker.draw(encoded.collection, dataset) if maker and number == 0 else None,
        )
        for number, (variant, results) in enumerate(zip(variants, judged, strict=True))
    ]


def hide_branches(query: Query, known: frozenset[int] | None) -> Query:
    """The query without the rows of other branches, so that stages do not find tokens or key points of theirs."""
    if known is None:
        return query
    rows = [
        part if number in known else Descriptors(part.ids, part.vectors[:0], part.owners[:0], space=part.space)
        for number, part in enumerate(query.descriptors)
    ]
    return replace(query, descriptors=tuple(rows))


def _encode_queries(collection: Collection, refs: Sequence[ImageRef]) -> Iterator[tuple[ImageRef, Query, float]]:
    """Each query and its encoding seconds. Batches are encoded in parallel; searches run while none is encoded."""

    def encode(ref: ImageRef) -> tuple[ImageRef, Query, float]:
        started = time.perf_counter()
        if ref.path.name == NO_FILE:  # stored by its vectors alone
            query = collection.view().encode_query(SearchRequest(StoredImage(ref.id)))
        else:
            query = collection.encode_query(ref)
        return ref, query, time.perf_counter() - started

    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="query") as pool:
        for batch in gather(refs, QUERY_BATCH):
            yield from list(pool.map(encode, batch))


def _search(encoded: EncodedDataset, query: Query, variant: SearchVariant, variants: int) -> tuple[Ranking, float]:
    known = hide_branches(query, variant.branches)
    started = time.perf_counter()
    depth = variant.depth or len(encoded.collection)
    ranking = search(known, variant.pipeline, depth, by_tokens=_count_boxes(variant.recipe.metrics, variants))
    return ranking, time.perf_counter() - started


def _count_boxes(names: Sequence[str], variants: int) -> int:
    """How many boxes to find by tokens, which costs more than the search itself.

    Without a metric that localises, only those of the shown answers; none for a large grid, which shows no answers.
    """
    if any(_localises(name) for name in names):
        return BY_TOKENS
    return ANSWERS if variants <= LARGE_GRID else 0


def _localises(name: str) -> bool:
    metric = metrics.build(name)
    return not isinstance(metric, metrics.RunMetric) and metric.localises


def _list_boxes(sizes: Mapping[str, tuple[int, int]], ranking: Ranking, judgement: Judgement) -> dict[str, Box]:
    """The box shown for each image: the located one, else the whole image."""
    found = frozenset(ranking.ids)
    whole = {name: sizes[name] for name in judgement.boxes if name in found and name not in ranking.boxes}
    boxes = {name: (0.0, 0.0, float(width), float(height)) for name, (width, height) in whole.items()}
    return {**ranking.boxes, **boxes}


def _judge(
    ranking: Ranking, judgement: Judgement, boxes: Mapping[str, Box], names: tuple[str, ...]
) -> dict[str, float]:
    """Metric → value; empty for a query without positives."""
    if not judgement.grades:
        return {}
    (values,) = judge_all([(ranking.ids, judgement, boxes)], names)
    return values


def _has_truth(dataset: Dataset, query: ImageRef) -> bool:
    judgement = dataset.judgements.get(query.id)
    return judgement is not None and any(grade > 0 for grade in judgement.grades.values())


def _refuse_other_images(collection: Collection, dataset: Dataset) -> None:
    """A kept collection may hold images of another data set, which would enter every ranking."""
    wanted = {ref.id for ref in dataset.database}
    others = [record.id for record in collection.records() if record.id not in wanted]
    if others:
        raise CollectionError(
            f"{collection.path} holds images that are not in {dataset.name}",
            expected=f"only its {len(wanted):,} database images",
            actual=f"{len(others):,} others, e.g. {others[0]!r}",
            fix="give --keep another folder for each data set",
        )


@contextmanager
def _open_folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="resight-eval-") as scratch:
        yield Path(scratch) / "database.resight"

"""A data set that is ready to be searched by many recipes: its database is encoded once, and each query once.

In: a recipe that says how images are encoded, and its data set. Out: for each way to search them a RunResult, whose
seconds are those of the search alone. All ways take turns on each query, and at being the first, so that whatever else
the machine does in the meantime slows all of them alike. What else is found out while the collection is open (figures
by strata, a map of the images) is told by an `Extras`.

A recipe and a data set in, judged rankings out.

The database is put into a collection, every query is searched over all of it, and each ranking is judged by the
recipe's metrics. Queries without a positive cannot be judged: they are counted, and used to ask whether the
probability of the best answer tells them from the others (AUC).
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
from resight.collection.view import View
from resight.data import sets
from resight.encode.extract import gather
from resight.encode.feature_cache import FeatureCache
from resight.errors import CollectionError, ManifestError, RecipeError
from resight.evaluate import judge_all, metrics
from resight.evaluate.pages.embedding import MapMaker
from resight.evaluate.results import SHOWN, JudgedQuery, RunResult, keep_spots, list_answers, trace
from resight.evaluate.strata import break_down, check_split, find_properties
from resight.search.locate_boxes import BY_TOKENS
from resight.search.pipeline import Pipeline, search
from resight.types import Box, Dataset, Descriptors, FloatArray, ImageRef, Judgement, Query, Ranking, Recipe

Record = Callable[[Recipe, str, Sequence[str], FloatArray], None]
AHEAD = 64  # queries that are encoded before they are searched
LARGE_GRID = 50  # rows


@dataclass(frozen=True)
class Bench:
    collection: Collection
    dataset: Dataset
    unreadable: tuple[str, ...]  # database images that could not be read
    index_seconds: float
    found_before: int = 0  # pictures that the cache had given out to others

    @property
    def cached(self) -> int:
        """Pictures that came from the cache."""
        cache = self.collection.cache
        return cache.found - self.found_before if cache else 0

    def sizes(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Width and height of the database images that could be read."""
        wanted = set(ids)
        return {record.id: record.size for record in self.collection.records() if record.id in wanted}

    def view(self, recipe: Recipe) -> View:
        """The collection, searched by a recipe whose branches are encoded as its own are."""
        return Collection(self.collection.path, self.collection.description, recipe, self.collection.cache).view()

    def pipeline(self, recipe: Recipe) -> Pipeline:
        """The stages of such a recipe."""
        return self.view(recipe).pipeline


Opening = Callable[[], AbstractContextManager[Bench]]  # what takes long begins when it is entered


@dataclass(frozen=True)
class Way:
    """One way to search: a recipe and its stages."""

    recipe: Recipe
    pipeline: Pipeline
    branches: frozenset[int] | None = None  # those of the collection that it knows; None: all
    depth: int | None = None  # how many images it is asked for; None: all


@dataclass(frozen=True)
class Extras:
    """What is found out beside the figures."""

    strata: tuple[str, ...] = ()  # properties of the positives, see properties.py
    bins: int = 5
    map: bool = False  # of the images, as the first way sees them
    record: Record | None = None  # is told every ranking
    split: Mapping[str, str] | None = None  # query → the part that it is judged with, in place of an attribute


def load_dataset(recipe: Recipe, root: Path) -> Dataset:
    """The recipe's data set at `root`; refused where its metrics cannot be measured on it."""
    if recipe.data is None or not recipe.metrics:
        raise RecipeError(
            f"the recipe {recipe.name!r} cannot be evaluated",
            expected="a recipe with data and metrics",
            actual="no data" if recipe.data is None else "no metrics",
            fix='e.g. data = "manifest" and metrics = ["recall@1", "ap"]',
        )
    judge_all((), recipe.metrics)  # one that is unknown, or of whole runs, is refused before the images are encoded
    dataset = sets.build(recipe.data.name, **recipe.data.settings).load(root)
    if not any(_has_truth(dataset, query) for query in dataset.queries):
        raise ManifestError(
            f"{dataset.name} has no query with a positive",
            expected="queries and their truth",
            fix="docs/data.md tells how",
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
) -> Iterator[Bench]:
    """Encode the database of a data set; `keep` is where the collection stays for the next run."""
    with _place(keep) as folder:
        found_before = cache.found if cache else 0
        collection = open_learning(folder, recipe, [dataset.database], cache=cache, progress=progress)
        started = time.perf_counter()
        report = collection.add(dataset.database, progress=progress)
        _check_nothing_else(collection, dataset)
        skipped = tuple(item.path for item in report.skipped)
        yield Bench(collection, dataset, skipped, time.perf_counter() - started, found_before)


def measure(
    bench: Bench,
    ways: Sequence[Way],
    by: str = "set",
    progress: Progress | None = None,
    extras: Extras | None = None,
) -> list[RunResult]:
    """Search every query in every way over the whole database, and judge each ranking by the recipe's metrics.

    A positive beyond the depth of a way was not found.
    """
    queries = bench.dataset.queries
    extras = extras or Extras()
    if extras.split is not None:
        check_split(extras.split, [ref.id for ref in queries])
    properties = find_properties(bench.dataset, extras.strata, bench.sizes)
    paths = {ref.id: ref.path for ref in bench.dataset.database}
    maker = MapMaker(min(ways[0].branches or {0})) if extras.map else None
    sizes = bench.sizes([name for judgement in bench.dataset.judgements.values() for name in judgement.boxes])
    judged: list[list[JudgedQuery]] = [[] for _ in ways]
    for done, (ref, query, encode_seconds) in enumerate(_encode_queries(bench.collection, queries), start=1):
        if maker:
            maker.add_query(ref, query)
        for turn in range(len(ways)):
            way, results = ways[(done + turn) % len(ways)], judged[(done + turn) % len(ways)]
            known = hide_branches(query, way.branches)
            started = time.perf_counter()
            depth = way.depth or len(bench.collection)
            ranking = search(known, way.pipeline, depth, by_tokens=_count_boxes(way.recipe.metrics, len(ways)))
            seconds = time.perf_counter() - started
            if extras.record:
                extras.record(way.recipe, ref.id, ranking.ids, ranking.scores)
            judgement = bench.dataset.judgements[ref.id] if _has_truth(bench.dataset, ref) else Judgement({})
            boxes = _boxes(sizes, ranking, judgement)
            values = _judge(ranking, judgement, boxes, way.recipe.metrics)
            best = ranking.ids[0] if ranking.ids else ""
            stratum = str(ref.attributes.get(by, "")) if extras.split is None else extras.split.get(ref.id, "")
            probability = ranking.probabilities.get(best)
            results.append(
                JudgedQuery(
                    ref.id,
                    stratum,
                    values,
                    best,
                    probability,
                    seconds,
                    encode_seconds,
                    ranking.seconds,
                    trace(ranking.ids, judgement, boxes) if values else None,
                    list_answers(ranking, judgement, paths),
                    ref.path,
                    ref.box,
                )
            )
        if progress:
            progress(done, len(queries))
    return [
        RunResult(
            way.recipe,
            bench.dataset.name,
            len(bench.dataset.database),
            way.recipe.metrics,
            {name: metrics.build(name).convention for name in way.recipe.metrics},
            tuple(results),
            bench.unreadable,
            bench.index_seconds,
            bench.cached,
            break_down(results, properties, way.recipe.metrics, extras.bins),
            maker.draw(bench.collection, bench.dataset) if maker and number == 0 else None,
        )
        for number, (way, results) in enumerate(zip(ways, judged, strict=True))
    ]


def _count_boxes(names: Sequence[str], ways: int) -> int:
    """Boxes cost more than the search itself: without a metric of where things are, only those that are shown.

    Of a large grid nobody looks at every row's answers.
    """
    if any(_localises(name) for name in names):
        return BY_TOKENS
    return SHOWN if ways <= LARGE_GRID else 0


def _localises(name: str) -> bool:
    metric = metrics.build(name)
    return not isinstance(metric, metrics.RunMetric) and metric.localises


def _encode_queries(collection: Collection, refs: Sequence[ImageRef]) -> Iterator[tuple[ImageRef, Query, float]]:
    """Each query and the seconds that it took. Some are encoded side by side, and then none while they are searched."""

    def encode(ref: ImageRef) -> tuple[ImageRef, Query, float]:
        started = time.perf_counter()
        query = collection.encode_query(ref)
        return ref, query, time.perf_counter() - started

    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="query") as pool:
        for some in gather(refs, AHEAD):
            yield from list(pool.map(encode, some))


def hide_branches(query: Query, known: frozenset[int] | None) -> Query:
    """The query without the rows of other branches: stages that look for tokens or key points must not find them."""
    if known is None:
        return query
    rows = [
        part if number in known else Descriptors(part.ids, part.vectors[:0], part.owners[:0], space=part.space)
        for number, part in enumerate(query.descriptors)
    ]
    return replace(query, descriptors=tuple(rows))


def _judge(
    ranking: Ranking, judgement: Judgement, boxes: Mapping[str, Box], names: tuple[str, ...]
) -> dict[str, float]:
    """Metric → value; empty for a query without positives."""
    if not judgement.grades:
        return {}
    (values,) = judge_all([(ranking.ids, judgement, boxes)], names)
    return values


def _boxes(sizes: Mapping[str, tuple[int, int]], ranking: Ranking, judgement: Judgement) -> dict[str, Box]:
    """The box that is shown for each image: the located one, else the whole image."""
    found = frozenset(ranking.ids)
    whole = {name: sizes[name] for name in judgement.boxes if name in found and name not in ranking.boxes}
    boxes = {name: (0.0, 0.0, float(width), float(height)) for name, (width, height) in whole.items()}
    return {**ranking.boxes, **boxes}


def _check_nothing_else(collection: Collection, dataset: Dataset) -> None:
    """A kept collection may hold the images of another data set, which would take part in every ranking."""
    wanted = {ref.id for ref in dataset.database}
    others = [record.id for record in collection.records() if record.id not in wanted]
    if others:
        raise CollectionError(
            f"{collection.path} holds images that are not in {dataset.name}",
            expected=f"its {len(wanted):,} database images alone",
            actual=f"{len(others):,} others, e.g. {others[0]!r}",
            fix="give --keep another folder for each data set",
        )


def _has_truth(dataset: Dataset, query: ImageRef) -> bool:
    judgement = dataset.judgements.get(query.id)
    return judgement is not None and any(grade > 0 for grade in judgement.grades.values())


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="resight-eval-") as scratch:
        yield Path(scratch) / "database.resight"


def run(
    recipe: Recipe,
    root: Path,
    *,
    keep: Path | None = None,
    cache: FeatureCache | None = None,
    by: str = "set",
    progress: Progress | None = None,
    extras: Extras | None = None,
) -> RunResult:
    """Evaluate a recipe on the data set at `root`; `keep` is where the collection stays for the next run."""
    with prepare(recipe, load_dataset(recipe, root), keep=keep, cache=cache, progress=progress) as bench:
        (result,) = measure(bench, [Way(recipe, bench.collection.pipeline)], by, progress, extras)
        return keep_spots(result, bench.dataset)


__all__ = ["JudgedQuery", "RunResult", "run"]

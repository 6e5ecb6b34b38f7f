"""A recipe and a data set in, judged rankings out.

The database is put into a collection, every query is searched over all of it, and each ranking is judged by the
recipe's metrics. Queries without a positive cannot be judged: they are counted, and used to ask whether the
probability of the best answer tells them from the others (AUC).
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resight.collection import Collection, open_collection
from resight.data import sets
from resight.errors import CollectionError, ManifestError, RecipeError
from resight.evaluate import judge_all, metrics
from resight.types import Box, Dataset, ImageRef, Judgement, Ranking, Recipe

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class JudgedQuery:
    query_id: str
    stratum: str  # the value of the attribute that figures are broken down by; "" when it has none
    values: Mapping[str, float]  # metric → value; empty for a query without positives
    best_id: str
    best_probability: float | None
    seconds: float


@dataclass(frozen=True)
class RunResult:
    recipe: Recipe
    dataset: str
    database: int
    metrics: tuple[str, ...]
    conventions: Mapping[str, str]  # metric → its meaning in one sentence
    queries: tuple[JudgedQuery, ...]
    unreadable: tuple[str, ...]  # database images that could not be read
    index_seconds: float


def run(
    recipe: Recipe, root: Path, *, keep: Path | None = None, by: str = "set", progress: Progress | None = None
) -> RunResult:
    """Evaluate a recipe on the data set at `root`; `keep` is where the collection stays for the next run."""
    if recipe.data is None or not recipe.metrics:
        raise RecipeError(
            f"the recipe {recipe.name!r} cannot be evaluated",
            expected="a recipe with data and metrics",
            actual="no data" if recipe.data is None else "no metrics",
            fix='e.g. data = "manifest" and metrics = ["recall@1", "ap"]',
        )
    dataset = sets.build(recipe.data.name, **recipe.data.settings).load(root)
    if not any(_has_truth(dataset, query) for query in dataset.queries):
        raise ManifestError(
            f"{dataset.name} has no query with a positive",
            expected="queries and their truth",
            fix="docs/data.md tells how",
        )
    conventions = {name: metrics.build(name).convention for name in recipe.metrics}
    with _place(keep) as folder:
        collection = open_collection(folder, recipe)
        started = time.perf_counter()
        report = collection.add(dataset.database, progress=progress)
        _check_nothing_else(collection, dataset)
        index_seconds = time.perf_counter() - started
        judged = tuple(_judge(collection, dataset, recipe.metrics, by, progress))
    return RunResult(
        recipe,
        dataset.name,
        len(dataset.database),
        recipe.metrics,
        conventions,
        judged,
        tuple(item.path for item in report.skipped),
        index_seconds,
    )


def _judge(
    collection: Collection, dataset: Dataset, names: tuple[str, ...], by: str, progress: Progress | None
) -> Iterator[JudgedQuery]:
    for done, query in enumerate(dataset.queries, start=1):
        started = time.perf_counter()
        ranking = collection.ask(query, k=len(collection)).ranking
        seconds = time.perf_counter() - started
        values: dict[str, float] = {}
        if _has_truth(dataset, query):
            shown = _boxes(collection, ranking, dataset.judgements[query.id])
            (values,) = judge_all([(ranking.ids, dataset.judgements[query.id], shown)], names)
        best = ranking.ids[0] if ranking.ids else ""
        stratum = str(query.attributes.get(by, ""))
        yield JudgedQuery(query.id, stratum, values, best, ranking.probabilities.get(best), seconds)
        if progress:
            progress(done, len(dataset.queries))


def _boxes(collection: Collection, ranking: Ranking, judgement: Judgement) -> dict[str, Box]:
    """The box that is shown for each image: the located one, else the whole image."""
    boxes = dict(ranking.boxes)
    missing = [name for name in judgement.boxes if name not in boxes and name in ranking.ids]
    for record in collection.records(missing) if missing else ():
        boxes[record.id] = (0.0, 0.0, float(record.size[0]), float(record.size[1]))
    return boxes


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

"""Tune an index: measure every point of a grid of settings beside the exact index.

In: a recipe and its data set (`tune`), or a collection without truth (`tune_collection`). Out: an Evaluation with a row
per point: quality, bytes, seconds to build, ms per query, and whether the point is on the Pareto front (no other is at
least as good, as small and as fast, and better in one of them). Images are encoded once, and all points take turns on
each query.

With truth, quality is the recipe's metric over the first `depth` images: ranking all images would visit every list.
Without truth, it is the share of the exact answer's first k images that are found.
"""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from resight.collection import Collection
from resight.collection.add import Progress
from resight.collection.image_list import list_images
from resight.encode.feature_cache import FeatureCache
from resight.errors import InputError
from resight.evaluate.evaluation import (
    BYTES,
    HEADINGS,
    AbsentRow,
    Evaluation,
    Fact,
    Row,
    choose_cheapest,
    choose_metric,
    format_milliseconds,
    format_share,
)
from resight.evaluate.exactness import list_queries
from resight.evaluate.index_grid import Grid, GridPoint, build_points, choose_index, find_branch
from resight.evaluate.judge_query import judge_all
from resight.evaluate.measure import EncodedDataset, SearchVariant, load_dataset, measure, prepare
from resight.evaluate.results import JudgedQuery, RunResult
from resight.evaluate.summary import summarise
from resight.types import Choice, Descriptors, Judgement, Recipe, Skipped

DEPTH = 100
SAMPLE = 200
LOSS = 0.05


def tune(
    recipe: Recipe,
    root: Path,
    grid: Grid,
    *,
    branch: int | None = None,
    depth: int = DEPTH,
    metric: str = "",
    loss: float = LOSS,
    keep: Path | None = None,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
) -> Evaluation:
    """Measure the grid on the recipe's data set; `loss` is the share of the best value that may be lost."""
    position = find_branch(recipe, branch)
    judged = choose_metric(recipe, metric)
    own = recipe.branches[position].index or recipe.index
    match = {key: value for key, value in own.settings.items() if key == "match"}
    exact = choose_index(recipe, position, Choice("exact", match))
    with (
        tempfile.TemporaryDirectory(prefix="resight-tune-") as scratch,
        prepare(exact, load_dataset(recipe, root), keep=keep, cache=cache, progress=progress) as encoded,
    ):
        collection = Collection(encoded.collection.path, encoded.collection.metadata, recipe)
        points, refused = build_points(collection, position, grid, Path(scratch), report)
        variants = [_make_variant(encoded, recipe, position, point, depth) for point in points]
        results = measure(encoded, variants, progress=progress)
        note = f"every search is for the first {depth:,} images: a positive beyond them was not found"
        return _evaluate(recipe, position, points, refused, results, judged, loss, note)


def tune_collection(
    collection: Collection,
    queries: Sequence[str | Path],
    grid: Grid,
    *,
    branch: int | None = None,
    k: int = 10,
    sample: int = SAMPLE,
    seed: int = 0,
    loss: float = LOSS,
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
) -> Evaluation:
    """Without truth: queries are images, folders or manifests; default: `sample` images of the collection."""
    position = find_branch(collection.recipe, branch)
    k = min(k, len(collection) - (0 if queries else 1))
    if k < 1:
        raise InputError(
            "nothing to compare",
            expected="k of 1 or more, and at least two images",
            actual=f"{len(collection)} images, k = {k}",
        )
    metric = f"recall_fraction@{k}"
    lists = list_images(queries) if queries else []
    total = sum(map(len, lists)) or min(sample, len(collection))
    with tempfile.TemporaryDirectory(prefix="resight-tune-") as scratch:
        points, refused = build_points(collection, position, grid, Path(scratch), report)
        judged: list[list[JudgedQuery]] = [[] for _ in points]
        skipped: list[str] = []
        for done, query in enumerate(list_queries(collection, position, lists, sample, seed), start=1):
            if isinstance(query, Skipped):
                skipped.append(query.path)
            elif len(query[0]):
                for rows, result in zip(judged, search_points(points, *query, k, metric, turn=done), strict=True):
                    rows.append(result)
            if progress:
                progress(done, total)
        results = [
            RunResult(
                choose_index(collection.recipe, position, point.choice),
                collection.path.name,
                len(collection),
                (metric,),
                {metric: f"Share of the exact answer's first {k} images that are among the first {k}."},
                tuple(rows),
                (),
                0.0,
            )
            for point, rows in zip(points, judged, strict=True)
        ]
    if not results[0].queries:
        raise InputError(
            "no query to measure with",
            expected="at least one image that has rows",
            actual=f"{len(skipped)} that cannot be read" if skipped else "none",
            fix="give others",
        )
    asked = "the queries" if queries else "images of the collection, each left out of its own answer"
    note = f"{len(results[0].queries):,} queries: {asked}; quality is agreement with exact, not with truth"
    return _evaluate(collection.recipe, position, points, refused, results, metric, loss, note)


def search_points(
    points: Sequence[GridPoint], rows: Descriptors, own: str | None, k: int, metric: str, turn: int = 0
) -> list[JudgedQuery]:
    """One query at every point, judged by the first point's answer; `own` is left out of all answers."""
    answers: dict[int, tuple[list[str], float]] = {}
    for number in ((turn + step) % len(points) for step in range(len(points))):
        started = time.perf_counter()
        ranking = points[number].searcher.search(rows, k + (own is not None))
        seconds = time.perf_counter() - started
        answers[number] = [name for name in ranking.ids if name != own][:k], seconds
    right = Judgement(dict.fromkeys(answers[0][0], 1))
    judged = []
    for number in range(len(points)):
        ids, seconds = answers[number]
        (values,) = judge_all([(ids, right, {})], (metric,))
        judged.append(JudgedQuery(rows.ids[0], "", values, ids[0] if ids else "", None, seconds))
    return judged


def find_front(points: Sequence[tuple[float, ...]]) -> list[bool]:
    """Whether each point is on the Pareto front; higher is better in every coordinate."""

    def beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        return one != other and all(a >= b for a, b in zip(one, other, strict=True))

    return [not any(beats(other, point) for other in points) for point in points]


def write_line(recipe: Recipe, branch: int, choice: Choice) -> str:
    """The setting for the recipe, as TOML."""
    words = [f"{key} = {json.dumps(value)}" for key, value in choice.settings.items() if value is not None]
    line = f'index = {{ name = "{choice.name}", {", ".join(words)} }}' if words else f'index = "{choice.name}"'
    several = len(recipe.branches) > 1
    return f"in branch {branch}, counted from 0: {line}" if several or recipe.branches[branch].index else line


def _make_variant(encoded: EncodedDataset, recipe: Recipe, branch: int, point: GridPoint, depth: int) -> SearchVariant:
    pipeline = encoded.collection.view().pipeline
    parts = tuple(
        replace(part, searcher=point.searcher) if part.branch == branch else part for part in pipeline.shortlisters
    )
    return SearchVariant(choose_index(recipe, branch, point.choice), replace(pipeline, shortlisters=parts), depth=depth)


def _evaluate(
    recipe: Recipe,
    branch: int,
    points: Sequence[GridPoint],
    refused: Sequence[AbsentRow],
    results: Sequence[RunResult],
    metric: str,
    loss: float,
    note: str,
) -> Evaluation:
    summaries = [summarise(result) for result in results]
    values = [summary.figures[metric].mean for summary in summaries]
    sizes = [point.bytes_in_memory for point in points]
    times = [summary.rank_seconds for summary in summaries]
    front = find_front([(value, -size, -cost) for value, size, cost in zip(values, sizes, times, strict=True)])
    images = max(results[0].database, 1)
    rows = tuple(
        Row(point.label, summary, _list_facts(point, images, sizes[0], on_front))
        for point, on_front, summary in zip(points, front, summaries, strict=True)
    )
    chosen = choose_cheapest(values, sizes, max(values), loss)
    line = "" if chosen is None else write_line(recipe, branch, points[chosen].choice)
    return Evaluation(
        title=f"{recipe.name}: {results[0].dataset}, {images:,} images, indexes by quality, bytes and time",
        heading="index",
        rows=rows,
        reference=0,
        metric=metric,
        cells="share",
        notes=(
            note,
            f"{HEADINGS[BYTES]}: memory that a search reads; on disk: all files of the index",
            "smaller: memory of exact divided by that of the row; front: no other is as good, as small and as fast",
        ),
        answer="" if chosen is None else _answer(points, values, times, images, metric, loss, chosen),
        chosen=chosen,
        settings={"loss": loss, "line": line},
        absent=tuple(refused),
        ranked=True,
    )


def _list_facts(point: GridPoint, images: int, whole: int, on_front: bool) -> dict[str, Fact]:
    memory, disk = point.bytes_in_memory / images, point.bytes_on_disk / images
    smaller = whole / max(point.bytes_in_memory, 1)
    return {
        BYTES: Fact(memory, f"{memory:,.0f}"),
        "on disk": Fact(disk, f"{disk:,.0f}"),
        "smaller": Fact(smaller, f"{smaller:.1f} ×"),
        "s to build": Fact(point.build_seconds, f"{point.build_seconds:.1f}"),
        "front": Fact(float(on_front), "yes" if on_front else ""),
    }


def _answer(
    points: Sequence[GridPoint],
    values: Sequence[float],
    times: Sequence[float],
    images: int,
    metric: str,
    loss: float,
    chosen: int,
) -> str:
    sizes = [points[number].bytes_in_memory / images for number in (chosen, 0)]
    return (
        f"The smallest that loses at most {format_share(loss)} of the best {metric} is {points[chosen].label}: "
        f"{values[chosen]:.4f} of {max(values):.4f}, {sizes[0]:,.0f} bytes per image instead of {sizes[1]:,.0f}, "
        f"{format_milliseconds(times[chosen])} ms per query instead of {format_milliseconds(times[0])}."
    )

"""The child process of a grid of rerankers: their settings in, the figures of the best as JSON out.

The shortlist of a query is made once, and each pair of images is scored once for all settings (`remember_scores`).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resight.encode.feature_cache import FeatureCache
from resight.errors import RecipeError
from resight.evaluate import metrics
from resight.evaluate.judge_query import judge_all
from resight.evaluate.measure import load_dataset, prepare
from resight.evaluate.metrics import RunMetric
from resight.evaluate.summary import average, make_figure
from resight.recipe import parse
from resight.recipe.tables import read_choice
from resight.reproduce import worker
from resight.search import rerankers as plugins
from resight.search.pipeline import choose_depth
from resight.search.rescoring import remember_scores
from resight.search.shortlist import shortlist
from resight.types import Judgement

REPORT = 50  # queries between two lines of progress


def measure_grid(
    recipe: Mapping[str, Any], rerankers: Sequence[Sequence[Any]], root: str, cache: str | None, cache_bytes: int
) -> dict[str, Any]:
    """{"best": number of the best chain, its mean "value" with "low" and "high", and "queries": the value of each}."""
    base = parse(recipe)
    (metric,) = base.metrics
    _refuse_boxes(metric)
    dataset = load_dataset(base, Path(root))
    features = FeatureCache(Path(cache), cache_bytes) if cache else None
    values: list[dict[str, float]] = [{} for _ in rerankers]
    with prepare(base, dataset, cache=features) as encoded, remember_scores():
        pipeline = encoded.collection.view().pipeline
        chains = [
            [
                plugins.build(choice.name, **choice.settings)
                for choice in (read_choice(each, "rerankers") for each in chain)
            ]
            for chain in rerankers
        ]
        depth = max(len(encoded.collection), choose_depth(pipeline, 1))
        for done, ref in enumerate(dataset.queries, start=1):
            judgement = dataset.judgements.get(ref.id, Judgement({}))
            if not any(grade > 0 for grade in judgement.grades.values()):
                continue
            query = encoded.collection.encode_query(ref)
            first = shortlist(query, pipeline.shortlisters, pipeline.fusion, depth, None)
            for chain, found in zip(chains, values, strict=True):
                ranking = first
                for reranker in chain:
                    ranking = reranker.rerank(query, ranking, pipeline.gallery)
                (judged,) = judge_all([(ranking.ids, judgement, {})], (metric,))
                found[ref.id] = judged[metric]
            if done % REPORT == 0:
                worker.report(f"{done:,} of {len(dataset.queries):,} queries")
    means = [average(list(found.values())) for found in values]
    best = max(range(len(means)), key=lambda number: -math.inf if math.isnan(means[number]) else means[number])
    figure = make_figure(list(values[best].values()))
    return {"best": best, "value": figure.mean, "low": figure.low, "high": figure.high, "queries": values[best]}


def _refuse_boxes(name: str) -> None:
    metric = metrics.build(name)
    if isinstance(metric, RunMetric) or metric.localises:
        raise RecipeError(
            f"a grid of rerankers cannot measure {name}",
            expected="a metric of one ranking, without boxes",
            actual=name,
            fix="e.g. ap",
        )

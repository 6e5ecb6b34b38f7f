"""The child process of a retrieval table: recipes on one data set in, their figures and facts as JSON out."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from resight import plugins
from resight.data.check import export_boxes, list_boxes
from resight.encode import named_networks
from resight.encode.feature_cache import FeatureCache
from resight.errors import MissingExtra, ResightError
from resight.evaluate.evaluation import BYTES, COMPRESSION, MEGABYTES, ROWS
from resight.evaluate.measure import load_dataset
from resight.evaluate.variants import measure_variants
from resight.recipe import parse
from resight.recipe.tables import read_choice
from resight.reproduce import worker
from resight.types import Dataset, Recipe

SILENCE = 2.0  # seconds between two lines of progress


def measure_group(
    recipes: Sequence[Mapping[str, Any]], root: str, cache: str | None, cache_bytes: int
) -> dict[str, Any]:
    """The ids of the queries and, per recipe, its figures and facts or the reason why it failed.

    A recipe that raises costs no other: the recipes are then measured in two halves, down to single ones. A lack of
    memory leaves this process, so that the parent starts others for fewer recipes.
    """
    variants = [parse({**table, "name": str(number)}) for number, table in enumerate(recipes)]
    dataset = load_dataset(variants[0], Path(root))
    features = FeatureCache(Path(cache), cache_bytes) if cache else None
    rows = dict(_measure_halves(variants, dataset, features))
    return {
        "queries": next((row.pop("queries") for row in rows.values() if "queries" in row), []),
        "rows": [{key: rows[v.name][key] for key in rows[v.name] if key != "queries"} for v in variants],
    }


def load_data(data: Any, root: str) -> dict[str, Any]:
    """Whether the data set can be used at all; its errors concern every experiment on it."""
    recipe = Recipe("data", branches=(), data=read_choice(data, "data"), metrics=("ap",))
    dataset = load_dataset(recipe, Path(root))
    return {"database": len(dataset.database), "queries": len(dataset.queries)}


def write_boxes(data: Any, root: str, path: str) -> dict[str, Any]:
    """Write the true boxes of the data set's images, as `resight data boxes` does."""
    recipe = Recipe("boxes", branches=(), data=read_choice(data, "data"), metrics=("ap",))
    boxes = list_boxes(load_dataset(recipe, Path(root)))
    export_boxes(boxes, Path(path))
    return {"images": len(boxes)}


def _measure_halves(
    variants: Sequence[Recipe], dataset: Dataset, cache: FeatureCache | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        evaluation = measure_variants(variants, dataset, cache=cache, progress=_Progress(), report=worker.report)
    except Exception as error:
        cause = error.__cause__  # of "none of 4 rows could run": the first row's own error
        reason = worker.describe(cause if isinstance(cause, MissingExtra) else error)
        if worker.is_memory(error):
            raise
        if len(variants) == 1 or lacks_encoder(variants[0]):
            yield from ((variant.name, {"reason": reason}) for variant in variants)
            return
        half = len(variants) // 2
        yield from _measure_halves(variants[:half], dataset, cache)
        yield from _measure_halves(variants[half:], dataset, cache)
        return
    for row in evaluation.rows:
        figures = {
            metric: [figure.mean, figure.low, figure.high, [query.values[metric] for query in row.summary.judged]]
            for metric, figure in row.summary.figures.items()
        }
        facts = find_facts({name: fact.value for name, fact in row.facts.items()})
        yield row.label, {"figures": figures, "facts": facts, "queries": [query.id for query in row.summary.judged]}
    yield from ((row.label, {"reason": row.reason}) for row in evaluation.absent)


def lacks_encoder(recipe: Recipe) -> bool:
    """Whether the weights of an encoder are missing, which all recipes of a group share."""
    try:
        for branch in recipe.branches:
            choice = named_networks.resolve(branch.encoder)
            module = plugins.find(named_networks.BACKBONES, choice.name)
            if hasattr(module, "find_weights"):
                module.find_weights(plugins.configure(module.Config, choice.settings, choice.name))
    except MissingExtra:
        return True
    except ResightError:
        return False
    return False


def find_facts(facts: Mapping[str, float]) -> dict[str, float]:
    """The facts of a table's columns, from those of an evaluation's row."""
    size, rows = facts[BYTES], facts[ROWS]
    found = {"bytes_per_image": size, "megabytes": facts[MEGABYTES], "compression": facts[COMPRESSION]}
    return found | ({"bytes_per_token": size / rows} if rows else {})


def count_complexity(encoders: Sequence[Any], fact: str) -> dict[str, Any]:
    """The sum over several encoders."""
    from resight.reproduce.kinds.complexity import count_gflops, count_parameters  # imports torch

    count = count_parameters if fact == "params" else count_gflops
    return {"value": sum(count(read_choice(encoder, "encoder")) for encoder in encoders)}


class _Progress:
    """Reports the work done, at most every few seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= SILENCE:
            self._last = now
            worker.report(f"{done:,} of {total:,}")

"""The child processes of a table of strata: recipes on one data set in, the values of each query as JSON out."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resight.encode.feature_cache import FeatureCache
from resight.evaluate.brightness import change_brightness
from resight.evaluate.measure import Extras, load_dataset, measure_recipe
from resight.evaluate.result_cache import fingerprint_dataset
from resight.evaluate.variants import measure_variants
from resight.recipe import parse
from resight.reproduce import worker


def measure_bins(
    recipe: Mapping[str, Any], root: str, cache: str | None, cache_bytes: int, properties: Sequence[str], bins: int
) -> dict[str, Any]:
    """Property → its bins, each {"label", "values": {query: {metric: value}}}, in the order of the values."""
    parsed = parse(recipe)
    dataset = load_dataset(parsed, Path(root))
    extras = Extras(strata=tuple(properties), bins=bins)
    result = measure_recipe(parsed, dataset, cache=_open_cache(cache, cache_bytes), extras=extras)
    return {
        part.name: [
            {"label": each.label, "values": {query: dict(values) for query, values in each.values.items()}}
            for each in part.bins
        ]
        for part in result.strata
    }


def measure_light(
    recipes: Sequence[Mapping[str, Any]], root: str, cache: str | None, cache_bytes: int, factor: float
) -> dict[str, Any]:
    """{"rows": per recipe {"values": {query: {metric: value}}} or {"reason"}}, all images relit by one factor."""
    variants = [parse({**recipe, "name": str(number)}) for number, recipe in enumerate(recipes)]
    dataset = load_dataset(variants[0], Path(root))
    features = _open_cache(cache, cache_bytes)
    with tempfile.TemporaryDirectory(prefix="resight-light-") as scratch:
        lit = change_brightness(dataset, factor, Path(scratch))
        mark = f"{fingerprint_dataset(dataset)} L × {factor:g}" if features else ""
        evaluation = measure_variants(variants, lit, cache=features, report=worker.report, mark=mark)
    rows: dict[str, dict[str, Any]] = {row.label: {"reason": row.reason} for row in evaluation.absent}
    for row in evaluation.rows:
        rows[row.label] = {"values": {query.id: dict(query.values) for query in row.summary.judged}}
    return {"rows": [rows[variant.name] for variant in variants]}


def _open_cache(folder: str | None, most: int) -> FeatureCache | None:
    return FeatureCache(Path(folder), most) if folder else None

"""A recipe and a data set in, judged rankings out.

The database is put into a collection, every query is searched over all of it, and each ranking is judged by the
recipe's metrics. Queries without a positive cannot be judged: they are counted, and used to ask whether the
probability of the best answer tells them from the others (AUC).
"""

from pathlib import Path

from resight.collection.adding import Progress
from resight.encode.feature_cache import FeatureCache
from resight.evaluate.bench import Extras, Way, load_dataset, measure, prepare
from resight.evaluate.results import JudgedQuery, RunResult
from resight.evaluate.spots import keep_spots
from resight.types import Recipe


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

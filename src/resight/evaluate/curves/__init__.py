"""What is lost by saving: a recipe measured at several settings of one of its parts, from the cheapest to the fullest.

A curve is a module with `Config` (at least `steps`, `loss` and `metric`) and `build(config)`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from resight import plugins
from resight.collection.adding import Progress
from resight.encode.feature_cache import FeatureCache
from resight.evaluate.comparison import Comparison
from resight.types import Recipe


class Curve(Protocol):
    def draw(
        self,
        recipe: Recipe,
        root: Path,
        *,
        keep: Path | None,
        by: str,
        progress: Progress | None,
        cache: FeatureCache | None = None,
    ) -> Comparison:
        """Measure the recipe at every step on the data set at `root`; the database is encoded once, and each query."""
        ...


def build(name: str, *, steps: Sequence[str] = (), loss: float | None = None, metric: str = "") -> Curve:
    """`steps` as the curve reads them (none: its own), `loss` the share that may be lost (None: its own), `metric` of
    the answer (none: the recipe's first)."""
    settings: dict[str, Any] = {"steps": tuple(steps), "metric": metric}
    curve: Curve = plugins.load(__name__, name, settings if loss is None else {**settings, "loss": loss})
    return curve

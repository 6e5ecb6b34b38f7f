"""Curves of quality against cost: a recipe measured at several settings of one of its parts.

In: a recipe and its data set. Out: an Evaluation with a row per setting, and the cheapest one that loses little enough.
A curve is a module with `Config` (at least `steps`, `loss` and `metric`) and `build(config)`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from resight import plugins
from resight.collection.add import Progress
from resight.evaluate.evaluation import Evaluation
from resight.evaluate.measure import Preparation
from resight.types import Recipe


class Curve(Protocol):
    def draw(self, recipe: Recipe, prepare: Preparation, by: str, progress: Progress | None = None) -> Evaluation:
        """Measure the recipe at every step; encodes the data set once, after the steps are checked."""
        ...


def build(name: str, *, steps: Sequence[str] = (), loss: float | None = None, metric: str = "") -> Curve:
    """Defaults are the curve's own `steps` and `loss` (the share that may be lost) and the recipe's first metric."""
    settings: dict[str, Any] = {"steps": tuple(steps), "metric": metric}
    curve: Curve = plugins.load(__name__, name, settings if loss is None else {**settings, "loss": loss})
    return curve

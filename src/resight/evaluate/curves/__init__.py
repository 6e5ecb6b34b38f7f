"""What is lost by saving: a recipe measured at several settings of one of its parts, from the cheapest to the fullest.

A curve is a module with `Config` (at least `steps`, `loss` and `metric`) and `build(config)`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from resight import plugins
from resight.collection.add import Progress
from resight.evaluate.comparison import Comparison
from resight.evaluate.evaluate import Opening
from resight.types import Recipe


class Curve(Protocol):
    def draw(self, recipe: Recipe, opening: Opening, by: str, progress: Progress | None = None) -> Comparison:
        """Measure the recipe at every step; the bench is opened once, after the steps were read."""
        ...


def build(name: str, *, steps: Sequence[str] = (), loss: float | None = None, metric: str = "") -> Curve:
    """`steps` as the curve reads them (none: its own), `loss` the share that may be lost (None: its own), `metric` of
    the answer (none: the recipe's first)."""
    settings: dict[str, Any] = {"steps": tuple(steps), "metric": metric}
    curve: Curve = plugins.load(__name__, name, settings if loss is None else {**settings, "loss": loss})
    return curve

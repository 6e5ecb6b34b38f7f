"""Quality against the size S of the shortlist: how many candidates does the second stage need?

In: a recipe whose reranker `late` scores the first S images of a shortlist. Out: quality and time of the search at
each S, and the smallest S that reaches (1 - loss) of the exhaustive value, that of S = all images.
`steps` are numbers of images ("50") or shares of the database ("5%"); S = all is always measured too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from resight.collection.add import Progress
from resight.errors import InputError, RecipeError
from resight.evaluate.evaluation import (
    Evaluation,
    Fact,
    Row,
    choose_cheapest,
    choose_metric,
    format_milliseconds,
    format_share,
)
from resight.evaluate.measure import Preparation, SearchVariant, measure
from resight.evaluate.summary import summarise
from resight.evaluate.table import Chart, Line
from resight.plugins import check_range
from resight.search import rerankers
from resight.search.pipeline import Pipeline
from resight.types import Recipe

SHARES = ("1%", "2%", "5%", "10%", "20%", "50%")
RERANKER = "late"


@dataclass(frozen=True)
class Config:
    steps: tuple[str, ...] = ()  # sizes to compare: images ("50") or shares of the database ("5%"); default: several
    loss: float = 0.06  # largest loss of the metric to accept, as a share of its value with all images
    metric: str = ""  # metric that decides; empty: the recipe's first

    def __post_init__(self) -> None:
        check_range("loss", self.loss, 0, 1)


def build(config: Config) -> "Shortlist":
    return Shortlist(config)


class Shortlist:
    def __init__(self, config: Config) -> None:
        self._config = config

    def draw(self, recipe: Recipe, prepare: Preparation, by: str, progress: Progress | None = None) -> Evaluation:
        position = _find_reranker(recipe)
        metric = choose_metric(recipe, self._config.metric)
        count_candidates(self._config.steps, 1)  # refuses unreadable steps before any image is encoded
        with prepare() as encoded:
            images = len(encoded.collection)
            counts = count_candidates(self._config.steps or SHARES, images)
            pipeline = encoded.collection.view().pipeline
            variants = [limit_candidates(recipe, pipeline, position, count) for count in counts]
            results = measure(encoded, variants, by, progress)
        rows = [
            Row(
                f"{count:,}",
                summarise(result),
                {"of the images": Fact(count / images, f"{100 * count / images:.3g} %")},
            )
            for count, result in zip(counts, results, strict=True)
        ]
        return _evaluate(recipe, rows, counts, metric, self._config.loss)


def count_candidates(steps: tuple[str, ...], images: int) -> list[int]:
    """Steps as numbers of images from 1 to all, each once, all images last."""
    counts = {images}
    for step in steps:
        number, percent, _ = step.strip().partition("%")
        try:
            value = float(number) / 100 * images if percent else float(int(number))
        except ValueError:
            value = math.nan
        if not value > 0:
            raise InputError(
                f"{step!r} is not a number of candidates",
                expected="numbers of images or percentages, separated by commas",
                actual=step,
                fix="e.g. --steps 10,50,100 or --steps 5%,10%",
            )
        counts.add(min(max(round(value), 1), images))
    return sorted(counts)


def limit_candidates(recipe: Recipe, pipeline: Pipeline, position: int, count: int) -> SearchVariant:
    """The same search with `count` candidates for the reranker at `position`."""
    choice = recipe.rerankers[position]
    settings = {key: value for key, value in choice.settings.items() if key != "share"}
    chosen = replace(choice, settings={**settings, "candidates": count})
    reranker = rerankers.build(chosen.name, **chosen.settings)
    before, after = slice(0, position), slice(position + 1, None)
    return SearchVariant(
        replace(recipe, rerankers=(*recipe.rerankers[before], chosen, *recipe.rerankers[after])),
        replace(pipeline, rerankers=(*pipeline.rerankers[before], reranker, *pipeline.rerankers[after])),
    )


def _find_reranker(recipe: Recipe) -> int:
    names = [choice.name for choice in recipe.rerankers]
    if RERANKER not in names:
        raise RecipeError(
            f"the recipe {recipe.name!r} has no second stage for this curve",
            expected=f"a single-vector shortlist and the reranker {RERANKER!r}",
            actual=f"rerankers {', '.join(names) or 'none'}",
            fix="e.g. gardens_point_two_stages; docs/guides/evaluation.md shows how such a recipe is written",
        )
    return names.index(RERANKER)


def _evaluate(recipe: Recipe, rows: Sequence[Row], counts: Sequence[int], metric: str, loss: float) -> Evaluation:
    images = counts[-1]
    values = [row.summary.figures[metric].mean for row in rows]
    chosen = choose_cheapest(values, counts, values[-1], loss)
    dataset = rows[-1].summary.dataset
    return Evaluation(
        title=f"{recipe.name}: {dataset}, {images:,} images, quality and time against the candidates S",
        heading="S",
        rows=tuple(rows),
        reference=len(rows) - 1,
        metric=metric,
        cells="share",
        notes=(f"S: images of the shortlist that are scored again by their tokens; the last row is all {images:,}",),
        answer=_answer(rows, counts, metric, loss, chosen),
        chosen=chosen,
        charts=_draw(rows, counts, metric, loss, chosen),
        settings={"curve": "shortlist", "loss": loss},
        reference_name="all images",
    )


def _answer(rows: Sequence[Row], counts: Sequence[int], metric: str, loss: float, chosen: int | None) -> str:
    if chosen is None:
        return f"No S was measured that loses at most {format_share(loss)} of the exhaustive {metric}."
    value, whole = (rows[number].summary.figures[metric].mean for number in (chosen, -1))
    share = f" ({format_share(value / whole)})" if whole > 0 else ""
    times = [format_milliseconds(rows[number].median_seconds) for number in (chosen, -1)]
    return (
        f"The smallest S that loses at most {format_share(loss)} of the exhaustive {metric} is {counts[chosen]:,} of "
        f"{counts[-1]:,} images: {value:.4f} of {whole:.4f}{share}, {times[0]} ms per query instead of {times[1]}."
    )


def _draw(
    rows: Sequence[Row], counts: Sequence[int], metric: str, loss: float, chosen: int | None
) -> tuple[Chart, ...]:
    positions = tuple(math.log10(count) for count in counts)
    ticks = tuple(f"{count:,}" for count in counts)
    figures = [row.summary.figures for row in rows]
    quality = tuple(Line(name, tuple(part[name].mean for part in figures)) for name in figures[0])
    times = Line("search", tuple(1000 * row.median_seconds for row in rows))
    floor = (1 - loss) * figures[-1][metric].mean
    label = "S, logarithmic"
    return (
        Chart("Quality", label, positions, ticks, quality, chosen, (floor, f"{format_share(1 - loss, 0)} of {metric}")),
        Chart("Milliseconds per query", label, positions, ticks, (times,), chosen, from_zero=True),
    )

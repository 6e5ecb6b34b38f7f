"""Two stages: how many candidates must the second one see?

In: a recipe whose reranker `late` looks at the first S images of a shortlist. Out: quality and time of the search at
each S, and the smallest S that keeps (1 - loss) of the exhaustive value, that of S = all images.
`steps` are numbers of images ("50") or shares of the database ("5%"); S = all is always measured too.
"""

import math
from dataclasses import dataclass, replace

from resight.collection.add import Progress
from resight.errors import InputError, RecipeError
from resight.evaluate.comparison import (
    Comparison,
    Fact,
    Row,
    average,
    choose_cheapest,
    choose_metric,
    median_seconds,
    say_milliseconds,
    say_share,
)
from resight.evaluate.evaluate import Opening, Way, measure
from resight.evaluate.pages.charts import Chart, Line
from resight.evaluate.results import RunResult
from resight.plugins import check_range
from resight.search import rerankers
from resight.search.pipeline import Pipeline
from resight.types import Recipe

SHARES = ("1%", "2%", "5%", "10%", "20%", "50%")
RERANKER = "late"


@dataclass(frozen=True)
class Config:
    steps: tuple[str, ...] = ()
    loss: float = 0.06
    metric: str = ""

    def __post_init__(self) -> None:
        check_range("loss", self.loss, 0, 1)


def build(config: Config) -> "Shortlist":
    return Shortlist(config)


class Shortlist:
    def __init__(self, config: Config) -> None:
        self._config = config

    def draw(self, recipe: Recipe, opening: Opening, by: str, progress: Progress | None = None) -> Comparison:
        position = _find_reranker(recipe)
        metric = choose_metric(recipe, self._config.metric)
        count_candidates(self._config.steps, 1)  # what cannot be read is refused before the images are encoded
        with opening() as bench:
            images = len(bench.collection)
            counts = count_candidates(self._config.steps or SHARES, images)
            pipeline = bench.collection.pipeline
            ways = [see_candidates(recipe, pipeline, position, count) for count in counts]
            results = measure(bench, ways, by, progress)
        return _compare(recipe, results, counts, images, metric, self._config.loss)


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
                expected="numbers of images or shares of them, with commas between",
                actual=step,
                fix="e.g. --steps 10,50,100 or --steps 5%,10%",
            )
        counts.add(min(max(round(value), 1), images))
    return sorted(counts)


def see_candidates(recipe: Recipe, pipeline: Pipeline, position: int, count: int) -> Way:
    """The same search, with so many candidates for the reranker at `position`."""
    choice = recipe.rerankers[position]
    chosen = replace(choice, settings={**choice.settings, "candidates": count})
    reranker = rerankers.build(chosen.name, **chosen.settings)
    before, after = slice(0, position), slice(position + 1, None)
    return Way(
        replace(recipe, rerankers=(*recipe.rerankers[before], chosen, *recipe.rerankers[after])),
        replace(pipeline, rerankers=(*pipeline.rerankers[before], reranker, *pipeline.rerankers[after])),
    )


def _find_reranker(recipe: Recipe) -> int:
    names = [choice.name for choice in recipe.rerankers]
    if RERANKER not in names:
        raise RecipeError(
            f"the recipe {recipe.name!r} has no second stage to draw this curve of",
            expected=f"a single-vector shortlist and the reranker {RERANKER!r}",
            actual=f"rerankers {', '.join(names) or 'none'}",
            fix="e.g. gardens_point_two_stages; docs/evaluation.md shows how such a recipe is written",
        )
    return names.index(RERANKER)


def _compare(
    recipe: Recipe, results: list[RunResult], counts: list[int], images: int, metric: str, loss: float
) -> Comparison:
    rows = tuple(
        Row(f"{count:,}", {"of the images": Fact(count / images, f"{100 * count / images:.3g} %")}, result)
        for count, result in zip(counts, results, strict=True)
    )
    values = [average(result, metric) for result in results]
    chosen = choose_cheapest(values, counts, values[-1], loss)
    return Comparison(
        title=f"{recipe.name}: {results[-1].dataset}, {images:,} images, quality and time against the candidates S",
        heading="S",
        rows=rows,
        reference=len(rows) - 1,
        metric=metric,
        cells="share",
        notes=(f"S: images of the shortlist that are scored again by their tokens; the last row is all {images:,}",),
        answer=_answer(results, counts, images, metric, loss, chosen),
        chosen=chosen,
        charts=_draw(results, counts, metric, loss, chosen),
        settings={"curve": "shortlist", "loss": loss},
        reference_name="all images",
    )


def _answer(
    results: list[RunResult], counts: list[int], images: int, metric: str, loss: float, chosen: int | None
) -> str:
    if chosen is None:
        return f"No S was measured that loses at most {say_share(loss)} of the exhaustive {metric}."
    value, whole = average(results[chosen], metric), average(results[-1], metric)
    kept = f" ({say_share(value / whole)})" if whole > 0 else ""
    times = [say_milliseconds(median_seconds(results[number])) for number in (chosen, -1)]
    return (
        f"The smallest S that loses at most {say_share(loss)} of the exhaustive {metric} is {counts[chosen]:,} of "
        f"{images:,} images: {value:.4f} of {whole:.4f}{kept}, {times[0]} ms a query in place of {times[1]}."
    )


def _draw(
    results: list[RunResult], counts: list[int], metric: str, loss: float, chosen: int | None
) -> tuple[Chart, ...]:
    places = tuple(math.log10(count) for count in counts)
    ticks = tuple(f"{count:,}" for count in counts)
    names = results[0].metrics
    quality = tuple(Line(name, tuple(average(result, name) for result in results)) for name in names)
    times = Line("search", tuple(1000 * median_seconds(result) for result in results))
    floor = (1 - loss) * average(results[-1], metric)
    return (
        Chart(
            "Quality",
            "S, logarithmic",
            places,
            ticks,
            quality,
            chosen,
            (floor, f"{say_share(1 - loss, 0)} of {metric}"),
        ),
        Chart("Milliseconds a query", "S, logarithmic", places, ticks, (times,), chosen, from_zero=True),
    )

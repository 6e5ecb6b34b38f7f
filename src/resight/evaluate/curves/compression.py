"""Smaller tokens: what do fewer bytes lose?

In: a recipe with the index `maxsim`. Out: for each kind of code its measured size, its loss against fp32 and the time
of the search. All answers come from the codes alone, none is corrected by kept tokens: the loss is that of the codes.
`steps` are fp32, fp16, int8, or product quantisation as pqMxB: M parts of B bits (B = 4 or 8). Without them:
PQ of d/2 and d/4 parts of 4 bits and of d/4 and d/8 parts of 8 bits too, where these divide d. fp32 is always measured.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from resight.collection import Collection
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
from resight.types import Choice, Recipe

INDEX = "maxsim"
FULL = "fp32"
PARTS = ((2, 4), (4, 8), (4, 4), (8, 8))  # dimensions a part, bits
TRAINING = ("train_images", "train_on", "seed")  # settings of the index that only PQ takes notice of


@dataclass(frozen=True)
class Config:
    steps: tuple[str, ...] = ()
    loss: float = 0.01
    metric: str = ""

    def __post_init__(self) -> None:
        check_range("loss", self.loss, 0, 1)


def build(config: Config) -> "Compression":
    return Compression(config)


class Sized(Protocol):
    """What the searchers of the index `maxsim` can tell."""

    @property
    def bytes_per_image(self) -> float: ...


@dataclass(frozen=True)
class Size:
    """Of the codes, per image of the database."""

    image: float  # bytes
    tokens: float

    @property
    def token(self) -> float:
        return self.image / self.tokens if self.tokens else 0.0


class Compression:
    def __init__(self, config: Config) -> None:
        self._config = config

    def draw(self, recipe: Recipe, opening: Opening, by: str, progress: Progress | None = None) -> Comparison:
        branch = find_branch(recipe)
        metric = choose_metric(recipe, self._config.metric)
        for step in self._config.steps:
            read_step(step)  # what cannot be read is refused before the images are encoded
        with opening() as bench:
            tokens, dimensions = count_tokens(bench.collection, branch)
            steps = [FULL, *(step for step in self._config.steps or list_steps(dimensions) if step != FULL)]
            ways, sizes = [], []
            for step in steps:
                chosen = choose_codes(recipe, branch, read_step(step))
                view = bench.view(chosen)
                sizes.append(Size(cast(Sized, view.searcher(branch, whole=True)).bytes_per_image, tokens))
                ways.append(Way(chosen, view.pipeline))
            results = measure(bench, ways, by, progress)
        order = sorted(range(len(steps)), key=lambda number: -sizes[number].image)
        rows = [(steps[number], sizes[number], results[number]) for number in order]
        return _compare(recipe, branch, rows, metric, self._config.loss)


def list_steps(dimensions: int) -> list[str]:
    """The codes that are compared by default, for tokens of so many dimensions."""
    pq = [f"pq{dimensions // width}x{bits}" for width, bits in PARTS if dimensions % width == 0]
    return [FULL, "fp16", "int8", *pq]


def read_step(step: str) -> dict[str, Any]:
    """ "pq52x8" → the settings of the index."""
    if step in (FULL, "fp16", "int8"):
        return {"kind": step}
    parts = re.fullmatch(r"pq([1-9][0-9]*)x([48])", step)
    if parts is None:
        raise InputError(
            f"{step!r} is no kind of code",
            expected="fp32, fp16, int8, or pqMxB with M parts of B = 4 or 8 bits",
            actual=step,
            fix="e.g. --steps int8,pq48x8",
        )
    return {"kind": "pq", "m": int(parts[1]), "bits": int(parts[2])}


def find_branch(recipe: Recipe) -> int:
    """The branch whose tokens are compressed: the only one that the index `maxsim` searches."""
    found = [
        number
        for number, branch in enumerate(recipe.branches)
        if branch.weight > 0 and (branch.index or recipe.index).name == INDEX
    ]
    if len(found) != 1:
        raise RecipeError(
            f"the recipe {recipe.name!r} has no tokens to draw this curve of",
            expected=f"one branch with a weight and the index {INDEX!r}",
            actual=f"{len(found)} of {len(recipe.branches)} branches",
            fix='e.g. gardens_point_tokens, or --set index=maxsim with a descriptor such as "aggregated"',
        )
    return found[0]


def choose_codes(recipe: Recipe, branch: int, codes: dict[str, Any]) -> Recipe:
    """The recipe with other codes for the tokens of a branch, its answers taken from them alone."""
    given = (recipe.branches[branch].index or recipe.index).settings
    trained = {key: value for key, value in given.items() if key in TRAINING and codes["kind"] == "pq"}
    index = Choice(INDEX, {**codes, **trained, "keep": "none", "exact": False})
    branches = [replace(part, index=index) if number == branch else part for number, part in enumerate(recipe.branches)]
    return replace(recipe, branches=tuple(branches))


def count_tokens(collection: Collection, branch: int) -> tuple[float, int]:
    """Tokens an image, and their dimensions."""
    tokens = images = dimensions = 0
    for chunk in collection.descriptors(branch):
        tokens, images, dimensions = tokens + len(chunk), images + len(chunk.ids), chunk.vectors.shape[1]
    return tokens / max(images, 1), dimensions


def _compare(
    recipe: Recipe, branch: int, rows: list[tuple[str, Size, RunResult]], metric: str, loss: float
) -> Comparison:
    full = next(number for number, (step, _, _) in enumerate(rows) if step == FULL)
    results = [result for _, _, result in rows]
    values = [average(result, metric) for result in results]
    chosen = choose_cheapest(values, [size.image for _, size, _ in rows], values[full], loss)
    return Comparison(
        title=f"{recipe.name}: {results[full].dataset}, {results[full].database:,} images, quality against bytes",
        heading="codes",
        rows=tuple(Row(step, _facts(size, rows[full][1]), result) for step, size, result in rows),
        reference=full,
        metric=metric,
        cells="loss",
        notes=_notes(recipe, branch, rows[full][1].tokens),
        answer=_answer(rows, full, metric, loss, chosen),
        chosen=chosen,
        charts=_draw(rows, metric, loss, full, chosen),
        settings={"curve": "compression", "loss": loss},
    )


def _facts(size: Size, full: Size) -> dict[str, Fact]:
    saved = full.image / size.image if size.image else 1.0
    return {
        "bytes a token": Fact(size.token, f"{size.token:.1f}"),
        "bytes an image": Fact(size.image, f"{size.image:,.0f}"),
        "smaller": Fact(saved, f"{saved:.1f} ×"),
    }


def _notes(recipe: Recipe, branch: int, tokens: float) -> tuple[str, ...]:
    given = (recipe.branches[branch].index or recipe.index).settings
    trained = {key: given[key] for key in TRAINING if given.get(key)}
    return (
        "bytes: measured on the packed tokens: codes, scales or error bounds, and where each image begins; without "
        f"the centroids of PQ, which all images share; bytes a token are those of an image divided by its {tokens:.4g} "
        "tokens (4-bit PQ fills blocks of 32)",
        "answers come from the codes alone (exact = false)",
        "pqMxB: product quantisation, M parts of B bits, trained on "
        + (", ".join(f"{key} = {value}" for key, value in trained.items()) or "a sample of the database's own tokens"),
    )


def _answer(rows: list[tuple[str, Size, RunResult]], full: int, metric: str, loss: float, chosen: int | None) -> str:
    if chosen is None:
        return f"No code was measured that loses at most {say_share(loss)} of the {metric} of {FULL}."
    step, size, result = rows[chosen]
    value, whole = average(result, metric), average(rows[full][2], metric)
    times = [say_milliseconds(median_seconds(row)) for row in (result, rows[full][2])]
    return (
        f"The smallest codes that lose at most {say_share(loss)} of the {metric} of {FULL} are {step}: {value:.4f} of "
        f"{whole:.4f}, {size.image:,.0f} bytes an image in place of {rows[full][1].image:,.0f}, {times[0]} ms a query "
        f"in place of {times[1]}."
    )


def _draw(
    rows: list[tuple[str, Size, RunResult]], metric: str, loss: float, full: int, chosen: int | None
) -> tuple[Chart, ...]:
    places = tuple(float(number) for number in range(len(rows)))
    ticks = tuple(step for step, _, _ in rows)
    results = [result for _, _, result in rows]
    quality = tuple(Line(name, tuple(average(result, name) for result in results)) for name in results[full].metrics)
    floor = (1 - loss) * average(results[full], metric)
    below = "codes, the largest first"
    return (
        Chart("Quality", below, places, ticks, quality, chosen, (floor, f"{say_share(1 - loss, 0)} of {metric}")),
        Chart(
            "Milliseconds a query",
            below,
            places,
            ticks,
            (Line("search", tuple(1000 * median_seconds(result) for result in results)),),
            chosen,
            from_zero=True,
        ),
    )

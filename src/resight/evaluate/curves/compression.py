"""Quality against the bytes of compressed tokens.

In: a recipe with the index `maxsim`. Out: for each kind of code its measured size, its loss against fp32 and the time
of the search. All answers come from the codes alone, without correction by full tokens: the loss is that of the codes.
`steps` are fp32, fp16, int8, or product quantisation as pqMxB: M parts of B bits (B = 4 or 8). Without them:
PQ of d/2 and d/4 parts of 4 bits and of d/4 and d/8 parts of 8 bits too, where these divide d. fp32 is always measured.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from resight.collection import Collection
from resight.collection.add import Progress
from resight.errors import InputError, RecipeError
from resight.evaluate.evaluation import (
    BYTES,
    TOKEN_BYTES,
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
from resight.types import Choice, Recipe

INDEX = "maxsim"
FULL = "fp32"
PARTS = ((2, 4), (4, 8), (4, 4), (8, 8))  # dimensions a part, bits
TRAINING = ("train_images", "train_on", "seed")  # settings of the index that only PQ takes notice of


@dataclass(frozen=True)
class Config:
    steps: tuple[str, ...] = ()  # codes to compare: fp32, fp16, int8 or pqMxB, M parts of B bits; default: several
    loss: float = 0.01  # largest loss of the metric to accept, as a share of its value at fp32
    metric: str = ""  # metric that decides; empty: the recipe's first

    def __post_init__(self) -> None:
        check_range("loss", self.loss, 0, 1)


def build(config: Config) -> "Compression":
    return Compression(config)


class Sized(Protocol):
    """The size that searchers of the index `maxsim` report."""

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

    def draw(self, recipe: Recipe, prepare: Preparation, by: str, progress: Progress | None = None) -> Evaluation:
        branch = find_branch(recipe)
        metric = choose_metric(recipe, self._config.metric)
        for step in self._config.steps:
            read_step(step)  # refuses unreadable steps before any image is encoded
        with prepare() as encoded:
            tokens, dimensions = count_tokens(encoded.collection, branch)
            steps = [FULL, *(step for step in self._config.steps or list_steps(dimensions) if step != FULL)]
            variants, sizes = [], []
            for step in steps:
                chosen = choose_codes(recipe, branch, read_step(step))
                view = encoded.view(chosen)
                sizes.append(Size(cast(Sized, view.searcher(branch, whole=True)).bytes_per_image, tokens))
                variants.append(SearchVariant(chosen, view.pipeline))
            results = measure(encoded, variants, by, progress)
        order = sorted(range(len(steps)), key=lambda number: -sizes[number].image)
        rows = [Row(steps[n], summarise(results[n]), _list_facts(sizes[n], sizes[0])) for n in order]
        return _evaluate(recipe, branch, rows, tokens, metric, self._config.loss)


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
            f"{step!r} is not a kind of code",
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
            f"the recipe {recipe.name!r} has no tokens for this curve",
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


def _evaluate(recipe: Recipe, branch: int, rows: Sequence[Row], tokens: float, metric: str, loss: float) -> Evaluation:
    full = next(number for number, row in enumerate(rows) if row.label == FULL)
    values = [row.summary.figures[metric].mean for row in rows]
    chosen = choose_cheapest(values, [row.facts[BYTES].value for row in rows], values[full], loss)
    first = rows[full].summary
    return Evaluation(
        title=f"{recipe.name}: {first.dataset}, {first.database:,} images, quality against bytes",
        heading="codes",
        rows=tuple(rows),
        reference=full,
        metric=metric,
        cells="loss",
        notes=_list_notes(recipe, branch, tokens),
        answer=_answer(rows, full, metric, loss, chosen),
        chosen=chosen,
        charts=_draw(rows, metric, loss, full, chosen),
        settings={"curve": "compression", "loss": loss},
    )


def _list_facts(size: Size, full: Size) -> dict[str, Fact]:
    saved = full.image / size.image if size.image else 1.0
    return {
        TOKEN_BYTES: Fact(size.token, f"{size.token:.1f}"),
        BYTES: Fact(size.image, f"{size.image:,.0f}"),
        "smaller": Fact(saved, f"{saved:.1f} ×"),
    }


def _list_notes(recipe: Recipe, branch: int, tokens: float) -> tuple[str, ...]:
    given = (recipe.branches[branch].index or recipe.index).settings
    trained = {key: given[key] for key in TRAINING if given.get(key)}
    return (
        "bytes: measured on the packed tokens: codes, scales or error bounds, and the offset of each image; without "
        "the centroids of PQ, which all images share; bytes per token are those of an image divided by its "
        f"{tokens:.4g} tokens (4-bit PQ fills blocks of 32)",
        "answers come from the codes alone (exact = false)",
        "pqMxB: product quantisation, M parts of B bits, trained on "
        + (", ".join(f"{key} = {value}" for key, value in trained.items()) or "a sample of the database's own tokens"),
    )


def _answer(rows: Sequence[Row], full: int, metric: str, loss: float, chosen: int | None) -> str:
    if chosen is None:
        return f"No code was measured that loses at most {format_share(loss)} of the {metric} of {FULL}."
    pair = rows[chosen], rows[full]
    value, whole = (row.summary.figures[metric].mean for row in pair)
    size, full_size = (row.facts[BYTES].text for row in pair)
    times = [format_milliseconds(row.median_seconds) for row in pair]
    return (
        f"The smallest codes that lose at most {format_share(loss)} of the {metric} of {FULL} are "
        f"{rows[chosen].label}: {value:.4f} of {whole:.4f}, {size} bytes per image instead of {full_size}, "
        f"{times[0]} ms per query instead of {times[1]}."
    )


def _draw(rows: Sequence[Row], metric: str, loss: float, full: int, chosen: int | None) -> tuple[Chart, ...]:
    positions = tuple(float(number) for number in range(len(rows)))
    ticks = tuple(row.label for row in rows)
    figures = [row.summary.figures for row in rows]
    quality = tuple(Line(name, tuple(part[name].mean for part in figures)) for name in figures[full])
    times = Line("search", tuple(1000 * row.median_seconds for row in rows))
    floor = (1 - loss) * figures[full][metric].mean
    label = "codes, the largest first"
    return (
        Chart("Quality", label, positions, ticks, quality, chosen, (floor, f"{format_share(1 - loss, 0)} of {metric}")),
        Chart("Milliseconds per query", label, positions, ticks, (times,), chosen, from_zero=True),
    )

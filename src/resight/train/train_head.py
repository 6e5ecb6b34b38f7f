"""Which branch of a recipe a head is for (`find_branch`), and the recipe that applies it (`add_head`).

A better encoder for one's own things: photos of them in, a head over the frozen encoder and a ready recipe out.

1. things, by folders, pairs or votes; split into things to train on, to choose by, and to measure on
2. every image through the frozen encoder, once
3. each kind of head is trained; the best one on the things to choose by is taken
4. what it gains on the things to measure on, with a 95 % interval over things
5. where the gain is sure (found_again.py), the head and a recipe that applies it; where not, the recipe as it was

OUT/recipe.toml     for resight index … --recipe OUT/recipe.toml
OUT/head.safetensors, OUT/head.json     the head and its facts, where it was worth it
OUT/report.json     what was done and measured
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from resight.encode import heads as head_files
from resight.encode.encoder import Encoder
from resight.encode.feature_cache import FeatureCache
from resight.errors import InputError, RecipeError
from resight.files.atomic import write_atomic
from resight.recipe.tables import write_recipe
from resight.train import heads
from resight.train.cached_features import FrozenRows, Progress, choose, encode_things
from resight.train.fit_head import Arrays, Check, Fitted, Settings, fit
from resight.train.head_evaluation import Chance, Gain, Interval, Judge, choose_queries, compare, measure
from resight.train.instances import Split, find_things, split_things
from resight.types import Choice, Recipe, Skipped

VECTORS = ("tokens", "aggregated", "pooled", "vlad")  # descriptors whose rows are vectors of real numbers


def find_branch(recipe: Recipe) -> int:
    """The first branch that has a say and whose rows are vectors."""
    for number, branch in enumerate(recipe.branches):
        if branch.weight > 0 and branch.descriptor.name in VECTORS:
            return number
    raise RecipeError(
        f"the recipe {recipe.name!r} has no vectors that a head could be put over",
        expected="a branch with the descriptor tokens, aggregated, pooled or vlad",
        actual=", ".join(branch.descriptor.name for branch in recipe.branches),
        fix="take another recipe, such as tokens",
    )


def add_head(recipe: Recipe, branch: int, file: Path) -> Recipe:
    """The recipe with the head behind all other transforms of the branch."""
    branches = list(recipe.branches)
    chain = (*branches[branch].transforms, Choice("head", {"file": str(file.absolute())}))
    branches[branch] = replace(branches[branch], transforms=chain)
    return replace(recipe, name=f"{recipe.name} with a head", branches=tuple(branches))


HEADS = (Choice("linear"), Choice("mlp"))
LEAST_THINGS = 24  # a quarter of them is measured on
LEAST_MEASURED = 6  # with fewer, no gain can be sure: 1 / 2^5 is above DOUBT
CHOOSING = 100  # queries that a check asks
MEASURING = 500  # queries that the final figures rest on
LOOKED_AT = 100_000  # rows that the principal directions come from
HEAD, RECIPE, REPORT = "head.safetensors", "recipe.toml", "report.json"


@dataclass(frozen=True)
class Tried:
    head: Choice
    score: float  # mean AP on the things to choose by
    checks: tuple[Check, ...]
    ended: str


@dataclass(frozen=True)
class Report:
    kept: bool  # whether the head is used; False: the recipe is the frozen one
    verdict: str  # one sentence
    recipe: Path
    head: Path | None
    things: tuple[int, int, int]  # to train on, to choose by, to measure on
    images: int
    single: int  # things with one image, left out
    loose: int  # images that lie in no folder, left out
    contradictions: tuple[tuple[str, str], ...]  # pairs called different that other pairs join
    skipped: tuple[Skipped, ...]
    ap: Gain | None  # None: nothing was trained
    recall: Gain | None  # at 1
    tried: tuple[Tried, ...]
    encoding_seconds: float
    training_seconds: float


def train_folder(
    source: Path,
    out: Path,
    recipe: Recipe,
    *,
    judge: Judge,
    interval: Interval,
    chance: Chance,
    pairs: Path | None = None,
    branch: int | None = None,
    choices: Sequence[Choice] = HEADS,
    settings: Settings | None = None,
    seed: int = 0,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
    tell: Callable[[Choice, Check], None] = lambda *_: None,
) -> Report:
    """Train heads for one branch of the recipe (None: the first whose rows are vectors) on the things in `source`.

    `judge`, `interval` and `chance` are `judge`, `paired_interval` and `randomisation_test` of `evaluate`; `tell` hears
    every check. The time of the settings is shared by the choices.
    """
    settings = settings or Settings()
    found = find_things(source, pairs)
    if not found.known:
        raise InputError(
            f"no thing in {source} has two images",
            expected="one folder a thing with two images or more in each, or --pairs",
            actual=f"{found.single} things with one image, {found.loose} images in no folder",
            fix="put the photos of each thing in a folder of its own",
        )
    generator = np.random.default_rng(seed)
    split = split_things(found.known, generator)
    branch = find_branch(recipe) if branch is None else branch
    started = time.monotonic()
    encoder = Encoder([recipe.branches[branch]], cache)
    rows, unread = encode_things([*split.train, *split.validation, *split.test], encoder, 0, progress)
    encoded = time.monotonic()
    parts = _divide(rows, split)
    sizes = tuple(len(part.group()) for part in parts)
    report = Report(
        kept=False,
        verdict=f"too few things to learn from: {sum(sizes)}, and {LEAST_THINGS} are needed. The encoder stays frozen.",
        recipe=out / RECIPE,
        head=None,
        things=(sizes[0], sizes[1], sizes[2]),
        images=len(rows),
        single=found.single,
        loose=found.loose,
        contradictions=found.contradictions,
        skipped=(*found.skipped, *unread),
        ap=None,
        recall=None,
        tried=(),
        encoding_seconds=encoded - started,
        training_seconds=0.0,
    )
    if sum(sizes) < LEAST_THINGS or min(sizes) < 2 or sizes[2] < LEAST_MEASURED:
        return _keep_frozen(report, recipe, out)
    shared = replace(settings, minutes=settings.minutes / len(choices))
    fitted = [_fit(choice, parts, shared, seed, judge, partial(tell, choice)) for choice in choices]
    tried = tuple(Tried(choice, one.score, one.checks, one.ended) for choice, one in zip(choices, fitted, strict=True))
    best = max(range(len(fitted)), key=lambda number: fitted[number].score)
    seconds = time.monotonic() - encoded
    facts = head_files.Facts(encoder.spaces[0], choices[best].name, sizes[0], len(parts[0]), seconds)
    head = head_files.make(fitted[best].arrays, facts)
    ap, recall = _measure_gain(parts[2], head, judge, partial(compare, interval=interval, chance=chance), generator)
    report = replace(
        report, kept=ap.is_sure, verdict=_word(ap), ap=ap, recall=recall, tried=tried, training_seconds=seconds
    )
    if not report.kept:
        return _keep_frozen(report, recipe, out)
    head = replace(head, facts=replace(facts, gain=ap.difference, low=ap.low, high=ap.high))
    return _keep_head(report, head, recipe, branch, out)


def _divide(rows: FrozenRows, split: Split) -> tuple[FrozenRows, FrozenRows, FrozenRows]:
    ends = np.cumsum([len(split.train), len(split.validation), len(split.test)]).tolist()
    first, second, third = (choose(rows, range(*limits)) for limits in zip([0, *ends[:2]], ends, strict=True))
    return first, second, third


def _fit(
    choice: Choice,
    parts: tuple[FrozenRows, FrozenRows, FrozenRows],
    settings: Settings,
    seed: int,
    judge: Judge,
    tell: Callable[[Check], None],
) -> Fitted:
    """Every choice sees the same batches and is asked the same queries."""
    generator = np.random.default_rng(seed)
    train, validation, _ = parts
    queries = choose_queries(validation, CHOOSING, generator)
    head = heads.build(choice.name, train.sample(LOOKED_AT, generator), seed, **choice.settings)

    def validate(arrays: Arrays) -> float:
        candidate = head_files.make(arrays, head_files.Facts("", choice.name, 0, 0))
        return float(measure(validation, candidate, queries, judge)["ap"].mean())

    return fit(head, train, validate, settings, generator, tell)


def _measure_gain(
    test: FrozenRows, head: head_files.Head, judge: Judge, compared: Callable[..., Gain], generator: np.random.Generator
) -> tuple[Gain, Gain]:
    queries = choose_queries(test, MEASURING, generator)
    before, after = measure(test, None, queries, judge), measure(test, head, queries, judge)
    things = test.labels[queries]
    ap, recall = (compared(before[name], after[name], things, generator=generator) for name in ("ap", "recall@1"))
    return ap, recall


def _word(ap: Gain) -> str:
    figures = (
        f"AP {ap.before:.3f} → {ap.after:.3f}, {ap.difference:+.3f} "
        f"(95 % interval {ap.low:+.3f} to {ap.high:+.3f}, by chance {100 * ap.chance:.1f} %) "
        f"on {ap.things} things that it has not seen"
    )
    return f"{figures}." if ap.is_sure else f"No gain beyond doubt: {figures}. The encoder stays frozen."


def _keep_frozen(report: Report, recipe: Recipe, out: Path) -> Report:
    for name in (HEAD, "head.json"):
        (out / name).unlink(missing_ok=True)  # of an earlier training, which this one has replaced
    write_recipe(recipe, out / RECIPE, report.verdict)
    _write_json(asdict(report), out / REPORT)
    return report


def _keep_head(report: Report, head: head_files.Head, recipe: Recipe, branch: int, out: Path) -> Report:
    head_files.save(head, out / HEAD)
    _write_json({"fingerprint": head.fingerprint, **asdict(head.facts)}, out / "head.json")
    write_recipe(add_head(recipe, branch, out / HEAD), out / RECIPE, report.verdict)
    report = replace(report, head=out / HEAD)
    _write_json(asdict(report), out / REPORT)
    return report


def _write_json(table: object, path: Path) -> None:
    with write_atomic(path) as temporary:
        temporary.write_text(json.dumps(table, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")

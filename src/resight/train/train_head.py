"""Train a light head over a frozen encoder on your own photos (`train_head`): photos in, a ready recipe out.

1. Find instances by folders, pairs or votes; split them into training, validation and test.
2. Encode every image once with the frozen encoder.
3. Train each kind of head; choose the best one on the validation instances.
4. Measure its gain on the test instances, with a 95 % interval over instances.
5. If the gain is significant (head_evaluation.py), write the head and a recipe that applies it; if not, the recipe as
   it was.

OUT/recipe.toml                         for resight index … --recipe OUT/recipe.toml
OUT/head.safetensors, OUT/head.json     the head and its facts, if its gain is significant
OUT/report.json                         what was done and measured
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
from resight.train.cached_features import CachedFeatures, Progress, choose, encode_instances
from resight.train.fit_head import Arrays, Check, Fitted, Settings, fit
from resight.train.head_evaluation import Chance, Gain, Interval, Judge, choose_queries, compare, measure
from resight.train.instances import Split, find_instances, split_instances
from resight.types import Choice, Recipe, Skipped

HEADS = (Choice("linear"), Choice("mlp"))
VECTORS = ("tokens", "aggregated", "pooled", "vlad")  # descriptors whose rows are vectors of real numbers
LEAST_INSTANCES = 24  # a quarter of them is for the test
LEAST_TESTED = 6  # with fewer, no gain is significant: 1 / 2^5 is above SIGNIFICANCE
VALIDATION_QUERIES = 100  # per check
TEST_QUERIES = 500
SAMPLED_ROWS = 100_000  # for the principal directions
HEAD, RECIPE, REPORT = "head.safetensors", "recipe.toml", "report.json"


@dataclass(frozen=True)
class Tried:
    head: Choice
    score: float  # mean AP on the validation instances
    checks: tuple[Check, ...]
    ended: str


@dataclass(frozen=True)
class Report:
    kept: bool  # whether the head is used; False: the recipe is as before
    verdict: str  # one sentence
    recipe: Path
    head: Path | None
    things: tuple[int, int, int]  # instances in training, validation and test
    images: int
    single: int  # instances with one image, left out
    loose: int  # images outside any folder, left out
    contradictions: tuple[tuple[str, str], ...]  # pairs marked different that other pairs join
    skipped: tuple[Skipped, ...]
    ap: Gain | None  # None: nothing was trained
    recall: Gain | None  # at 1
    tried: tuple[Tried, ...]
    encoding_seconds: float
    training_seconds: float


def train_head(
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
    on_check: Callable[[Choice, Check], None] = lambda *_: None,
) -> Report:
    """Train heads for one branch of the recipe (None: the first whose rows are vectors) on the instances in `source`.

    `judge`, `interval` and `chance` are `judge`, `paired_interval` and `randomisation_test` of `evaluate`; `on_check`
    is called after every check. The choices share the time of the settings.
    """
    settings = settings or Settings()
    found = find_instances(source, pairs)
    if not found.known:
        raise InputError(
            f"no object in {source} has two images",
            expected="one folder per object with two images or more in each, or --pairs",
            actual=f"{found.single} objects with one image, {found.loose} images in no folder",
            fix="put the photos of each object in a folder of its own",
        )
    generator = np.random.default_rng(seed)
    split = split_instances(found.known, generator)
    branch = find_branch(recipe) if branch is None else branch
    started = time.monotonic()
    encoder = Encoder([recipe.branches[branch]], cache)
    rows, unread = encode_instances([*split.train, *split.validation, *split.test], encoder, 0, progress)
    encoded = time.monotonic()
    parts = _divide(rows, split)
    sizes = tuple(len(part.group()) for part in parts)
    report = Report(
        kept=False,
        verdict=f"Too few objects to learn from: {sum(sizes)} of {LEAST_INSTANCES}; the original encoder is kept.",
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
    if sum(sizes) < LEAST_INSTANCES or min(sizes) < 2 or sizes[2] < LEAST_TESTED:
        return _write_frozen(report, recipe, out)
    shared = replace(settings, minutes=settings.minutes / len(choices))
    fitted = [_fit(choice, parts, shared, seed, judge, partial(on_check, choice)) for choice in choices]
    tried = tuple(Tried(choice, one.score, one.checks, one.ended) for choice, one in zip(choices, fitted, strict=True))
    best = max(range(len(fitted)), key=lambda number: fitted[number].score)
    seconds = time.monotonic() - encoded
    facts = head_files.Facts(encoder.spaces[0], choices[best].name, sizes[0], len(parts[0]), seconds)
    head = head_files.make(fitted[best].arrays, facts)
    ap, recall = _measure_gain(parts[2], head, judge, partial(compare, interval=interval, chance=chance), generator)
    report = replace(
        report,
        kept=ap.is_sure,
        verdict=_format_verdict(ap),
        ap=ap,
        recall=recall,
        tried=tried,
        training_seconds=seconds,
    )
    if not report.kept:
        return _write_frozen(report, recipe, out)
    head = replace(head, facts=replace(facts, gain=ap.difference, low=ap.low, high=ap.high))
    return _write_head(report, head, recipe, branch, out)


def find_branch(recipe: Recipe) -> int:
    """The first branch with a weight above 0 whose rows are vectors."""
    for number, branch in enumerate(recipe.branches):
        if branch.weight > 0 and branch.descriptor.name in VECTORS:
            return number
    raise RecipeError(
        f"the recipe {recipe.name!r} has no vectors for a head",
        expected="a branch with the descriptor tokens, aggregated, pooled or vlad",
        actual=", ".join(branch.descriptor.name for branch in recipe.branches),
        fix="use another recipe, such as tokens",
    )


def add_head(recipe: Recipe, branch: int, file: Path) -> Recipe:
    """The recipe with the head after all other transforms of the branch."""
    branches = list(recipe.branches)
    chain = (*branches[branch].transforms, Choice("head", {"file": str(file.absolute())}))
    branches[branch] = replace(branches[branch], transforms=chain)
    return replace(recipe, name=f"{recipe.name} with a head", branches=tuple(branches))


def _divide(rows: CachedFeatures, split: Split) -> tuple[CachedFeatures, CachedFeatures, CachedFeatures]:
    ends = np.cumsum([len(split.train), len(split.validation), len(split.test)]).tolist()
    first, second, third = (choose(rows, range(*limits)) for limits in zip([0, *ends[:2]], ends, strict=True))
    return first, second, third


def _fit(
    choice: Choice,
    parts: tuple[CachedFeatures, CachedFeatures, CachedFeatures],
    settings: Settings,
    seed: int,
    judge: Judge,
    on_check: Callable[[Check], None],
) -> Fitted:
    """Every choice gets the same batches and the same validation queries."""
    generator = np.random.default_rng(seed)
    train, validation, _ = parts
    queries = choose_queries(validation, VALIDATION_QUERIES, generator)
    head = heads.build(choice.name, train.sample(SAMPLED_ROWS, generator), seed, **choice.settings)

    def validate(arrays: Arrays) -> float:
        candidate = head_files.make(arrays, head_files.Facts("", choice.name, 0, 0))
        return float(measure(validation, candidate, queries, judge)["ap"].mean())

    return fit(head, train, validate, settings, generator, on_check)


def _measure_gain(
    test: CachedFeatures,
    head: head_files.Head,
    judge: Judge,
    compared: Callable[..., Gain],
    generator: np.random.Generator,
) -> tuple[Gain, Gain]:
    queries = choose_queries(test, TEST_QUERIES, generator)
    before, after = measure(test, None, queries, judge), measure(test, head, queries, judge)
    instances = test.labels[queries]
    ap, recall = (compared(before[name], after[name], instances, generator=generator) for name in ("ap", "recall@1"))
    return ap, recall


def _format_verdict(ap: Gain) -> str:
    figures = (
        f"AP {ap.before:.3f} → {ap.after:.3f}, {ap.difference:+.3f} "
        f"(95 % interval {ap.low:+.3f} to {ap.high:+.3f}, p = {ap.chance:.3f}) "
        f"on {ap.things} unseen objects"
    )
    return f"{figures}." if ap.is_sure else f"No significant gain; the original encoder is kept. {figures}."


def _write_frozen(report: Report, recipe: Recipe, out: Path) -> Report:
    for name in (HEAD, "head.json"):
        (out / name).unlink(missing_ok=True)  # of an earlier training, which this one replaces
    write_recipe(recipe, out / RECIPE, report.verdict)
    _write_json(asdict(report), out / REPORT)
    return report


def _write_head(report: Report, head: head_files.Head, recipe: Recipe, branch: int, out: Path) -> Report:
    head_files.save(head, out / HEAD)
    _write_json({"fingerprint": head.fingerprint, **asdict(head.facts)}, out / "head.json")
    write_recipe(add_head(recipe, branch, out / HEAD), out / RECIPE, report.verdict)
    report = replace(report, head=out / HEAD)
    _write_json(asdict(report), out / REPORT)
    return report


def _write_json(table: object, path: Path) -> None:
    with write_atomic(path) as temporary:
        temporary.write_text(json.dumps(table, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")

"""`resight.evaluate(...)`: measure recipes, a collection or a run on known truth. `resight eval` calls it too.

In: recipes (files, shipped names or Recipes) and the folder of their data set; or a Collection or a run of any system,
and the truth. Out: an Evaluation: one row for a recipe or a collection, a row per recipe if there are several, or a row
per step of a curve or of a brightness sweep. Of a run: a JudgedRun. With `encoders`, recipes give the data and the
metrics, and the encoders' recipes define encoding and search.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from resight import recipe as recipe_files
from resight.collection import Collection
from resight.collection.add import Progress
from resight.data.set_source import parse_source
from resight.encode.feature_cache import FeatureCache
from resight.errors import InputError
from resight.evaluate import curves
from resight.evaluate.brightness import check_factors, sweep_brightness
from resight.evaluate.distances import tabulate_distances
from resight.evaluate.evaluate_collection import measure_collection
from resight.evaluate.evaluation import Evaluation, choose_metric, single_row
from resight.evaluate.given_runs import METRICS, find_dataset, is_run, judge
from resight.evaluate.judge_runs import JudgedRun
from resight.evaluate.measure import Extras, load_dataset, measure_recipe, prepare
from resight.evaluate.strata import read_split
from resight.evaluate.summary import summarise
from resight.evaluate.trec import RunRecorder
from resight.evaluate.variants import measure_variants
from resight.progress import follow
from resight.types import Choice, Dataset, Recipe

NAMED = 3  # recipes named in a title
Source = str | Path | Recipe


@overload
def evaluate(
    recipes: "Source | Collection | Sequence[Source]",
    data: Any,
    *,
    encoders: Sequence[str] = (),
    overrides: Sequence[str] = (),
    metrics: Sequence[str] = (),
    metric: str = "",
    keep: Path | None = None,
    cache: FeatureCache | None = None,
    by: str = "set",
    split: Path | Mapping[str, str] | None = None,
    strata: Sequence[str] = (),
    bins: int = 5,
    map: bool = False,
    distances: bool = False,
    curve: str | None = None,
    steps: Sequence[str] = (),
    loss: float | None = None,
    brightness: Sequence[float] | None = None,
    run_file: Path | None = None,
    progress: Progress | bool | None = True,
    report: Callable[[str], None] | None = None,
) -> Evaluation: ...


@overload
def evaluate(recipes: Mapping[str, Any], data: Any, *, metrics: Sequence[str] = ()) -> JudgedRun: ...


def evaluate(
    recipes: Any,
    data: Any,
    *,
    encoders: Sequence[str] = (),
    overrides: Sequence[str] = (),
    metrics: Sequence[str] = (),
    metric: str = "",
    keep: Path | None = None,
    cache: FeatureCache | None = None,
    by: str = "set",
    split: Path | Mapping[str, str] | None = None,
    strata: Sequence[str] = (),
    bins: int = 5,
    map: bool = False,
    distances: bool = False,
    curve: str | None = None,
    steps: Sequence[str] = (),
    loss: float | None = None,
    brightness: Sequence[float] | None = None,
    run_file: Path | None = None,
    progress: Progress | bool | None = True,
    report: Callable[[str], None] | None = None,
) -> Any:
    """Measure recipes, a collection or a run on data with ground truth.

    Args:
        recipes: Names of shipped recipes, TOML files or Recipes; one, or several to compare. Or a Collection, which is
            searched as it is; or a run of any system, as `resight.judge` takes it.
        data: The folder or manifest of the data set that the recipes name. For a collection or a run, any truth that
            `resight.judge` takes: {query: ids}, a data frame, a manifest, a data set …
        encoders: Encode and search as these recipes do; `recipes` then give the data and the metrics.
        overrides: Changes of the recipes' settings, as "key=value".
        metrics: The metrics to measure; default: those of the recipe, else ap, recall@1, recall@10, precision@10.
        metric: The metric of differences, and of what may be lost; default: the first.
        keep: A folder for the collection, so that a second run starts from it.
        cache: Reuse features in this cache.
        by: An attribute of the queries; each of its values gets figures of its own.
        split: The values to use instead of `by`: a CSV file (id, split), or a mapping.
        strata: Break figures down by these properties of the positives: size, centre, brightness, clutter, or any
            attribute.
        bins: The number of bins of a numeric property.
        map: Also lay out the images on a plane.
        distances: Also tabulate distances in metres.
        curve: Measure one recipe at each step of this curve: "shortlist" or "compression".
        steps: The steps of the curve; default: its own.
        loss: The share of the metric that may be lost; the curve names the cheapest step within it.
        brightness: Measure every recipe with the L of every image multiplied by each of these factors.
        run_file: Write the rankings as a TREC run file; for several recipes, a folder of such files.
        progress: True: a bar in a notebook; False: none. Or a function, called with the images done and in all.
        report: Called with the name of each recipe or step before it is measured.

    Returns:
        One row per recipe or step, with figures, intervals and differences. Of a run: its figures.

    Raises:
        RecipeError: A recipe, a setting or a metric is unknown or invalid.
        ManifestError: The data set breaks its format.
        InputError: Options contradict each other.

    Examples:
        >>> import resight
        >>> evaluation = resight.evaluate("sift", "truth.csv", metrics=["recall@1", "ap"])
        >>> {name: figure.mean for name, figure in evaluation.rows[0].summary.figures.items()}
        {'recall@1': 1.0, 'ap': 1.0}
        >>> photos = resight.open("photos.resight")
        >>> found = resight.evaluate(photos, {"query.jpg": ["eiffel-2.png"]}, metrics=["ap"])
        >>> found.rows[0].summary.figures["ap"].mean
        1.0
        >>> run = {"q1": ["b", "a"]}
        >>> resight.evaluate(run, {"q1": ["a"]}, metrics=["ap"]).figures["ap"].value
        0.5
    """
    if is_run(recipes):
        options: dict[str, object] = {"encoders": encoders, "overrides": overrides, "metric": metric, "keep": keep}
        options |= {"cache": cache, "by": by if by != "set" else "", "split": split, "strata": strata, "map": map}
        options |= {"distances": distances, "curve": curve, "brightness": brightness, "run_file": run_file}
        _refuse_options("a run", "metrics", options)
        return judge(recipes, data, metrics or METRICS)
    recorder = RunRecorder() if run_file else None
    parts = read_split(split) if isinstance(split, Path) else split
    extras = Extras(tuple(strata), bins, map, recorder.add if recorder else None, parts)
    with follow(progress, "evaluating") as shown:
        common = _Common(tuple(metrics), metric, keep, cache, by, shown, report, extras)
        if isinstance(recipes, Collection):
            options = {"encoders": encoders, "overrides": overrides, "keep": keep, "curve": curve}
            options |= {"brightness": brightness, "distances": distances}
            _refuse_options("a collection", "metrics, by, split, strata, bins, map or run_file", options)
            result = measure_collection(recipes, data, metrics=metrics, by=by, progress=shown, extras=extras)
            evaluation, dataset = single_row(summarise(result), recipes.path.name), None
        else:
            sources = [recipes] if isinstance(recipes, (str, Path, Recipe)) else list(recipes)
            _check_options(curve, keep, steps, loss, strata, split, brightness)
            if brightness is not None:
                check_factors(brightness)
            if curve is not None:
                drawn = curves.build(curve, steps=steps, loss=loss, metric=metric)
                (recipe,), dataset = _load_data([_load_one(sources, encoders, overrides)], data, common)
                evaluation = _draw_curve(drawn, recipe, dataset, common)
            else:
                found, dataset = _load_data(_load_all(sources, encoders, overrides), data, common)
                name = _make_name(sources, encoders)
                if brightness is None:
                    evaluation = _measure(found, dataset, name, common)
                else:
                    evaluation = _sweep(found, dataset, brightness, name, common)
    if distances and dataset is not None:
        evaluation = replace(evaluation, more_tables=(tabulate_distances(dataset, evaluation.rows),))
    if recorder and run_file:
        evaluation = replace(evaluation, run_files=recorder.write(Path(run_file)))
    return evaluation


@dataclass(frozen=True)
class _Common:
    """Options of every kind of evaluation."""

    metrics: tuple[str, ...]
    metric: str
    keep: Path | None
    cache: FeatureCache | None
    by: str
    progress: Progress | None
    report: Callable[[str], None] | None
    extras: Extras


def _measure(found: Sequence[Recipe], dataset: Dataset, name: str, common: _Common) -> Evaluation:
    if len(found) > 1:
        return measure_variants(
            found,
            dataset,
            name=name,
            metric=common.metric,
            keep=common.keep,
            cache=common.cache,
            by=common.by,
            progress=common.progress,
            report=common.report,
            extras=common.extras,
        )
    choose_metric(found[0], common.metric)
    result = measure_recipe(
        found[0],
        dataset,
        keep=common.keep,
        cache=common.cache,
        by=common.by,
        progress=common.progress,
        extras=common.extras,
    )
    return single_row(summarise(result), found[0].name)


def _load_data(found: Sequence[Recipe], data: Any, common: _Common) -> tuple[list[Recipe], Dataset]:
    """The recipes with the metrics and the data that were given, if they name none, and the data set."""
    given = find_dataset(data) if isinstance(data, Dataset) or found[0].data is None else None
    first = found[0].metrics or (METRICS if given else ())
    if given and not isinstance(data, Dataset):
        source = parse_source(str(data))
        found = [replace(one, data=one.data or Choice(source.name if source else "manifest")) for one in found]
    elif given:
        found = [replace(one, data=Choice(given.name)) for one in found]
    chosen = common.metrics or first
    recipes = [replace(one, metrics=chosen if common.metrics else one.metrics or chosen) for one in found]
    return recipes, load_dataset(recipes[0], given or Path(data))


def _draw_curve(curve: curves.Curve, recipe: Recipe, dataset: Dataset, common: _Common) -> Evaluation:
    return curve.draw(
        recipe,
        lambda: prepare(recipe, dataset, keep=common.keep, cache=common.cache, progress=common.progress),
        common.by,
        common.progress,
    )


def _sweep(
    found: Sequence[Recipe], dataset: Dataset, factors: Sequence[float], name: str, common: _Common
) -> Evaluation:
    return sweep_brightness(
        found,
        dataset,
        factors,
        name=name,
        metric=common.metric,
        cache=common.cache,
        by=common.by,
        progress=common.progress,
        report=common.report,
        extras=common.extras,
    )


def _load_all(sources: Sequence[Source], encoders: Sequence[str], overrides: Sequence[str]) -> list[Recipe]:
    loaded = [source for source in sources if isinstance(source, Recipe)]
    if not loaded:
        return recipe_files.load_many([str(source) for source in sources], list(overrides), list(encoders))
    if len(loaded) < len(sources) or encoders or overrides:
        raise InputError(
            "a Recipe cannot be combined with names, encoders or overrides",
            expected="only Recipes, or names and files with encoders and overrides",
            actual=", ".join(str(getattr(source, "name", source)) for source in sources),
            fix="pass the recipe's name or file, or change the Recipe itself",
        )
    return loaded


def _load_one(sources: Sequence[Source], encoders: Sequence[str], overrides: Sequence[str]) -> Recipe:
    if len(sources) > 1 or len(encoders) > 1:
        raise InputError(
            "a curve shows one recipe",
            expected="one RECIPE, and at most one --preset",
            actual=", ".join(str(getattr(source, "name", source)) for source in [*sources, *encoders]),
            fix="draw one curve per recipe",
        )
    if isinstance(sources[0], Recipe):
        return _load_all(sources, encoders, overrides)[0]
    return recipe_files.load(str(sources[0]), list(overrides), *encoders)


def _make_name(sources: Sequence[Source], encoders: Sequence[str]) -> str:
    """A title for many recipes; "" for one, which has a name of its own."""

    def list_names(parts: Sequence[Source]) -> str:
        names = [part.name if isinstance(part, Recipe) else str(part) for part in parts]
        shown = [Path(name).stem if name.endswith(".toml") else name for name in names[:NAMED]]
        return ", ".join([*shown, *([f"{len(names) - NAMED} more"] if len(names) > NAMED else [])])

    if len(encoders) > 1:
        return f"{list_names(sources)} with {list_names(encoders)}"
    return list_names(sources) if len(sources) > 1 else ""


def _refuse_options(subject: str, usable: str, options: Mapping[str, object]) -> None:
    """Refuses options that would have no effect."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(
            f"{', '.join(given)} cannot be given with {subject}",
            expected=usable,
            actual=", ".join(given),
            fix="leave them out, or evaluate a recipe",
        )


def _check_options(
    curve: str | None,
    keep: Path | None,
    steps: Sequence[str],
    loss: float | None,
    strata: Sequence[str],
    split: object,
    brightness: Sequence[float] | None,
) -> None:
    if brightness is not None and (curve is not None or keep is not None):
        raise InputError(
            "--relight changes the images of the data set",
            expected="neither --curve nor --keep with it",
            actual="--curve" if curve is not None else "--keep",
            fix="leave it out",
        )
    if curve is not None and (strata or split is not None):
        raise InputError("a curve has no strata", expected="--curve, --strata or --split", fix="leave out the others")
    if curve is None and (steps or loss is not None):
        raise InputError(
            "--steps and --loss belong to a curve", expected="--curve shortlist or --curve compression", fix="add it"
        )

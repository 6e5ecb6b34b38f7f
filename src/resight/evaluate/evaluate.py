"""`resight.evaluate(...)`: measure recipes on a data set with known truth. `resight eval` calls it too.

In: recipes (files, shipped names or Recipes) and the folder of their data set. Out: an Evaluation: one recipe, a row
per recipe if there are several, or a row per step of a curve or of a brightness sweep. With `encoders`, recipes give
the data and the metrics, and the encoders' recipes define encoding and search.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resight import recipe as recipe_files
from resight.collection.add import Progress
from resight.encode.feature_cache import FeatureCache
from resight.errors import InputError
from resight.evaluate import curves
from resight.evaluate.brightness import check_factors, sweep_brightness
from resight.evaluate.distances import tabulate_distances
from resight.evaluate.evaluation import Evaluation, choose_metric, single_row
from resight.evaluate.measure import Extras, load_dataset, measure_recipe, prepare
from resight.evaluate.strata import read_split
from resight.evaluate.summary import summarise
from resight.evaluate.trec import RunRecorder
from resight.evaluate.variants import measure_variants
from resight.types import Dataset, Recipe

NAMED = 3  # recipes named in a title
Source = str | Path | Recipe


def evaluate(
    recipes: Source | Sequence[Source],
    data: str | Path,
    *,
    encoders: Sequence[str] = (),
    overrides: Sequence[str] = (),
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
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
) -> Evaluation:
    """Measure recipes on a data set with ground truth.

    Args:
        recipes: Names of shipped recipes, TOML files or Recipes; one, or several to compare.
        data: The folder or manifest of the data set that the recipes name.
        encoders: Encode and search as these recipes do; `recipes` then give the data and the metrics.
        overrides: Changes of the recipes' settings, as "key=value".
        metric: The metric of differences, and of what may be lost; default: the recipe's first.
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
        progress: Called with the number of images done and in all.
        report: Called with the name of each recipe or step before it is measured.

    Returns:
        One row per recipe or step, with figures, intervals and differences.

    Raises:
        RecipeError: A recipe, a setting or a metric is unknown or invalid.
        ManifestError: The data set breaks its format.
        InputError: Options contradict each other.

    Examples:
        >>> import resight
        >>> settings = ["data=manifest", "metrics=['recall@1', 'ap']"]
        >>> evaluation = resight.evaluate("sift", "truth.csv", overrides=settings)
        >>> {name: figure.mean for name, figure in evaluation.rows[0].summary.figures.items()}
        {'recall@1': 1.0, 'ap': 1.0}
    """
    sources = [recipes] if isinstance(recipes, (str, Path, Recipe)) else list(recipes)
    _check_options(curve, keep, steps, loss, strata, split, brightness)
    recorder = RunRecorder() if run_file else None
    extras = Extras(
        tuple(strata),
        bins,
        map,
        recorder.add if recorder else None,
        read_split(split) if isinstance(split, Path) else split,
    )
    common = _Common(metric, keep, cache, by, progress, report, extras)
    if curve is not None:
        drawn = curves.build(curve, steps=steps, loss=loss, metric=metric)
        recipe = _load_one(sources, encoders, overrides)
        dataset = load_dataset(recipe, Path(data))
        evaluation = _draw_curve(drawn, recipe, dataset, common)
    elif brightness is not None:
        check_factors(brightness)
        found = _load_all(sources, encoders, overrides)
        dataset = load_dataset(found[0], Path(data))
        evaluation = _sweep(found, dataset, brightness, _make_name(sources, encoders), common)
    else:
        found = _load_all(sources, encoders, overrides)
        dataset = load_dataset(found[0], Path(data))
        evaluation = _measure(found, dataset, _make_name(sources, encoders), common)
    if distances:
        evaluation = replace(evaluation, more_tables=(tabulate_distances(dataset, evaluation.rows),))
    if recorder and run_file:
        evaluation = replace(evaluation, run_files=recorder.write(run_file))
    return evaluation


@dataclass(frozen=True)
class _Common:
    """Options of every kind of evaluation."""

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
            expected="one RECIPE, and at most one --encoder",
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

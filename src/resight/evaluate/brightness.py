"""Quality under other light: every image again with its L of CIE Lab multiplied by a factor.

In: a recipe, its data set and factors. Out: an Evaluation with a row per factor and a chart of quality against the
factor. The copies are PNG files, upright and whole, in a temporary folder; factor 1 uses the original files.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.collection.add import Progress
from resight.data import image_files
from resight.encode.feature_cache import FeatureCache
from resight.errors import ImageError, InputError
from resight.evaluate.evaluation import Evaluation, Fact, Row, choose_metric
from resight.evaluate.measure import Extras, SearchVariant, measure, prepare
from resight.evaluate.summary import summarise
from resight.evaluate.table import Chart, Line
from resight.types import Dataset, ImageRef, Recipe

FACTORS = (0.2, 0.6, 1.0, 1.4, 1.8)


def sweep_brightness(
    recipe: Recipe,
    dataset: Dataset,
    factors: Sequence[float] = FACTORS,
    *,
    metric: str = "",
    cache: FeatureCache | None = None,
    by: str = "set",
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
    extras: Extras | None = None,
) -> Evaluation:
    """Measure the recipe once per factor; differences are to factor 1, or to the nearest."""
    difference_metric = choose_metric(recipe, metric)
    chosen = sorted(set(factors))
    check_factors(factors)
    rows: list[Row] = []
    for factor in chosen:
        if report:
            report(f"evaluating with L × {factor:g}")
        with tempfile.TemporaryDirectory(prefix="resight-light-") as scratch:
            lit = change_brightness(dataset, factor, Path(scratch))
            with prepare(recipe, lit, cache=cache, progress=progress) as encoded:
                variants = [SearchVariant(recipe, encoded.collection.view().pipeline)]
                (result,) = measure(encoded, variants, by, progress, extras)
        rows.append(Row(f"L × {factor:g}", summarise(result), {"factor": Fact(factor, f"{factor:g}")}))
    first = rows[0].summary
    reference = min(range(len(chosen)), key=lambda number: abs(chosen[number] - 1))
    return Evaluation(
        title=f"{recipe.name}: {first.dataset}, {first.database:,} images, under other light",
        heading="light",
        rows=tuple(rows),
        reference=reference,
        metric=difference_metric,
        notes=("factor: multiplies L of CIE Lab in every image, queries too; L is at most 100",),
        charts=(
            Chart(
                "Quality under other light",
                "L of CIE Lab ×",
                tuple(chosen),
                tuple(f"{factor:g}" for factor in chosen),
                tuple(Line(name, tuple(row.summary.figures[name].mean for row in rows)) for name in first.figures),
                chosen=reference,
            ),
        ),
        settings={"relight": chosen},
    )


def check_factors(factors: Sequence[float]) -> None:
    if not factors or min(factors) < 0:
        raise InputError(
            "no such brightness",
            expected="factors of 0 or more",
            actual=str(list(factors)),
            fix="e.g. 0.2,0.6,1,1.4,1.8",
        )


def change_brightness(dataset: Dataset, factor: float, folder: Path) -> Dataset:
    """The data set with a copy of every image in `folder`; images that cannot be read keep their path."""
    if factor == 1:
        return dataset
    refs = {ref.path: ref for ref in (*dataset.database, *dataset.queries)}
    named = {path: folder / f"{number}.png" for number, path in enumerate(refs)}
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="light") as pool:
        made = set(pool.map(lambda path: _write(path, named[path], factor), refs))

    def redirect(ref: ImageRef) -> ImageRef:
        return replace(ref, path=named[ref.path]) if ref.path in made else ref

    return replace(
        dataset, database=tuple(map(redirect, dataset.database)), queries=tuple(map(redirect, dataset.queries))
    )


def scale_lightness(pixels: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
    """RGB [H, W, 3] with L of CIE Lab × factor, at most 100; a and b as they were."""
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
    lit = np.dstack([np.clip(lab[..., 0] * factor, 0, 100), lab[..., 1:]]).astype(np.float32)
    rgb = np.clip(cv2.cvtColor(lit, cv2.COLOR_Lab2RGB), 0, 1)
    return np.asarray(np.rint(rgb * 255), np.uint8)


def _write(path: Path, target: Path, factor: float) -> Path | None:
    """The path, once its copy is written; None if it cannot be read: adding it will then skip and list it."""
    try:
        picture = image_files.read(ImageRef(path.name, path))
    except ImageError:
        return None
    Image.fromarray(scale_lightness(picture.pixels, factor)).save(target, compress_level=1)
    return path

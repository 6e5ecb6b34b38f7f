"""The same data set under other light: every image again with its L of CIE Lab × a factor, and each set measured.

In: a recipe, its data set and factors. Out: a Comparison with a row a factor, and quality against the factor. The
copies are PNG files, upright and whole, in a folder that is gone afterwards; those of factor 1 are the originals.
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
from resight.evaluate.comparison import Comparison, Fact, Row, average, choose_metric
from resight.evaluate.evaluate import Extras, Way, load_dataset, measure, prepare
from resight.evaluate.pages.charts import Chart, Line
from resight.evaluate.results import RunResult
from resight.types import Dataset, ImageRef, Recipe

USUAL = (0.2, 0.6, 1.0, 1.4, 1.8)


def relight(
    recipe: Recipe,
    root: Path,
    factors: Sequence[float] = USUAL,
    *,
    metric: str = "",
    cache: FeatureCache | None = None,
    by: str = "set",
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
    extras: Extras | None = None,
) -> Comparison:
    """Measure the recipe once for each factor; differences are to factor 1, or to the nearest."""
    judged = choose_metric(recipe, metric)
    chosen = sorted(set(factors))
    if not chosen or chosen[0] < 0:
        raise InputError(
            "no such light", expected="factors of 0 or more", actual=str(list(factors)), fix="e.g. 0.2,0.6,1,1.4,1.8"
        )
    dataset = load_dataset(recipe, root)
    results: list[RunResult] = []
    for factor in chosen:
        if tell:
            tell(f"evaluating with L × {factor:g}")
        with tempfile.TemporaryDirectory(prefix="resight-light-") as scratch:
            lit = change_light(dataset, factor, Path(scratch))
            with prepare(recipe, lit, cache=cache, progress=progress) as bench:
                results += measure(bench, [Way(recipe, bench.collection.pipeline)], by, progress, extras)
    reference = min(range(len(chosen)), key=lambda number: abs(chosen[number] - 1))
    return Comparison(
        title=f"{recipe.name}: {results[0].dataset}, {results[0].database:,} images, under other light",
        heading="light",
        rows=tuple(
            Row(f"L × {factor:g}", {"factor": Fact(factor, f"{factor:g}")}, result)
            for factor, result in zip(chosen, results, strict=True)
        ),
        reference=reference,
        metric=judged,
        cells="interval",
        notes=("factor: what L of CIE Lab was multiplied by in every image, queries too; L ends at 100",),
        charts=(
            Chart(
                "Quality under other light",
                "L of CIE Lab ×",
                tuple(chosen),
                tuple(f"{factor:g}" for factor in chosen),
                tuple(Line(name, tuple(average(result, name) for result in results)) for name in results[0].metrics),
                chosen=reference,
            ),
        ),
        settings={"relight": chosen},
    )


def change_light(dataset: Dataset, factor: float, folder: Path) -> Dataset:
    """The data set with a re-rendered copy in `folder` in place of every image; one that cannot be read stays."""
    if factor == 1:
        return dataset
    refs = {ref.path: ref for ref in (*dataset.database, *dataset.queries)}
    named = {path: folder / f"{number}.png" for number, path in enumerate(refs)}
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="light") as pool:
        made = set(pool.map(lambda path: _write(path, named[path], factor), refs))

    def point(ref: ImageRef) -> ImageRef:
        return replace(ref, path=named[ref.path]) if ref.path in made else ref

    return replace(dataset, database=tuple(map(point, dataset.database)), queries=tuple(map(point, dataset.queries)))


def scale_lightness(pixels: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
    """RGB [H, W, 3] with L of CIE Lab × factor, at most 100; a and b as they were."""
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
    lit = np.dstack([np.clip(lab[..., 0] * factor, 0, 100), lab[..., 1:]]).astype(np.float32)
    rgb = np.clip(cv2.cvtColor(lit, cv2.COLOR_Lab2RGB), 0, 1)
    return np.asarray(np.rint(rgb * 255), np.uint8)


def _write(path: Path, target: Path, factor: float) -> Path | None:
    """The path, once its copy is there; None where it cannot be read, so that it is skipped as it would be."""
    try:
        picture = image_files.read(ImageRef(path.name, path))
    except ImageError:
        return None
    Image.fromarray(scale_lightness(picture.pixels, factor)).save(target, compress_level=1)
    return path

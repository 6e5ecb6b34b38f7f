"""Quality under other light: every image again with its L of CIE Lab multiplied by a factor.

In: one or several recipes, their data set and factors. Out: an Evaluation with a row per recipe and factor, and a chart
of quality against the factor. The copies are PNG files, upright and whole, in a temporary folder; factor 1 uses the
original files. A recipe that fails has no rows, and the others run (variants.py).
"""

import math
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
from resight.evaluate.evaluation import AbsentRow, Evaluation, Fact, Row, choose_metric
from resight.evaluate.measure import Extras
from resight.evaluate.result_cache import fingerprint_dataset
from resight.evaluate.table import Chart, Line
from resight.evaluate.variants import measure_variants
from resight.types import Dataset, ImageRef, Recipe

FACTORS = (0.2, 0.6, 1.0, 1.4, 1.8)


def sweep_brightness(
    recipes: Sequence[Recipe],
    dataset: Dataset,
    factors: Sequence[float] = FACTORS,
    *,
    name: str = "",
    metric: str = "",
    cache: FeatureCache | None = None,
    by: str = "set",
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
    extras: Extras | None = None,
) -> Evaluation:
    """Measure every recipe once per factor; differences are to the first recipe at factor 1, or at the nearest."""
    difference_metric = choose_metric(recipes[0], metric)
    check_factors(factors)
    chosen = sorted(set(factors))
    mark = fingerprint_dataset(dataset) if cache else ""
    lit = []
    for factor in chosen:
        if report:
            report(f"evaluating with L × {factor:g}")
        with tempfile.TemporaryDirectory(prefix="resight-light-") as scratch:
            lit.append(
                measure_variants(
                    recipes,
                    change_brightness(dataset, factor, Path(scratch)),
                    name=name,
                    metric=metric,
                    cache=cache,
                    by=by,
                    progress=progress,
                    report=report,
                    extras=extras,
                    mark=mark and f"{mark} L × {factor:g}",  # the copies are new files in every run
                )
            )
    rows, absent = _join(lit, chosen, single=len(recipes) == 1)
    nearest = min(chosen, key=lambda factor: abs(factor - 1))
    reference = next(number for number, row in enumerate(rows) if row.facts["factor"].value == nearest)
    return Evaluation(
        title=f"{lit[0].title}, under other light",
        heading="light",
        rows=rows,
        reference=reference,
        metric=difference_metric,
        notes=("factor: multiplies L of CIE Lab in every image, queries too; L is at most 100",),
        charts=_draw(lit, chosen, difference_metric, nearest),
        settings={"relight": chosen},
        absent=absent,
    )


def _join(
    lit: Sequence[Evaluation], factors: Sequence[float], single: bool
) -> tuple[tuple[Row, ...], tuple[AbsentRow, ...]]:
    """The rows of every recipe in the order of the factors, one recipe after the other; and those that failed."""
    labels = list(dict.fromkeys(row.label for evaluation in lit for row in evaluation.rows))
    rows: list[Row] = []
    absent: list[AbsentRow] = []
    for label in [*labels, *(row.label for row in lit[0].absent if row.label not in labels)]:
        for factor, evaluation in zip(factors, lit, strict=True):
            name = f"L × {factor:g}" if single else f"{label}, L × {factor:g}"
            fact = {"factor": Fact(factor, f"{factor:g}")}
            rows += [Row(name, row.summary, fact) for row in evaluation.rows if row.label == label]
            absent += [AbsentRow(name, len(rows), row.reason) for row in evaluation.absent if row.label == label]
    return tuple(rows), tuple(absent)


def _draw(lit: Sequence[Evaluation], factors: Sequence[float], metric: str, nearest: float) -> tuple[Chart, ...]:
    """One recipe: a line per metric. Several: a line per recipe, of one metric."""
    labels = list(dict.fromkeys(row.label for evaluation in lit for row in evaluation.rows))
    found = [{row.label: row.summary.figures for row in evaluation.rows} for evaluation in lit]
    names = list(found[0][labels[0]]) if len(labels) == 1 and labels[0] in found[0] else [metric]
    lines = tuple(
        Line(
            label if len(labels) > 1 else name,
            tuple(figures[label][name].mean if label in figures else math.nan for figures in found),
        )
        for label in labels
        for name in names
    )
    ticks = tuple(f"{factor:g}" for factor in factors)
    title = "Quality under other light" if len(labels) == 1 else f"{metric} under other light"
    return (Chart(title, "L of CIE Lab ×", tuple(factors), ticks, lines, chosen=factors.index(nearest)),)


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

"""The child processes of a training table: `train` a network, `whiten` its descriptors. JSON in, JSON out.

A training continues from the last checkpoint in its folder. A whitening is learnt on pairs of training images of the
same object: the pairs of the release for SfM-120k, else pairs of the same label, at most MOST_PAIRS of them; only their
images are encoded.
"""

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resight.collection import open_collection
from resight.collection.fit.fit_whitening import MOST_PAIRS, Pair, learn_whitening, pair_by_labels
from resight.data import sets
from resight.data.sets.sfm120k import read_matching_pairs
from resight.encode import whitening as whitenings
from resight.errors import InputError
from resight.files.csv_cells import make_writer
from resight.recipe import parse
from resight.reproduce import worker
from resight.types import Dataset, Recipe

SEED = 0
SHRINKAGE = {"lw": 0.0, "shrunk": None, "pca": None}
REPORTED = 20  # steps between two lines of progress


def train(recipe: Mapping[str, Any], root: str, out: str) -> dict[str, Any]:
    """Train the network of a recipe in `out`, or continue there."""
    from resight.evaluate import judge
    from resight.train.loop import LAST, StepReport
    from resight.train.train_network import train_recipe

    def show(stage: str, step: StepReport) -> None:
        if step.step % REPORTED == 0:
            worker.report(f"{stage}: step {step.step:,} of {step.steps:,}, loss {step.loss:.3f}")

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    begun = any((stage / LAST).exists() for stage in folder.iterdir() if stage.is_dir())
    trained = train_recipe(
        parse({"name": folder.name, **recipe}), Path(root), folder, judge, resume=begun, on_step=show
    )
    return {"images": trained.images, "classes": trained.classes, "notes": list(trained.notes)}


def whiten(
    recipe: Mapping[str, Any],
    root: str,
    branch: Mapping[str, Any],
    kind: str,
    out: str,
) -> dict[str, Any]:
    """Learn a whitening of a branch's descriptors from training images, and write it to the file `out`."""
    file = Path(out)
    trained = parse({"name": file.stem, **recipe, "branches": [branch]})
    plain = dataclasses.replace(trained, data=None, train=None, metrics=())
    dataset = _load(trained, root)
    pairs = choose_pairs(trained, dataset, Path(root))
    file.parent.mkdir(parents=True, exist_ok=True)
    listed = file.with_suffix(".csv")
    _write_pairs(pairs, listed)
    paired = {name for pair in pairs for name in pair}
    folder = file.with_suffix(".resight")  # stays if this process is killed, so that the next one continues
    collection = open_collection(folder, plain)
    collection.add([ref for ref in dataset.database if ref.id in paired], progress=_report_encoding)
    learnt = learn_whitening(
        collection,
        "pca" if kind == "pca" else "lw",
        None if kind == "pca" else listed,
        power=0.5,
        shrinkage=SHRINKAGE[kind],
        seed=SEED,
    )
    whitenings.save(learnt, file)
    shutil.rmtree(folder, ignore_errors=True)
    return {"pairs": learnt.facts.pairs, "images": learnt.facts.images, "dimensions": learnt.facts.dimensions}


def choose_pairs(recipe: Recipe, dataset: Dataset, root: Path) -> list[Pair]:
    """Pairs of training images of the same object, at most MOST_PAIRS, always the same."""
    generator = np.random.default_rng(SEED)
    if recipe.data is not None and recipe.data.name == "sfm120k":
        pairs = read_matching_pairs(root, recipe.data.settings.get("split", "train"))
    else:
        pairs = pair_by_labels({ref.id: ref.attributes.get("label") for ref in dataset.database}, generator)
    if not pairs:
        raise InputError(
            f"{dataset.name} has no pairs to learn a whitening from",
            expected="two images of the same class",
            actual=f"{len(dataset.database):,} images",
            fix="--set whitening=none measures without",
        )
    chosen = np.sort(generator.permutation(len(pairs))[:MOST_PAIRS])
    return [pairs[number] for number in chosen]


def _load(recipe: Recipe, root: str) -> Dataset:
    if recipe.data is None:
        raise InputError("nothing to learn a whitening from", expected="training data", actual="none", fix="add data")
    return sets.build(recipe.data.name, **recipe.data.settings).load(Path(root))


def _write_pairs(pairs: Sequence[Pair], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file)
        table.writerow(("a", "b"))
        table.writerows(pairs)


def _report_encoding(done: int, total: int) -> None:
    if done % 100 == 0 or done == total:
        worker.report(f"encoding for the whitening: {done:,} of {total:,}")

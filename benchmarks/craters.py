"""Craters of 20 km and more in other maps of the Moon: the preset `craters` tuned, calibrated and tested.

    RESIGHT_DATA=… python benchmarks/craters.py fit FOLDER     writes an entry of src/resight/search/calibration.json
    RESIGHT_DATA=… python benchmarks/craters.py test FOLDER    test craters, between maps
    RESIGHT_DATA=… python benchmarks/craters.py tune FOLDER    the same on tuning craters
    RESIGHT_DATA=… python benchmarks/craters.py rotate FOLDER  queries turned by any angle

Options: --encoder, --views, --set, --limit. Tuning and test craters lie in different bands of longitude
(crater_parts/split.py). Settings are chosen, and probabilities fitted, on tuning craters alone. The queries are all
craters of one map, the database those of another; both crops have the same number of diameters. Not CraterBench-R.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
from crater_parts.crops import TURNED, read_craters, render
from crater_parts.measure import Asked, ask_all, drop_some, format_figures
from crater_parts.split import list_part

from resight import recipe as recipes
from resight.collection import Collection, open_collection
from resight.encode.encoder import Encoder
from resight.search import calibration
from resight.types import ImageRef, Recipe

PAIRS = (  # queries, database
    ("celestia", "brim"),
    ("hillshade_270", "brim"),
    ("hillshade_315", "hillshade_270"),
)
ABSENT = 0.2  # share of the craters that the database lacks, for probabilities
CANDIDATES = 10  # of each query that become pairs


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("command", choices=("fit", "test", "tune", "rotate"))
    options.add_argument("folder", type=Path)
    options.add_argument("--encoder", default="craters")
    options.add_argument("--views", type=float, nargs="+", default=[6.0])
    options.add_argument("--set", action="append", default=[])
    options.add_argument("--limit", type=int, default=0, help="queries; 0: all")
    options.add_argument("--pairs", type=int, nargs="+", default=list(range(len(PAIRS))))
    given = options.parse_args()
    recipe = recipes.load(given.encoder, given.set)
    part = "test" if given.command in ("test", "rotate") else "tuning"
    samples = []
    for view in given.views:
        for number in given.pairs:
            asked, database = PAIRS[number]
            source = asked + TURNED if given.command == "rotate" else asked
            found = measure(recipe, part, source, database, view, given.folder, given.limit)
            print(
                f"{part}, {view:g} diameters, {source} → {database}, {len(found)} queries: {format_figures(found)}",
                flush=True,
            )
            samples += list_samples(found)
    if given.command == "fit":
        keep_fitted(samples, recipe)


def measure(recipe: Recipe, part: str, asked: str, database: str, view: float, folder: Path, limit: int) -> list[Asked]:
    craters = list_part(read_craters(), part)
    queries, images = (render(craters, source, view, folder) for source in (asked, database))
    if limit:
        rows = sorted(np.random.default_rng(1).permutation(len(queries))[:limit])
        queries = [queries[row] for row in rows]
    one = fill(recipe, queries, folder / f"{part}_{asked}_{view:g}x_{limit or 'all'}")
    two = fill(recipe, drop_some(images, ABSENT), folder / f"{part}_{database}_{view:g}x_most")
    return list(ask_all(one, two, CANDIDATES))


def fill(recipe: Recipe, refs: Sequence[ImageRef], path: Path) -> Collection:
    """A collection of these images, made anew if its recipe has changed."""
    key = crc32(repr([replace(branch, weight=0.0, index=None) for branch in recipe.branches]).encode())
    collection = open_collection(path.with_name(f"{path.name}_{key:08x}.resight"), recipe)
    collection.add([replace(ref, box=None) for ref in refs])
    return collection


def list_samples(found: Sequence[Asked]) -> list[tuple[calibration.Signals, bool]]:
    """The signals that a calibration of these stages must weigh, and whether the candidate is the same crater."""
    return [
        (
            {
                name: value
                for name, value in signals.items()
                if name.endswith(("_standout", "_lead")) or name == "layout"
            },
            right,
        )
        for one in found
        for signals, right in zip(one.signals, (label == one.label for label in one.labels), strict=True)
    ]


def keep_fitted(samples: Sequence[tuple[calibration.Signals, bool]], recipe: Recipe) -> None:
    """Replace the entry for this encoding among the calibrations that come with the package."""
    spaces = zip(recipe.branches, Encoder(recipe.branches).spaces, strict=True)
    fitted = replace(
        calibration.fit(samples),
        spaces={branch.descriptor.name: space for branch, space in spaces if branch.weight > 0},
    )
    others = [entry for entry in calibration.load(calibration.SHIPPED) if entry.spaces != fitted.spaces]
    calibration.save([*others, fitted], calibration.SHIPPED)
    print(f"{fitted.pairs} pairs, {fitted.same} same; bias {fitted.bias:.2f}, {dict(fitted.weights)}")


if __name__ == "__main__":
    main()

"""What group-size sampling, T, β and whitening do for a small CiDeR on craters of the Moon.

    python benchmarks/ablate_moon.py FOLDER [--craters 300] [--epochs 8] [--seeds 2]

FOLDER is that of `benchmarks/train_moon.py prepare`. Its square crops are cut to five shapes, from upright to wide,
since sampling by shape changes nothing where all are alike. A ResNet-10 from random weights is trained at 64 pixels on
some of the training craters, once for each seed, and every row asks for all queries of the validation craters, another
part of the Moon, at 64 pixels, whole. AP at the hits: the mean over the seeds, each seed's own, and the difference from
the first row with its 95 % interval (a paired bootstrap over queries, each with its mean over the seeds). The interval
does not know of the chance that lies in a training: where seeds differ by more than rows do, a row says nothing.
"""

import argparse
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import resight
from resight import recipe as recipes
from resight.collection import open_collection
from resight.collection.fit.fit_whitening import learn_whitening
from resight.encode import whitening as whitenings
from resight.evaluate import judge
from resight.evaluate.statistics.tests import paired_interval
from resight.train.train_network import train_recipe
from resight.types import ImageRef, Recipe

PAPER = "as in the paper"
WHITENED = "the same, whitened (Lw)"
SHAPES = ((1, 1), (2, 3), (3, 2), (3, 4), (4, 3))
NETWORK = {"backbone": "resnet10t", "dimensions": 256, "size": 64, "fit": "keep"}
ROWS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {  # settings of the network, settings of the training
    PAPER: ({}, {}),
    "fixed squares": ({}, {"sampling": "fixed"}),
    "T = 1": ({"masks": 1}, {}),
    "T = 3": ({"masks": 3}, {}),
    "β = 0, fixed": ({"background": 0.0, "background_deviation": 0.0}, {}),
    "no localisation": ({"localisation": "none"}, {}),
}
Values = dict[str, list[float]]  # row → AP of each query


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--craters", type=int, default=300)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    shaped = given.folder / f"shaped_{given.craters}"
    shape_crops(given.folder / "train", shaped, given.craters)
    out = given.folder / f"ablation_{given.craters}_{given.epochs}"
    found = [measure_rows(given.folder, shaped, out / str(seed), given.epochs, seed) for seed in range(given.seeds)]
    print_table(found)


def measure_rows(folder: Path, shaped: Path, out: Path, epochs: int, seed: int) -> Values:
    """All rows with one seed; what was measured before is not measured again."""
    path = out / "values.json"
    values: Values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for number, (label, (network, training)) in enumerate(ROWS.items()):
        place = out / str(number)
        if not (place / "recipe.toml").exists():
            recipe = recipes.parse(describe(network, {"epochs": epochs, "seed": seed, **training}))
            train_recipe(recipe, shaped, place, judge)
        ways = {label: recipes.load(place / "recipe.toml")}
        if label == PAPER:
            ways[WHITENED] = whiten(ways[PAPER], shaped, place)
        for name, way in ways.items():
            if name not in values:
                values[name] = measure(way, folder)
                path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
            print(f"seed {seed}, {name}: AP {np.mean(values[name]):.3f}", flush=True)
    return values


def print_table(found: Sequence[Values]) -> None:
    means = {name: np.mean([values[name] for values in found], axis=0) for name in found[0]}
    print("| | AP | each seed | from the first row, 95 % interval |\n|---|---|---|---|")
    for name, mean in means.items():
        low, high = paired_interval(mean, means[PAPER], np.random.default_rng(0))
        seeds = ", ".join(f"{np.mean(values[name]):.3f}" for values in found)
        apart = "" if name == PAPER else f"{np.mean(mean - means[PAPER]):+.3f} ({low:+.3f} to {high:+.3f})"
        print(f"| {name} | {np.mean(mean):.3f} | {seeds} | {apart} |")


def shape_crops(source: Path, target: Path, craters: int) -> None:
    """The middle of every crop in one of the shapes, which its name decides."""
    for crater in sorted(source.iterdir())[:craters]:
        for crop in sorted(crater.glob("*.png")):
            place = target / crater.name / crop.name
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                with Image.open(crop) as image:
                    wide, high = SHAPES[zlib.crc32(f"{crater.name}/{crop.name}".encode()) % len(SHAPES)]
                    width, height = (image.width * side // max(wide, high) for side in (wide, high))
                    left, top = (image.width - width) // 2, (image.height - height) // 2
                    image.crop((left, top, left + width, top + height)).resize(
                        (width * 96 // image.width, height * 96 // image.width)
                    ).save(place)


def describe(network: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": "ablate_moon",
        "data": {"name": "folder", "labels": True},
        "index": "exact",
        "branches": [
            {
                "encoder": {"name": "cider", **NETWORK, **network},
                "descriptor": {"name": "pooled", "pooling": "head"},
            }
        ],
        "train": {
            "name": "network", "batch": 64, "size": 64, "optimizer": "adamw", "rate": 1e-3, "warmup": 1,
            "held_out": 0.0, "threads": 1, **training,
        },
    }  # fmt: skip


def whiten(recipe: Recipe, shaped: Path, out: Path) -> Recipe:
    """The recipe with what the training crops teach: crops of one crater are pairs."""
    file = out / "whitening.npz"
    if not file.exists():
        collection = open_collection(out / "crops.resight", recipe)
        crops = sorted(shaped.rglob("*.png"))
        collection.add([ImageRef(str(crop), crop, None, {"label": crop.parent.name}) for crop in crops])
        whitenings.save(learn_whitening(collection, "lw"), file)
    table = recipes.to_table(recipe)
    table["branches"][0]["transforms"] = [{"name": "whiten", "file": str(file)}]
    return recipes.parse(table)


def measure(recipe: Recipe, folder: Path) -> list[float]:
    table = {**recipes.to_table(recipe), "data": "manifest", "metrics": ["ap"]}
    (row,) = resight.evaluate(recipes.parse(table), folder / "validation.csv").rows
    return list(row.summary.values("ap").values())


if __name__ == "__main__":
    main()

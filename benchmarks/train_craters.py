"""A head for the tokens of craters, trained on the Moon: does it win on other craters, in other maps and on Mars?

    RESIGHT_DATA=… python benchmarks/train_craters.py FOLDER [--recipe FILE] [--minutes 12] [--dimensions 64]

Makes the crops (train_craters_parts/moon_crops.py and mars_crops.py say which), encodes each once with the branch of
tokens of the recipe (default: train_craters_parts/tokens.toml), trains the heads, chooses one on the validation
craters, and measures it and the recipe without a head on the test craters: tokens and layout as the recipe sets them,
without rotation or any other branch. What is there is not made again. Writes FOLDER/head.safetensors and
FOLDER/report.json. Intervals are those of a paired bootstrap over craters. The head wins if the interval of its gain in
AP lies above zero in every task.
"""

import argparse
import csv
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from train_craters_parts import mars_crops, moon_crops
from train_craters_parts.features import Task, encode, find_layout, load_task, rank
from train_craters_parts.fit import Crops, Settings, fit

from resight import recipe as recipes
from resight.encode import heads as head_files
from resight.evaluate.statistics.tests import paired_interval
from resight.search.rerankers.layout import Overlay, find_centres
from resight.train import heads
from resight.types import Branch, FloatArray

Arrays = dict[str, FloatArray]
RECIPE = Path(__file__).with_name("train_craters_parts") / "tokens.toml"
TASKS = (*moon_crops.TASKS, "mars")
CHECKED = 40  # candidates in a check
SAMPLED = 50_000  # tokens, for the principal directions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recipe", default=str(RECIPE))
    parser.add_argument("--minutes", type=float, default=12.0, help="of training each head")
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument("--head", choices=("linear", "mlp"), action="append")
    given = parser.parse_args()
    folder, data = given.folder, Path(os.environ["RESIGHT_DATA"])
    if not (folder / "test_mars.csv").is_file():
        print(moon_crops.make(data / "moon", folder), mars_crops.make(data / "mars_ctx", folder), flush=True)
    recipe = recipes.load(given.recipe)
    branch = next(one for one in recipe.branches if one.descriptor.name == "tokens")
    overlay, candidates = find_layout(recipe)
    crops, space = load_crops(folder, branch)
    checks = [load_task(folder, f"validation_{name}", branch) for name in moon_crops.TASKS]
    tasks = [load_task(folder, f"test_{name}", branch) for name in TASKS]

    def validate(arrays: Arrays) -> float:
        head = head_files.make(arrays, head_files.Facts(space, "", 0, 0))
        return float(np.mean([np.mean(1 / rank(task, head, overlay, CHECKED)) for task in checks]))

    frozen = float(np.mean([np.mean(1 / rank(task, None, overlay, CHECKED)) for task in checks]))
    print(f"validation, frozen: {frozen:.4f}", flush=True)
    tried: dict[str, float] = {}
    for kind in given.head or ("linear", "mlp"):
        path = folder / f"{kind}.safetensors"
        if not path.is_file():
            started = time.monotonic()
            arrays = train(kind, crops, validate, given, overlay.tolerance)
            seconds = time.monotonic() - started
            facts = head_files.Facts(space, kind, len(np.unique(crops.labels)), len(crops.labels), seconds)
            head_files.save(head_files.make(arrays, facts), path)
        tried[kind] = validate(head_files.list_arrays(head_files.load(path)))
        print(f"{kind}: {tried[kind]:.4f}", flush=True)
    kind = max(tried, key=lambda name: tried[name])
    head = head_files.load(folder / f"{kind}.safetensors")
    table = compare(tasks, head, overlay, candidates)
    head_files.save(head, folder / "head.safetensors")
    wins = all(row["ap"]["low"] > 0 for row in table.values())
    report = {"recipe": given.recipe, "head": kind, "validation": {"frozen": frozen, **tried},
              "wins": wins, "bytes": (folder / "head.safetensors").stat().st_size, "test": table}  # fmt: skip
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print("wins everywhere" if wins else "does not win everywhere")


def load_crops(folder: Path, branch: Branch) -> tuple[Crops, str]:
    with (folder / "train.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = encode([folder / row["path"] for row in rows], branch, folder / "train.npz")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(row["crater"] for row in rows))}
    labels = np.array([numbers[row["crater"]] for row in rows])
    ground = np.array([[float(row[name]) for name in ("east", "north", "side")] for row in rows], np.float32)
    centres = find_centres(found.boxes, found.boxes, np.array([len(found.boxes)]))
    return Crops(found.tokens, labels, ground, centres), found.space


def train(
    kind: str, crops: Crops, validate: Callable[[Arrays], float], given: argparse.Namespace, tolerance: float
) -> Arrays:
    generator = np.random.default_rng(0)
    rows = crops.tokens.reshape(-1, crops.tokens.shape[2])
    sample = rows[np.sort(generator.permutation(len(rows))[:SAMPLED])].astype(np.float32)
    settings = {"dimensions": given.dimensions, **({"hidden": given.hidden} if kind == "mlp" else {})}
    head = heads.build(kind, sample, 0, **settings)
    return fit(head, crops, validate, Settings(minutes=given.minutes, tolerance=tolerance), generator)[0]


def compare(tasks: list[Task], head: head_files.Head, overlay: Overlay, candidates: int) -> dict[str, dict]:
    table = {}
    for task in tasks:
        ranks = [rank(task, one, overlay, candidates) for one in (None, head)]
        row: dict = {"craters": len(ranks[0])}
        for metric, values in (("ap", [1 / one for one in ranks]), ("recall@1", [(one == 1) * 1.0 for one in ranks])):
            before, after = (np.asarray(one, np.float64) for one in values)
            low, high = paired_interval(after, before, np.random.default_rng(0))
            row[metric] = {"frozen": before.mean(), "head": after.mean(), "gain": (after - before).mean(), "low": low,
                           "high": high}  # fmt: skip
        table[task.name] = row
        print(task.name, json.dumps(row), flush=True)
    return table


if __name__ == "__main__":
    main()

"""What `resight train --folder` gains on craters of the Moon in another light, over the best frozen encoder.

    RESIGHT_DATA=… python benchmarks/train_moon.py prepare FOLDER    crops (train_moon_parts/crops.py says which)
    python benchmarks/train_moon.py frozen FOLDER                    frozen encoders on the validation craters
    python benchmarks/train_moon.py train FOLDER [--minutes 15]      a head over an encoder, on the training craters
    python benchmarks/train_moon.py report FOLDER                    it and the best frozen one on the test craters

A crater's crops lie in one band of longitude alone: no ground of the test craters is seen in training, or when an
encoder is chosen. AP at the hits, mean over queries; the interval of the gain is that of a paired bootstrap over
craters, each with the mean of its three queries. The seconds are those of the wall clock.
"""

import argparse
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from train_moon_parts import crops

import resight
from resight import recipe as recipes
from resight.encode.feature_cache import FeatureCache
from resight.evaluate import judge
from resight.evaluate.statistics.tests import paired_interval, randomisation_test
from resight.train.fit_head import Check, Settings
from resight.train.train_head import train_head
from resight.types import Branch, Choice, Recipe

ALL = Choice("tokens", {"selection": "all"})
MERGED = Choice("aggregated", {"k": 32})
GEM = Choice("pooled", {"pooling": "gem"})
LATE = Choice("late", {"kind": "int8"})


def lite(block: int, size: int, variant: str = "lite2") -> Choice:
    return Choice("efficientnet_lite", {"variant": variant, "block": block, "size": size})


ENCODERS: Mapping[str, tuple[Choice, Choice]] = {
    **{f"lite2, block {block}, 160 px, 100 tokens": (lite(block, 160), ALL) for block in range(8, 15)},
    "lite2, block 12, 128 px, 64 tokens": (lite(12, 128), ALL),
    "lite2, block 14, 128 px, 64 tokens": (lite(14, 128), ALL),
    "lite2, block 14, 192 px, 144 tokens": (lite(14, 192), ALL),
    "lite2, block 15, 256 px, 64 tokens": (lite(15, 256), ALL),
    "lite2, block 12, 224 px, 196 tokens": (lite(12, 224), ALL),
    "lite2, block 11, 224 px, 196 tokens": (lite(11, 224), ALL),
    "lite2, block 15, 320 px, 100 tokens": (lite(15, 320), ALL),
    "lite2, block 16, 256 px, 64 tokens": (lite(16, 256), ALL),
    "lite2, block 15, 256 px, 32 merged tokens": (lite(15, 256), MERGED),
    "lite2, block 15, 256 px, GeM": (lite(15, 256), GEM),
    "lite0, block 8, 160 px, 100 tokens": (lite(8, 160, "lite0"), ALL),
    "ViT-S/14, block 6, 224 px, 256 tokens": (Choice("onnx_vit", {"block": 6}), ALL),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "frozen", "train", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=15.0, help="of training, the encoding not counted")
    parser.add_argument(
        "--base", choices=list(ENCODERS), help="the encoder that gets a head; default: the best frozen one"
    )
    given = parser.parse_args()
    started = time.monotonic()
    {"prepare": prepare, "frozen": choose_frozen, "train": train, "report": report}[given.step](given)
    print(f"{given.step}: {time.monotonic() - started:.0f} s")


def prepare(given: argparse.Namespace) -> None:
    print(crops.make(Path(os.environ["RESIGHT_DATA"]) / "moon", given.folder))


def choose_frozen(given: argparse.Namespace) -> None:
    """Encoders that were measured before are not measured again."""
    path = given.folder / "frozen.json"
    figures: dict[str, dict[str, float]] = read(path)["validation"] if path.exists() else {}
    for label, (encoder, descriptor) in ENCODERS.items():
        if label not in figures:
            values = measure(build(encoder, descriptor), given.folder / "validation.csv", None)
            figures[label] = {metric: float(np.mean(list(found.values()))) for metric, found in values.items()}
            best = max(figures, key=lambda one: figures[one]["ap"])
            write({"best": best, "validation": figures}, path)
        print(f"{label}: AP {figures[label]['ap']:.3f}, R@1 {figures[label]['recall@1']:.3f}", flush=True)


def train(given: argparse.Namespace) -> None:
    base = given.base or read(given.folder / "frozen.json")["best"]
    trained = train_head(
        given.folder / "train",
        given.folder / "trained",
        build(*ENCODERS[base]),
        judge=judge,
        interval=paired_interval,
        chance=randomisation_test,
        settings=Settings(minutes=given.minutes),
        cache=open_cache(given.folder),
        on_check=say,
    )
    print(f"things {trained.things}, {trained.images} images; encoding {trained.encoding_seconds:.0f} s, "
          f"training {trained.training_seconds:.0f} s\n{trained.verdict}")  # fmt: skip


def report(given: argparse.Namespace) -> None:
    best = read(given.folder / "frozen.json")["best"]
    ways = {"frozen": build(*ENCODERS[best]), "trained": recipes.load(given.folder / "trained" / "recipe.toml")}
    cache = open_cache(given.folder)
    values = {name: measure(way, given.folder / "test.csv", cache) for name, way in ways.items()}
    table: dict[str, Any] = {"frozen": best}
    for metric in ("ap", "recall@1"):
        before, after = values["frozen"][metric], values["trained"][metric]
        means = [group(found) for found in (before, after)]
        low, high = paired_interval(means[1], means[0], np.random.default_rng(0))
        table[metric] = {
            "frozen": float(means[0].mean()),
            "trained": float(means[1].mean()),
            "gain": float(means[1].mean() - means[0].mean()),
            "interval": [low, high],
            "craters": len(means[0]),
            "queries": len(before),
            **{part: [float(np.mean([found[name] for name in before if part in name])) for found in (before, after)]
               for part in ("azimuth315", "azimuth000", "azimuth045")},
        }  # fmt: skip
        print(f"{metric}: {json.dumps(table[metric])}")
    write(table, given.folder / "report.json")


def build(encoder: Choice, descriptor: Choice) -> Recipe:
    index = Choice("exact") if descriptor is GEM else LATE
    return Recipe("moon", (Branch(encoder, descriptor),), index=index)


def measure(recipe: Recipe, manifest: Path, cache: FeatureCache | None) -> dict[str, dict[str, float]]:
    """Metric → query → value."""
    table = {**recipes.to_table(recipe), "data": "manifest", "metrics": ["ap", "recall@1"]}
    (row,) = resight.evaluate(recipes.parse(table), manifest, cache=cache).rows
    return {name: row.summary.values(name) for name in ("ap", "recall@1")}


def group(values: Mapping[str, float]) -> np.ndarray:
    """The mean of each crater's queries, in order of the craters' ids; a query's id is band/CRATER/view.png."""
    craters: dict[str, list[float]] = {}
    for query, value in values.items():
        craters.setdefault(query.split("/")[1], []).append(value)
    return np.array([np.mean(craters[name]) for name in sorted(craters)])


def open_cache(folder: Path) -> FeatureCache:
    return FeatureCache(folder / "features", 20 * 2**30)


def say(head: Choice, check: Check) -> None:
    print(f"{head.name}, step {check.step}: loss {check.loss:.3f}, validation AP {check.score:.3f}, "
          f"{check.seconds:.0f} s", flush=True)  # fmt: skip


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write(table: object, path: Path) -> None:
    path.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

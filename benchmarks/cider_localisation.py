"""Does a CiDeR network learn where things are, from their names alone? Mean IoU of its boxes before and after training.

    python benchmarks/cider_localisation.py [--steps 200] [--side 64] [--backbone resnet10t] [--block 1]
                                            [--variants masks,none,…] [--json FILE]

Scenes are drawn here: a textured thing of one of 16 classes covers 35 to 60 % of the width and of the height, bent and
lit anew, on clutter of the same kinds of shapes that no other scene has. The network starts from random weights, is
trained by ArcFace to tell the classes apart, and is then asked for boxes in 200 scenes that it has not seen. What
counts is the surest box of each; `any` is the best of its boxes, `half` the share of scenes whose surest box has an IoU
above 0.5, `right` how many are put into their class. For comparison: the box of the whole scene.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from resight.boxes import iou
from resight.encode.backbones import cider
from resight.encode.networks.cider.network import CiderNetwork
from resight.encode.regions import whole_image
from resight.train.losses import arcface
from resight.types import FloatArray

CLASSES, DIMENSIONS, BATCH, RATE, UNSEEN = 16, 128, 32, 1e-2, 200
VARIANTS: dict[str, dict[str, object]] = {
    "masks": {},  # the default
    "printed": {"gradient": "none"},  # the paper's equations to the letter: nothing teaches the map
    "attention": {"localisation": "attention"},
    "no_noise": {"background": 0.0, "background_deviation": 0.0},
    "one_mask": {"masks": 1},
    "three_masks": {"masks": 3},
}
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Scenes:
    planes: torch.Tensor  # [n, 3, side, side]
    labels: torch.Tensor  # [n]
    boxes: FloatArray  # [n, 4]


@dataclass(frozen=True)
class Result:
    variant: str
    untrained: float
    trained: float
    any: float
    half: float
    right: float
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--backbone", default="resnet10t")
    parser.add_argument("--block", type=int, default=1)
    parser.add_argument("--variants", default="masks,printed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    things = [paint(np.random.default_rng(1000 + number), 64, 14, 6.0, 0.5) for number in range(CLASSES)]
    unseen = draw_scenes(things, np.random.default_rng(10**6 + asked.seed), UNSEEN, asked.side)
    whole = iou(whole_image((asked.side, asked.side)), unseen.boxes).mean()
    print(f"the whole scene as the box: IoU {whole:.3f}")
    results = []
    for name in asked.variants.split(","):
        settings = {"backbone": asked.backbone, "block": asked.block, "dimensions": DIMENSIONS, **VARIANTS[name]}
        results.append(run(name, cider.make_network(cider.Config(**settings)), things, unseen, asked))
        print(
            "  ".join(
                f"{key} {value if isinstance(value, str) else round(value, 3)}"
                for key, value in asdict(results[-1]).items()
            ),
            flush=True,
        )
    if asked.json:
        asked.json.write_text(json.dumps([asdict(result) for result in results], indent=1))


def run(name: str, network: CiderNetwork, things: list[Pixels], unseen: Scenes, asked: argparse.Namespace) -> Result:
    started = time.perf_counter()
    untrained, _, _ = judge_boxes(network, unseen)
    loss = arcface.build(arcface.Config(CLASSES, DIMENSIONS, scale=16.0))
    train(network, loss, things, asked)
    trained, best, half = judge_boxes(network, unseen)
    with torch.inference_mode():
        chosen = (network(unseen.planes) @ normalize(loss.centres).T).argmax(dim=1)
    right = (chosen == unseen.labels).float().mean().item()
    return Result(name, untrained, trained, best, half, right, time.perf_counter() - started)


def train(network: CiderNetwork, loss: arcface.ArcFace, things: list[Pixels], asked: argparse.Namespace) -> None:
    learnt = [*network.parameters(), *loss.parameters()]
    optimizer = torch.optim.AdamW(learnt)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=asked.steps)
    rng, generator = np.random.default_rng(asked.seed), torch.Generator().manual_seed(asked.seed)
    network.train()
    for _ in range(asked.steps):
        scenes = draw_scenes(things, rng, BATCH, asked.side)
        optimizer.zero_grad()
        loss(network(scenes.planes, generator), scenes.labels).backward()
        optimizer.step()
        schedule.step()


def judge_boxes(network: CiderNetwork, scenes: Scenes) -> tuple[float, float, float]:
    """Mean IoU of the surest box, of the best of all, and the share of surest ones above 0.5."""
    side = scenes.planes.shape[-1]
    surest, best = [], []
    for found, true in zip(network.eval().locate(scenes.planes), scenes.boxes, strict=True):
        overlaps = iou(found.boxes if len(found.boxes) else whole_image((side, side)), true[None])
        surest.append(overlaps[0])
        best.append(overlaps.max())
    return float(np.mean(surest)), float(np.mean(best)), float(np.mean(np.array(surest) > 0.5))


def draw_scenes(things: list[Pixels], rng: np.random.Generator, count: int, side: int) -> Scenes:
    labels = rng.integers(len(things), size=count)
    drawn = [draw_scene(things[label], rng, side) for label in labels]
    planes = (np.stack([pixels for pixels, _ in drawn]).astype(np.float32) / 255 - 0.45) / 0.225
    return Scenes(
        torch.from_numpy(np.ascontiguousarray(planes.transpose(0, 3, 1, 2))),
        torch.from_numpy(labels),
        np.array([box for _, box in drawn], np.float32),
    )


def draw_scene(thing: Pixels, rng: np.random.Generator, side: int) -> tuple[Pixels, tuple[int, int, int, int]]:
    pixels = paint(rng, side, 20, side / 24, 0.25)
    width, height = (int(share * side) for share in rng.uniform(0.35, 0.6, 2))
    x, y = int(rng.integers(side - width + 1)), int(rng.integers(side - height + 1))
    bent = cv2.resize(thing, (width, height), interpolation=cv2.INTER_AREA)
    pixels[y : y + height, x : x + width] = np.clip(bent * rng.uniform(0.7, 1.2) + rng.uniform(-20, 20), 0, 255)
    return pixels, (x, y, x + width, y + height)


def paint(rng: np.random.Generator, side: int, shapes: int, blur: float, largest: float) -> Pixels:
    """Smooth blobs with squares and discs on top, the largest that share of the side."""
    blobs = cv2.GaussianBlur(rng.normal(size=(side, side, 3)).astype(np.float32), (0, 0), blur)
    pixels = np.asarray(cv2.normalize(blobs, None, 0, 255, cv2.NORM_MINMAX), np.uint8)
    for _ in range(shapes):
        x, y = (int(value) for value in rng.integers(side, size=2))
        colour = tuple(int(value) for value in rng.integers(0, 256, 3))
        reach = max(1, int(rng.uniform(0.05, largest) * side / 2))
        if rng.random() < 0.5:
            cv2.rectangle(pixels, (x - reach, y - reach), (x + reach, y + reach), colour, -1)
        else:
            cv2.circle(pixels, (x, y), reach, colour, -1)
    return pixels


if __name__ == "__main__":
    main()

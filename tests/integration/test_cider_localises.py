"""A small CiDeR network learns to tell things apart, and with that where they are: nobody shows it a box."""

from dataclasses import dataclass

import cv2
import numpy as np
import pytest
from support.builders import Pixels, draw_texture

torch = pytest.importorskip("torch")
cider = pytest.importorskip("resight.encode.backbones.cider")

from resight.boxes import iou  # noqa: E402
from resight.train.losses import arcface  # noqa: E402

SIDE, CLASSES, BATCH, STEPS = 64, 12, 24, 110
RISE = 0.25


@dataclass(frozen=True)
class Scenes:
    planes: torch.Tensor  # [n, 3, SIDE, SIDE]
    labels: torch.Tensor  # [n]
    boxes: np.ndarray  # [n, 4] where the thing is


def test_the_boxes_of_a_trained_network_lie_on_the_things():
    torch.manual_seed(0)
    network = cider.make_network(cider.Config(backbone="resnet10t", block=1, dimensions=64))
    things = [draw_texture(np.random.default_rng(1000 + number), SIDE, SIDE) for number in range(CLASSES)]
    unseen = draw_scenes(things, np.random.default_rng(1), 100)
    before = judge(network, unseen)
    train(network, things)
    after = judge(network, unseen)
    assert after - before >= RISE, f"mean IoU {before:.3f} → {after:.3f}"


def train(network, things: list[Pixels]) -> None:
    loss = arcface.build(arcface.Config(CLASSES, 64, scale=16.0))
    learnt = [*network.parameters(), *loss.parameters()]
    optimizer = torch.optim.AdamW(learnt)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS)
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    network.train()
    for _ in range(STEPS):
        scenes = draw_scenes(things, rng, BATCH)
        optimizer.zero_grad()
        loss(network(scenes.planes, generator), scenes.labels).backward()
        optimizer.step()
        schedule.step()


def judge(network, scenes: Scenes) -> float:
    """Mean IoU of the surest box with the true one; the whole image where there is none."""
    overlaps = []
    for found, true in zip(network.eval().locate(scenes.planes), scenes.boxes, strict=True):
        box = found.boxes[:1] if len(found.boxes) else np.array([[0, 0, SIDE, SIDE]], np.float32)
        overlaps.append(iou(box, true[None])[0])
    return float(np.mean(overlaps))


def draw_scenes(things: list[Pixels], rng: np.random.Generator, count: int) -> Scenes:
    """Each a thing of 35 to 60 % of the side, bent and lit anew, on clutter that no other scene has."""
    labels = rng.integers(len(things), size=count)
    pictures, boxes = [], []
    for label in labels:
        picture = draw_texture(rng, SIDE, SIDE)
        width, height = (int(share * SIDE) for share in rng.uniform(0.35, 0.6, 2))
        x, y = int(rng.integers(SIDE - width + 1)), int(rng.integers(SIDE - height + 1))
        thing = cv2.resize(things[label], (width, height), interpolation=cv2.INTER_AREA)
        lit = np.clip(thing * rng.uniform(0.7, 1.2) + rng.uniform(-20, 20), 0, 255)
        picture[y : y + height, x : x + width] = lit
        pictures.append(picture)
        boxes.append((x, y, x + width, y + height))
    planes = (np.stack(pictures).astype(np.float32) / 255 - 0.45) / 0.225
    return Scenes(
        torch.from_numpy(np.ascontiguousarray(planes.transpose(0, 3, 1, 2))),
        torch.from_numpy(labels),
        np.array(boxes, np.float32),
    )

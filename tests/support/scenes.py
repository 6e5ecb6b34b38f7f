"""Whole scenes on disk, and photographs of them with the true box: what an integration test indexes and looks for.

In: a seed, a folder, or a quadrilateral [4, 2] (top left, top right, bottom right, bottom left). Out: files, pixels
and boxes. A scene is 480 × 360 pixels of texture, shapes and lettering, with hundreds of key points.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from resight.types import Box
from support.builders import Pixels, draw_texture

WIDTH, HEIGHT = 480, 360
QUAD = ((95, 60), (385, 85), (400, 300), (80, 280))  # a part of a scene, seen at a slant
Quad = Sequence[tuple[float, float]]


def write_scenes(folder: Path, count: int, size: tuple[int, int] = (WIDTH, HEIGHT)) -> list[Path]:
    """scene_00.jpg … ; scene i was taken at latitude i, longitude 10 (EXIF)."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"scene_{seed:02}.jpg" for seed in range(count)]
    for seed, path in enumerate(paths):
        write_jpeg(path, draw_scene(seed, *size), position=(seed, 10))
    return paths


def draw_scene(seed: int, width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    rng = np.random.default_rng(seed)
    pixels = draw_texture(rng, width, height)
    for _ in range(12):
        at = (int(rng.integers(0, width - 80)), int(rng.integers(20, height)))
        word = "".join(chr(int(letter)) for letter in rng.integers(65, 91, 4))
        colour = tuple(int(value) for value in rng.integers(0, 256, 3))
        cv2.putText(pixels, word, at, cv2.FONT_HERSHEY_DUPLEX, 0.8, colour, 2, cv2.LINE_AA)
    return pixels


def look_at(scene: Pixels, quad: Quad = QUAD, width: int = 400, height: int = 300) -> Pixels:
    """A photograph whose frame is the quadrilateral of the scene."""
    frame = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    transform = cv2.getPerspectiveTransform(np.array(quad, np.float32), frame)
    return np.asarray(cv2.warpPerspective(scene, transform, (width, height)), np.uint8)


def hang(scene: Pixels, wall: Pixels, quad: Quad = QUAD) -> Pixels:
    """A photograph of a wall on which the scene hangs, its corners at the quadrilateral."""
    height, width = scene.shape[:2]
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    transform = cv2.getPerspectiveTransform(corners, np.array(quad, np.float32))
    size = (wall.shape[1], wall.shape[0])
    covered = cv2.warpPerspective(np.full((height, width), 255, np.uint8), transform, size)
    return np.where(covered[:, :, None] > 127, cv2.warpPerspective(scene, transform, size), wall).astype(np.uint8)


def box_around(quad: Quad = QUAD) -> Box:
    columns, rows = zip(*quad, strict=True)
    return min(columns), min(rows), max(columns), max(rows)


def overlap(first: Box, second: Box) -> float:
    """Intersection over union."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(width, 0) * max(height, 0)
    return shared / (sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (first, second)) - shared)


def write_jpeg(path: Path, pixels: Pixels, position: tuple[float, float] | None = None) -> Path:
    exif = Image.Exif()
    if position:
        exif[0x8825] = {1: "N", 2: (float(position[0]), 0.0, 0.0), 3: "E", 4: (float(position[1]), 0.0, 0.0)}
    Image.fromarray(pixels).save(path, quality=92, exif=exif)
    return path


def write_views(folder: Path, scenes: int) -> None:
    """Scenes, a slanted view of each, and a manifest in which the views are queries for the scenes."""
    rows: list[dict[str, object]] = []
    for scene in range(scenes):
        write_jpeg(folder / f"scene_{scene}.jpg", draw_scene(scene))
        write_jpeg(folder / f"view_{scene}.jpg", look_at(draw_scene(scene)))
        rows.append({"id": f"scene_{scene}", "path": f"scene_{scene}.jpg"})
        truth = {"role": "query", "positives": [f"scene_{scene}"]}
        rows.append({"id": f"view_{scene}", "path": f"view_{scene}.jpg"} | truth)
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

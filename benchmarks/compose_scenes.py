"""Makes a localisation set that is harder than the museum's: small paintings in street photos. Composed from both.

    RESIGHT_DATA=… python benchmarks/compose_scenes.py FOLDER [--scenes 500] [--seed 0]
    resight eval museum_painting_to_photos --data FOLDER

In: `museum/`, `gardenspoint/` and `halensee/` below RESIGHT_DATA. Out: a folder that the data set `museum` reads, and a
README in it that says how it was made. All pixels are real: paintings are cut from photos of them by their true boxes,
and put at 3-15 % of the area (log-uniform, measured on the box) of a street photo, each of which is used once. Street
photos are enlarged to 960 pixels, so that the smallest painting has about 120 pixels a side; they are softer than the
paintings for that. Place, scale, turn (up to 10°), perspective and brightness vary with the seed; edges are soft; a
fifth of the scenes hold two paintings. Every painting comes equally often, to one.
"""

import argparse
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.data import image_files
from resight.types import Box, ImageRef

Pixels = NDArray[np.uint8]

STREETS = ("gardenspoint/day_left", "gardenspoint/day_right", "halensee/database", "halensee/query")
SIDE = 960
AREA = (0.03, 0.15)
BINS = ((0.05, "3-5 %"), (0.08, "5-8 %"), (1.0, "8-15 %"))
TWO = 0.2  # of the scenes
TURN = 10.0  # degrees, either way
PERSPECTIVE = 0.05  # of a side: how far a corner may be off
MARGIN = 0.01  # of the photo's side, around a painting
TRIES = 100


@dataclass(frozen=True)
class Cut:
    """A painting as one photo shows it."""

    painting: int
    photo: str
    pixels: Pixels


@dataclass(frozen=True)
class Placed:
    cut: Cut
    quad: NDArray[np.float32]  # [4, 2] where its corners go

    @property
    def box(self) -> Box:
        (x0, y0), (x1, y1) = self.quad.min(axis=0), self.quad.max(axis=0)
        return float(x0), float(y0), float(x1), float(y1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("RESIGHT_DATA"), help="default: RESIGHT_DATA")
    parser.add_argument("--scenes", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.data is None:
        parser.error("no data: set RESIGHT_DATA, or give --data")
    compose(options.data, options.folder, options.scenes, np.random.default_rng(options.seed))
    says = f"{options.scenes} scenes, seed {options.seed}.\n\n{__doc__}"
    (options.folder / "README.md").write_text(f"# Composed scenes\n\n{says}", encoding="utf-8")


def compose(data: Path, folder: Path, scenes: int, rng: np.random.Generator) -> None:
    streets = [path for name in STREETS for path in sorted((data / name).glob("*.jpg"))]
    if scenes > len(streets):
        raise SystemExit(f"{scenes} scenes need as many street photos; there are {len(streets)}")
    shutil.copytree(data / "museum" / "paintings", folder / "paintings", dirs_exist_ok=True)
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    cuts = deal(list(cut_paintings(data / "museum")), rng)
    truth = []
    for number, street in enumerate(rng.permutation(len(streets))[:scenes]):
        picture = read(streets[street])
        scene, placed = picture, list[Placed]()
        for _ in range(1 + int(rng.random() < TWO)):
            found = place(next(cuts), picture, placed, rng)
            scene, placed = paste(scene, found, rng), [*placed, found]
        file = f"photos/scene_{number:04d}.jpg"
        cv2.imwrite(str(folder / file), cv2.cvtColor(scene, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 92])
        truth.append(describe(file, streets[street].relative_to(data), scene, placed))
    (folder / "truth.json").write_text(json.dumps(truth, indent=1), encoding="utf-8")


def cut_paintings(museum: Path) -> Iterator[Cut]:
    """Every named painting whose box can be trusted, from every photo that shows it."""
    for item in json.loads((museum / "truth.json").read_text(encoding="utf-8")):
        if not item["boxes_ok"] or item["same_bytes_as"]:
            continue
        pixels = image_files.read(ImageRef("", museum / item["file"])).pixels
        for thing in item["objects"]:
            if thing["db_id"] is not None and thing["db_id"] >= 0:
                x0, y0, x1, y1 = (max(round(value), 0) for value in thing["bbox"])
                yield Cut(thing["db_id"], item["file"], pixels[y0:y1, x0:x1])


def deal(cuts: Sequence[Cut], rng: np.random.Generator) -> Iterator[Cut]:
    """Without end: round after round of all paintings in a new order, each by one of its cuts."""
    paintings = sorted({cut.painting for cut in cuts})
    while True:
        for painting in rng.permutation(paintings):
            mine = [cut for cut in cuts if cut.painting == painting]
            yield mine[rng.integers(len(mine))]


def read(path: Path) -> Pixels:
    """A street photo with SIDE pixels on its longer side."""
    pixels = image_files.read(ImageRef("", path)).pixels
    scale = SIDE / max(pixels.shape[:2])
    size = (round(pixels.shape[1] * scale), round(pixels.shape[0] * scale))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_CUBIC), np.uint8)


def place(cut: Cut, street: Pixels, others: Sequence[Placed], rng: np.random.Generator) -> Placed:
    """Somewhere in the photo, at a distance from what is there."""
    size = np.array([street.shape[1], street.shape[0]], np.float64)
    for _ in range(TRIES):
        quad = draw_quad(cut.pixels.shape[1] / cut.pixels.shape[0], float(size.prod()), rng)
        room = size * (1 - 2 * MARGIN) - quad.max(axis=0)
        if (room < 0).any():
            continue
        found = Placed(cut, (quad + size * MARGIN + room * rng.random(2)).astype(np.float32))
        if all(are_apart(found.box, other.box, SIDE * MARGIN) for other in others):
            return found
    raise SystemExit(f"no place for painting {cut.painting}")


def draw_quad(proportion: float, photo: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Corners [4, 2] of a turned, skewed rectangle; its box begins at 0, 0 and has a drawn share of the photo."""
    corners = np.array([[0, 0], [proportion, 0], [proportion, 1], [0, 1]])
    corners = corners + rng.uniform(-PERSPECTIVE, PERSPECTIVE, (4, 2)) * [proportion, 1]
    turn = np.radians(rng.uniform(-TURN, TURN))
    corners = corners @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    corners = corners - corners.min(axis=0)
    share = np.exp(rng.uniform(*np.log(AREA)))
    return np.asarray(corners * np.sqrt(share * photo / corners.max(axis=0).prod()))


def are_apart(first: Box, second: Box, distance: float) -> bool:
    return (
        max(first[0], second[0]) - min(first[2], second[2]) > distance
        or max(first[1], second[1]) - min(first[3], second[3]) > distance
    )


def paste(street: Pixels, placed: Placed, rng: np.random.Generator) -> Pixels:
    """The photo with the painting in it, which becomes a little as bright as what it covers."""
    lengths = np.linalg.norm(np.roll(placed.quad, -1, axis=0) - placed.quad, axis=1)
    width, height = max(round(float(lengths[[0, 2]].max())), 2), max(round(float(lengths[[1, 3]].max())), 2)
    reduces = width < placed.cut.pixels.shape[1]
    flat = cv2.resize(placed.cut.pixels, (width, height), interpolation=cv2.INTER_AREA if reduces else cv2.INTER_CUBIC)
    edges = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    transform = cv2.getPerspectiveTransform(edges - 0.5, placed.quad - 0.5)
    size = (street.shape[1], street.shape[0])
    warped = cv2.warpPerspective(flat, transform, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    mask = cv2.warpPerspective(np.ones((height, width), np.float32), transform, size, flags=cv2.INTER_LINEAR)
    x0, y0, x1, y1 = (int(value) for value in placed.box)
    around = float(street[y0:y1, x0:x1].mean())
    gain = np.clip((around / max(float(flat.mean()), 1.0)) ** 0.3 * rng.uniform(0.9, 1.1), 0.6, 1.5)
    alpha = cv2.GaussianBlur(mask, (0, 0), rng.uniform(0.6, 1.4))[..., None]
    mixed = alpha * np.clip(warped.astype(np.float32) * gain, 0, 255) + (1 - alpha) * street
    return np.asarray(np.rint(mixed), np.uint8)


def describe(file: str, street: Path, scene: Pixels, placed: Sequence[Placed]) -> dict[str, object]:
    height, width = scene.shape[:2]
    shares = [(one.box[2] - one.box[0]) * (one.box[3] - one.box[1]) / (width * height) for one in placed]
    return {
        "file": file,
        "width": width,
        "height": height,
        "year": "composed",
        "set": next(name for most, name in BINS if min(shares) <= most),
        "box_source": f"composed: paintings from museum photos put into {street.as_posix()}",
        "boxes_ok": True,
        "same_bytes_as": None,
        "objects": [
            {"db_id": one.cut.painting, "bbox": list(one.box), "cut_from": one.cut.photo, "share": round(share, 4)}
            for one, share in zip(placed, shares, strict=True)
        ],
    }


if __name__ == "__main__":
    main()

"""Many different pictures from a few hundred: real images in, a folder of tiles and of planted copies out.

    RESIGHT_DATA=… python benchmarks/make_tiles.py FOLDER [--images 20000]

Paintings, street photos, frames of a walk and maps of Mars and the Moon are cut into squares of 112 pixels that have no
pixel in common, and enlarged to 224. Flat ones are left out. Nine tenths of FOLDER are tiles (`tile/NAME.jpg`), the
rest are copies of some of them, passed on in the ways of dedup_parts/copies.py in turn (`WAY/NAME.jpg`). Frames and
street photos that show one place, and maps of the same ground, have true partners beside the planted ones.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from dedup_parts.copies import WAYS, copy
from numpy.typing import NDArray

SIDE, ENLARGED = 112, 224  # pixels
FLAT = 6.0  # standard deviation of the shades
SOURCES = (
    "museum/paintings/*.jpg",
    "mars_ctx/tiles/*",
    "moon/*.jpg",
    "moon/*.png",
    "halensee/*/*.jpg",
    "gardenspoint/*/*.jpg",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=20_000)
    given = parser.parse_args()
    generator = np.random.default_rng(5)
    copies = given.images // 10
    (given.folder / "tile").mkdir(parents=True, exist_ok=True)
    for way in WAYS:
        (given.folder / way).mkdir(exist_ok=True)
    made = 0
    for name, tile in cut_all(Path(os.environ["RESIGHT_DATA"])):
        if made == given.images - copies:
            break
        if made < copies:
            way = list(WAYS)[made % len(WAYS)]
            (given.folder / way / f"{name}.jpg").write_bytes(copy(tile, way, generator))
        cv2.imwrite(str(given.folder / "tile" / f"{name}.jpg"), tile[:, :, ::-1])
        made += 1
    print(f"{made} tiles, {min(made, copies)} copies")


def cut_all(data: Path) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Tiles [ENLARGED, ENLARGED, 3] in RGB, of all sources in turn, so that those that come first are of every kind."""
    waiting = [cut(path) for pattern in SOURCES for path in sorted(data.glob(pattern))]
    while waiting:
        still = []
        for tiles in waiting:
            if (found := next(tiles, None)) is not None:
                still.append(tiles)
                yield found
        waiting = still


def cut(path: Path) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
    for top in range(0, pixels.shape[0] - SIDE + 1, SIDE):
        for left in range(0, pixels.shape[1] - SIDE + 1, SIDE):
            part = pixels[top : top + SIDE, left : left + SIDE]
            if part.std(axis=(0, 1)).mean() >= FLAT:
                large = cv2.resize(part, (ENLARGED, ENLARGED), interpolation=cv2.INTER_CUBIC)
                yield f"{path.parent.name}_{path.stem}_{top}_{left}", np.ascontiguousarray(large[:, :, ::-1], np.uint8)


if __name__ == "__main__":
    main()

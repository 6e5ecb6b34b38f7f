"""Oxford5k and Paris6k in small, by their first protocol: Oxford flat, Paris in folders and with a damaged image."""

from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = ({}, {"which": "paris6k"})


def write(folder: Path, rng: np.random.Generator) -> None:
    oxford, paris = folder / "oxford5k", folder / "paris6k"
    for number in range(6):
        _write_image(oxford / "jpg" / f"all_souls_{number:06d}.jpg", rng)
        _write_image(paris / "jpg" / "louvre" / f"paris_louvre_{number:06d}.jpg", rng)
    (paris / "jpg" / "louvre" / "paris_louvre_000136.jpg").touch()
    _write_truth(oxford / "gt", "all_souls", "oxc1_all_souls_000000", [])
    _write_truth(paris / "gt", "louvre", "paris_louvre_000000", ["paris_louvre_000136"])


def _write_truth(folder: Path, landmark: str, query: str, more: list[str]) -> None:
    name = query.removeprefix("oxc1_")[:-1]
    lists = {
        "query": [f"{query} 4.5 2 60 40.5"],
        "good": [f"{name}0", f"{name}1", *more],
        "ok": [f"{name}3"],
        "junk": [f"{name}4"],
    }
    folder.mkdir(parents=True)
    for kind, lines in lists.items():
        (folder / f"{landmark}_1_{kind}.txt").write_text("".join(f"{line}\n" for line in lines))


def _write_image(path: Path, rng: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), draw_texture(rng, 64, 48))

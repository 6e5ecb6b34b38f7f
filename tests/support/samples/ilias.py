"""ILIAS in small: two instances with three queries and four positives, and three distractors in a folder and a list."""

from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = (
    {},
    {"query_box": True},
    {"distractors": "yfcc100m"},
    {"distractors": "yfcc100m/mini.txt"},
)
BOXES = {
    "bold_bimp_000/query/Q000_00": "4 4 50 40\n",
    "bold_bimp_000/query/Q000_01": "0 0 64 48\n",
    "zippy_zoot_001/query/Q001_00": "10 10 20 20\n",
    "bold_bimp_000/pos/P000_00": "2 3 10 20\n30 8 12 30\n",
    "bold_bimp_000/pos/P000_01": "5 5 30 30\n",
    "zippy_zoot_001/pos/P001_00": "0 0 64 48\n",
    "zippy_zoot_001/pos/P001_01": "20 20 10 10\n",
}
DISTRACTORS = ("00000/a.jpg", "00000/b.jpg", "00001/c.jpg")


def write(folder: Path, rng: np.random.Generator) -> None:
    for name, boxes in BOXES.items():
        path = folder / "ilias_core" / name
        _write_image(path.with_suffix(".jpg"), rng)
        path.with_name(f"{path.name}_bbox.txt").write_text(boxes)
    for name in DISTRACTORS:
        _write_image(folder / "yfcc100m" / name, rng)
    (folder / "yfcc100m" / "mini.txt").write_text("\n".join(DISTRACTORS[1:]) + "\n")
    write_lists(folder)


def write_lists(folder: Path) -> None:
    (folder / "image_ids").mkdir()
    lines = {"query": "{}.jpg,Flickr\n", "pos": "{}.jpg,0.25,7\n"}
    for part, file in (("query", "image_query_ids.txt"), ("pos", "positive_ids.txt")):
        names = [name for name in BOXES if f"/{part}/" in name]
        (folder / "image_ids" / file).write_text("".join(lines[part].format(name) for name in names))


def _write_image(path: Path, rng: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), draw_texture(rng, 64, 48))

"""CPU seconds of one `resight` command in a fresh process: `--help`, `index` and `search` of a small collection.

    python benchmarks/startup.py [--images 70] [--runs 5] [--recipe NAME]

Draws images, indexes them, then runs each command several times and prints one line per command: user and system
seconds of the whole process, those until the first shortlist, those that loading the network takes of them (import of
its runtime, weights, session) and the rest; how many of resight's own modules were loaded, and which heavy packages.
All figures are medians. It asserts nothing. A first run of each command, which is not counted, writes the bytecode.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

HEAVY = ("lance", "lancedb", "pyarrow", "pandas", "faiss", "cv2", "fastapi", "scipy", "onnx", "onnxruntime", "torch")
SIZE, RECTANGLES = (640, 480), 60
# Runs a command and writes what it cost. process_time counts all threads, from the start of the process.
CHILD = """
import atexit, json, sys, time
target, heavy, words = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
spent = {"network": 0.0}

def report():
    loaded = [name for name in sys.modules if name.partition(".")[0] == "resight"]
    spent.update(total=time.process_time(), modules=len(loaded), heavy=[name for name in heavy if name in sys.modules])
    with open(target, "w") as file:
        json.dump(spent, file)

atexit.register(report)
from resight.apps import cli

if words[0] == "search":
    from resight.encode import backbones
    from resight.search import pipeline

    build, shortlist = backbones.build, pipeline.shortlist

    def load_network(*arguments, **settings):
        before = time.process_time()
        try:
            return build(*arguments, **settings)
        finally:
            spent["network"] += time.process_time() - before

    def make_shortlist(*arguments):
        found = shortlist(*arguments)
        spent.setdefault("shortlist", time.process_time())
        return found

    backbones.build, pipeline.shortlist = load_network, make_shortlist
sys.argv = ["resight", *words]
cli.main()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=70, help="how many the collection holds")
    parser.add_argument("--runs", type=int, default=5, help="how often each command is measured")
    parser.add_argument("--recipe", default="", help="the recipe of the collection; resight's default otherwise")
    options = parser.parse_args()
    recipe = ["--recipe", options.recipe] if options.recipe else []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        photos = draw_images(folder / "photos", options.images)
        collection = folder / "c.resight"
        measure(["index", str(folder / "photos"), "--into", str(collection), *recipe], folder)
        print(f"{'command':8}{'total':>8}{'shortlist':>11}{'network':>9}{'rest':>7}{'modules':>9}  heavy packages")
        search = ["search", str(collection), str(photos[0])]
        print_costs("--help", [measure(["--help"], folder) for _ in range(options.runs + 1)])
        print_costs("search", [measure(search, folder) for _ in range(options.runs + 1)])
        index = ["index", str(folder / "photos"), *recipe, "--into"]
        print_costs("index", [measure([*index, str(folder / f"{run}")], folder) for run in range(options.runs + 1)])


def draw_images(folder: Path, count: int) -> list[Path]:
    """Coloured rectangles on a smooth ground: corners for local features, and no two images alike."""
    folder.mkdir()
    random = np.random.default_rng(0)
    for number in range(count):
        ground = random.integers(0, 255, (15, 20, 3), dtype=np.uint8)
        image = Image.fromarray(ground).resize(SIZE, Image.Resampling.BICUBIC)
        draw = ImageDraw.Draw(image)
        for _ in range(RECTANGLES):
            left, top, width, height = (int(value) for value in random.integers(5, (600, 440, 80, 80)))
            colour = tuple(int(value) for value in random.integers(0, 255, 3))
            draw.rectangle((left, top, left + width, top + height), fill=colour)
        image.save(folder / f"{number:03}.jpg")
    return sorted(folder.iterdir())


def measure(words: list[str], scratch: Path) -> dict[str, Any]:
    """What one command in a fresh process cost; its bytecode is kept in `scratch`."""
    target = scratch / "cost.json"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", CHILD, str(target), ",".join(HEAVY), *words]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    cost: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return cost


def print_costs(command: str, costs: list[dict[str, Any]]) -> None:
    counted = costs[1:]
    total, network = (statistics.median(cost[name] for cost in counted) for name in ("total", "network"))
    line = f"{command:8}{total:7.2f}s"
    if "shortlist" in counted[0]:
        shortlist = statistics.median(cost["shortlist"] for cost in counted)
        rest = statistics.median(cost["shortlist"] - cost["network"] for cost in counted)
        line += f"{shortlist:10.2f}s{network:8.2f}s{rest:6.2f}s"
    else:
        line += f"{'':27}"
    print(f"{line}{counted[0]['modules']:9}  {', '.join(counted[0]['heavy']) or 'none'}", flush=True)


if __name__ == "__main__":
    main()

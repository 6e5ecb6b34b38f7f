"""What syncing costs: the same images added by two versions of resight, in turn.

    python benchmarks/ingest.py OTHER [--photos FOLDER] [--recipe NAME] [--repeats 5]

OTHER is the `src` folder of another version, with its compiled kernels. `store` writes batches of 32 images of 1,000
SIFT rows to a new collection, without any encoding: the most that syncing can cost. `whole` is `resight index` of the
photos, with networks and imports. The versions take turns, so that a busy machine slows both down. Prints JSON: images
per second of each run, and the ratio of the medians, this version by the other.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BATCH, BATCHES, ROWS = 32, 12, 1000
OWN = Path(__file__).resolve().parents[1] / "src"
Run = Callable[[Path, Path], float]  # the `src` of a version and a new folder → images per second
STORE = """
import sys, time
from pathlib import Path
import numpy as np
from resight.store import ImageRecord, Layout, Record, lance
from resight.types import Descriptors

folder, batch, batches, rows = Path(sys.argv[1]), *map(int, sys.argv[2:])
rng = np.random.default_rng(0)
vectors = rng.integers(0, 255, (rows, 128), dtype=np.uint8)
owners, points = np.zeros(rows, np.int32), rng.random((rows, 4), dtype=np.float32)

def make(id):
    image = ImageRecord(id, Path("/photos/x.jpg"), "0" * 64, 1, 1, (640, 480), {})
    return Record(image, (Descriptors((id,), vectors, owners, points=points),))

store = lance.build(lance.Config(folder, (Layout("uint8", 128),)))
portions = [[make(f"{number}-{i}") for i in range(batch)] for number in range(batches + 1)]
store.write(portions[0])
began = time.perf_counter()
for portion in portions[1:]:
    store.write(portion)
print(batch * batches / (time.perf_counter() - began))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--recipe", default="sift")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    parts: dict[str, Run] = {"store": write_store}
    if options.photos:
        parts["whole"] = lambda source, folder: index_photos(source, folder, options.photos, options.recipe)
    print(json.dumps({name: compare(run, options.other, options.repeats) for name, run in parts.items()}, indent=1))


def compare(run: Run, other: Path, repeats: int) -> dict[str, object]:
    sides: dict[str, list[float]] = {"other": [], "own": []}
    for turn in range(repeats):
        for name in sides if turn % 2 else reversed(sides):
            with tempfile.TemporaryDirectory(prefix="resight-ingest-") as scratch:
                sides[name].append(run(OWN if name == "own" else other, Path(scratch) / "new.resight"))
    middle = {name: statistics.median(rates) for name, rates in sides.items()}
    rounded = {name: [round(rate, 1) for rate in rates] for name, rates in sides.items()}
    return {**rounded, "ratio": round(middle["own"] / middle["other"], 3)}


def write_store(source: Path, folder: Path) -> float:
    """Images per second."""
    return float(call(source, "-c", STORE, str(folder), str(BATCH), str(BATCHES), str(ROWS)))


def index_photos(source: Path, folder: Path, photos: Path, recipe: str) -> float:
    count = sum(path.is_file() for path in photos.rglob("*"))
    began = time.perf_counter()
    call(source, "-m", "resight", "index", str(photos), "--into", str(folder), "--recipe", recipe)
    return count / (time.perf_counter() - began)


def call(source: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()

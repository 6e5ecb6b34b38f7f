"""Indexing many photos: peak memory, and the same collection at the end whether or not it was killed on the way.

    RESIGHT_DATA=FOLDER python benchmarks/endurance.py [--images 2000] [--kills 3] [--preset NAME] [--json FILE]

Makes `--images` different photos from the real ones (museum, Gardens Point, Halensee) by cropping and recompressing,
indexes them once without a break and once with kills (SIGKILL, at random moments), and compares the two collections
row by row. Memory is the peak resident set of the indexing process, as the kernel reports it.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from resight.collection import DEFAULT, open_collection

PROGRAM = """
import resource, sys, resight
report = resight.open(sys.argv[1], sys.argv[3]).add(sys.argv[2])
print(report.added, report.unchanged, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--preset", default=DEFAULT)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_photos(Path(os.environ["RESIGHT_DATA"]), folder / "photos", options.images)
        started = time.perf_counter()
        added, _, peak = index(folder / "whole.resight", folder / "photos", options.preset)
        seconds = time.perf_counter() - started
        kills = index_with_kills(folder / "killed.resight", folder / "photos", options.preset, options.kills, seconds)
        last_added, already, last_peak = index(folder / "killed.resight", folder / "photos", options.preset)
        same = fingerprint(folder / "whole.resight") == fingerprint(folder / "killed.resight")
    figures = {
        "images": added,
        "seconds": round(seconds, 1),
        "images a second": round(added / seconds, 2),
        "peak MiB": round(max(peak, last_peak) / 1024),
        "kills": kills,
        "already stored when the last run began": already,
        "added by the last run": last_added,
        "same collection": same,
    }
    for name, value in figures.items():
        print(f"{name:<42} {value}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def make_photos(root: Path, target: Path, count: int) -> None:
    sources = sorted(path for name in ("museum", "gardenspoint", "halensee") for path in (root / name).rglob("*.jpg"))
    target.mkdir()
    for number in range(count):
        with Image.open(sources[number % len(sources)]) as image:
            width, height = image.size
            turn = number // len(sources)
            part = image.convert("RGB").crop((8 * turn, 5 * turn, width - 6 * turn, height - 9 * turn))
            part.save(target / f"{number:05d}.jpg", quality=88 - turn)


def index(collection: Path, photos: Path, preset: str) -> tuple[int, int, int]:
    """Images added, images that were there already, peak memory in KiB."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(collection), str(photos), preset],
        check=True,
        capture_output=True,
        text=True,
    )
    added, unchanged, peak = map(int, done.stdout.split())
    return added, unchanged, peak


def index_with_kills(collection: Path, photos: Path, preset: str, kills: int, whole: float) -> int:
    generator = random.Random(0)
    for number in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(collection), str(photos), preset], stdout=subprocess.DEVNULL
        )
        time.sleep(whole * generator.uniform(0.15, 0.3))
        if process.poll() is not None:
            return number
        process.send_signal(signal.SIGKILL)
        process.wait()
    return kills


def fingerprint(folder: Path) -> str:
    """Of everything that is stored, image by image in the order of ids."""
    collection = open_collection(folder, must_exist=True)
    parts = {
        record.id: [repr((record.sha256, record.size, sorted(record.attributes.items())))]
        for record in collection.records()
    }
    for branch in range(len(collection.recipe.branches)):
        for name in parts:
            (rows,) = collection.descriptors(branch, [name])
            arrays = (rows.vectors, rows.owners, rows.points, rows.words)
            parts[name] += [hashlib.sha256(array.tobytes()).hexdigest() for array in arrays if array is not None]
    return hashlib.sha256(json.dumps(sorted(parts.items())).encode()).hexdigest()


if __name__ == "__main__":
    main()

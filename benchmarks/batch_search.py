"""Searches per second in a batch and one by one, from the same files, with the same answers.

    python benchmarks/batch_search.py [--images 100] [--queries 40] [--rounds 2] [--recipe NAME]

Draws images, indexes them, and searches for slanted photographs of some of them: one call of `search` per photograph,
and one call with a list of all. Rounds alternate; the fastest of each counts, because other programs only ever slow it
down. Prints one line of JSON: searches per second, their ratio, the CPU seconds of both (one by one, batch), whether
all answers are equal, cores, and the load of the machine before and after. It asserts nothing.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

import resight

WIDTH, HEIGHT = 1280, 960
FRAME = np.array([[0, 0], [WIDTH, 0], [WIDTH, HEIGHT], [0, HEIGHT]], np.float32)
SLANTED = np.array([[180, 120], [1040, 190], [1100, 800], [150, 760]], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--recipe", default="sift_tokens")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), options)))


def measure(folder: Path, options: argparse.Namespace) -> dict[str, object]:
    queries = draw(folder, options.images, options.queries)
    photos = resight.open(folder / "photos.resight", options.recipe)
    photos.add(folder / "photos")
    photos.search(queries[0])  # builds the indexes, and loads the networks
    before = os.getloadavg()[0]
    single, batch, spent = [], [], [0.0, 0.0]
    for _ in range(options.rounds):
        started, cpu = time.perf_counter(), time.process_time()
        alone = [photos.search(path) for path in queries]
        single.append(time.perf_counter() - started)
        spent[0] += time.process_time() - cpu
        started, cpu = time.perf_counter(), time.process_time()
        together = photos.search(queries)
        batch.append(time.perf_counter() - started)
        spent[1] += time.process_time() - cpu
    return {
        "recipe": options.recipe,
        "images": options.images,
        "queries": len(queries),
        "searches_per_second": round(len(queries) / min(single), 2),
        "searches_per_second_batch": round(len(queries) / min(batch), 2),
        "ratio": round(min(single) / min(batch), 2),
        "seconds": [round(value, 2) for value in single],
        "seconds_batch": [round(value, 2) for value in batch],
        "cpu_seconds": [round(value, 2) for value in spent],
        "equal": alone == together,
        "cores": os.cpu_count(),
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
    }


def draw(folder: Path, images: int, queries: int) -> list[Path]:
    """The photographs to search for; the images lie in `photos`."""
    (folder / "photos").mkdir()
    paths = []
    for number in range(images):
        rng = np.random.default_rng(number)
        coarse = rng.integers(0, 256, (HEIGHT // 16, WIDTH // 16, 3), dtype=np.uint8)
        pixels = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        for _ in range(40):
            (x, y), word = rng.integers(0, WIDTH, 2).tolist(), "".join(map(chr, rng.integers(65, 91, 4)))
            colour = tuple(rng.integers(0, 256, 3).tolist())
            cv2.putText(pixels, word, (x, y), cv2.FONT_HERSHEY_DUPLEX, 2.0, colour, 3, cv2.LINE_AA)
        cv2.imwrite(str(folder / "photos" / f"{number:03}.jpg"), pixels)
        if number < queries:
            view = cv2.warpPerspective(pixels, cv2.getPerspectiveTransform(SLANTED, FRAME), (WIDTH, HEIGHT))
            paths.append(folder / f"query_{number:03}.jpg")
            cv2.imwrite(str(paths[-1]), view)
    return paths


if __name__ == "__main__":
    main()

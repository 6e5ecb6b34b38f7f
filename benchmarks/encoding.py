"""Encoding many photographs: images a second, how busy the cores are and with what, and the peak of memory.

    python benchmarks/encoding.py [--recipe tokens …] [--images 1000] [--set key=value …] [--json FILE]

The photographs are those of the demo, written again and again as files of their own (JPEG, 1,024 pixels on the longer
side), so that each is read, decoded, encoded and stored as a user's would be. Each recipe runs in a process of its own.
`busy` is CPU time of the process over wall time × cores; `inference` is the part of wall time × cores that threads
spend inside the network itself (the run of the ONNX session or of the torch module), `decoding` that of reading and
decoding; `memory` is the peak of resident memory above that of the loaded network, before the first photograph.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import mvtbdata

from resight import recipe as recipes
from resight.collection import Collection, open_collection
from resight.data import image_files

SIDE = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", nargs="+", default=["tokens"])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.recipe[0], options.images, options.set)))
        return
    print("| recipe | images/s | busy | inference | decoding | memory, MiB |\n|---|---|---|---|---|---|")
    rows = []
    for name in options.recipe:
        overrides = [word for override in options.set for word in ("--set", override)]
        command = [sys.executable, __file__, "--here", "--recipe", name, "--images", str(options.images), *overrides]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(to_row(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measure(name: str, count: int, overrides: list[str]) -> dict[str, Any]:
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "photos"
        write_photos(folder, count)
        collection = open_collection(Path(scratch) / "all.resight", recipes.load(name, overrides))
        inference, decoding = Stopwatch(), Stopwatch()
        watch_networks(collection, inference)
        image_files.read = decoding.watch(image_files.read)  # type: ignore[assignment]
        loaded = read_peak()
        wall, cpu = time.perf_counter(), time.process_time()
        report = collection.add(folder)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "recipe": name,
        "images": report.added,
        "images_a_second": report.added / wall,
        "busy": cpu / wall / cores,
        "inference": inference.seconds / wall / cores,
        "decoding": decoding.seconds / wall / cores,
        "memory_mib": (read_peak() - loaded) / 2**20,
        "loaded_mib": loaded / 2**20,
    }


class Stopwatch:
    """CPU seconds that threads spend inside the functions that are watched."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()

    def watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                with self._lock:
                    self.seconds += time.thread_time() - started

        return timed


class Session:
    """An ONNX session whose runs are watched."""

    def __init__(self, session: Any, watch: Stopwatch) -> None:
        self.run = watch.watch(session.run)


def watch_networks(collection: Collection, watch: Stopwatch) -> None:
    for backbone in collection._encoding.encoder._backbones:
        if hasattr(backbone, "_session"):
            backbone._session = Session(backbone._session, watch)
        elif hasattr(backbone, "_network"):
            backbone._network.run = watch.watch(backbone._network.run)
        else:
            backbone.extract = watch.watch(lambda *given, run=backbone.extract: list(run(*given)))  # type: ignore[method-assign]


def write_photos(folder: Path, count: int) -> None:
    folder.mkdir()
    sources = sorted(
        path for path in (Path(mvtbdata.__file__).parent / "images").rglob("*") if path.suffix in (".jpg", ".png")
    )
    loaded = []
    for path in sources[:60]:
        pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if pixels is not None and min(pixels.shape[:2]) > 100:
            scale = SIDE / max(pixels.shape[:2])
            loaded.append(cv2.resize(pixels, None, fx=scale, fy=scale))
    for number in range(count):
        pixels = loaded[number % len(loaded)].copy()
        pixels[0, 0] = (number % 256, number // 256 % 256, 0)  # no two files alike
        cv2.imwrite(str(folder / f"{number:06}.jpg"), pixels)


def read_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def to_row(row: dict[str, Any]) -> str:
    shares = " | ".join(f"{100 * row[name]:.0f} %" for name in ("busy", "inference", "decoding"))
    return f"| {row['recipe']} | {row['images_a_second']:.1f} | {shares} | {row['memory_mib']:.0f} |"


if __name__ == "__main__":
    main()

"""Encoding on two Ray nodes, one of which is killed in the middle: complete, each image once, and how fast.

    python benchmarks/ray_encoding.py [--images 5000] [--recipe NAME] [--spare] [--scratch FOLDER] [--json FILE]

Makes small textured JPEGs, starts two nodes on loopback (processes, ports, a CPU and a temporary folder of their own
each), indexes the images with `engine="ray://…"`, and kills every process of the second node (SIGKILL) when half of
them are stored; `--spare` leaves it alone. Then the images are indexed on one machine without Ray, and the two
collections are compared row by row. The driver runs on the first node. The encoding is a light one unless `--recipe`
names another: the question here is what becomes of the images, not how long a network takes.
"""

import argparse
import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import lance
import numpy as np

from resight.collection import Collection, open_collection
from resight.ray_cluster import ENVIRONMENT
from resight.types import Branch, Choice, Recipe

SIDE = 160
LIGHT = Recipe("light", (Branch(Choice("orb", {"features": 100}), Choice("local")),))
START_SECONDS = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--recipe", help="a preset by name, or the path of a recipe")
    parser.add_argument("--spare", action="store_true", help="kill nobody")
    parser.add_argument("--scratch", type=Path, help="where the images and collections lie for the time of the run")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # The nodes, and this process as their driver, let in nobody else.
    os.environ.update({**ENVIRONMENT, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})
    with tempfile.TemporaryDirectory(dir=options.scratch, prefix="ray") as scratch:
        folder = Path(scratch)
        make_images(folder / "photos", options.images)
        figures = run(folder, options.images, options.recipe or LIGHT, options.spare)
    for name, value in figures.items():
        print(f"{name:<42} {value}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


def run(folder: Path, images: int, recipe: Recipe | str, spare: bool) -> dict[str, Any]:
    import ray  # which reads the environment when it is imported

    spread = open_collection(folder / "spread.resight", recipe)
    port = find_port()
    with (
        start_node(folder / "one", "--head", f"--port={port}"),
        start_node(folder / "two", f"--address=127.0.0.1:{port}") as second,
    ):
        wait_for_nodes(port)
        progress = Watch(images, None if spare else second)
        started = time.perf_counter()
        try:
            report = spread.add(folder / "photos", engine=f"ray://127.0.0.1:{port}", progress=progress)
        finally:
            ray.shutdown()  # before its nodes are gone
        seconds = time.perf_counter() - started
    rows = lance.dataset(folder / "spread.resight" / "images.lance").to_table(columns=["id"])
    alone = open_collection(folder / "alone.resight", recipe)
    started = time.perf_counter()
    alone.add(folder / "photos")
    return {
        "images": images,
        "added, as the report says": report.added,
        "rows in the table": len(rows),
        "different ids": len(set(rows["id"].to_pylist())),
        "seconds": round(seconds, 1),
        "images a second": round(images / seconds, 1),
        **progress.figures,
        "files, and versions that name them": describe_files(folder / "spread.resight"),
        "one machine without Ray, images a second": round(images / (time.perf_counter() - started), 1),
        "same rows as there": fingerprint(spread) == fingerprint(alone),
    }


class Watch:
    """Follows the progress; kills a node when half of the images are stored."""

    def __init__(self, images: int, victim: "subprocess.Popen[bytes] | None") -> None:
        self._half = images // 2
        self._victim = victim
        self._last = time.perf_counter()
        self.figures: dict[str, Any] = {}

    def __call__(self, done: int, _total: int) -> None:
        now = time.perf_counter()
        if "stored when the node was killed" in self.figures:
            waited = max(now - self._last, self.figures["longest wait for a commit after that, s"])
            self.figures["longest wait for a commit after that, s"] = round(waited, 1)
        self._last = now
        if self._victim is not None and done >= self._half:
            processes = list_descendants(self._victim.pid)
            for process in processes:
                os.kill(process, signal.SIGKILL)
            self._victim = None
            self.figures["stored when the node was killed"] = done
            self.figures["processes killed"] = len(processes)
            self.figures["longest wait for a commit after that, s"] = 0.0


def make_images(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        rng = np.random.default_rng(number)
        noise = rng.integers(0, 256, (SIDE // 8, SIDE // 8, 3), dtype=np.uint8)
        texture = cv2.resize(noise, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
        for x, y, side in rng.integers(4, SIDE // 2, (12, 3)).tolist():
            colour = rng.integers(0, 256, 3).tolist()
            cv2.rectangle(texture, (x + side, y), (x + side + 20, y + side), colour, -1)
        cv2.imwrite(str(folder / f"{number:06}.jpg"), texture)


@contextmanager
def start_node(folder: Path, *words: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A node of one CPU that ends, with all its processes, when the context does."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *words, "--block", "--num-cpus=1"]
    command += ["--disable-usage-stats", "--object-store-memory=200000000"]
    if "--head" in words:  # the others take its folder, below which each has its own
        command += [f"--temp-dir={folder}", "--include-dashboard=false"]
    with folder.with_suffix(".log").open("wb") as log:
        node = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield node
    finally:
        for process in list_descendants(node.pid):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        node.wait()


def wait_for_nodes(port: int) -> None:
    """Until both have joined; asked from another process, since this one is to be the driver alone."""
    program = (
        f"import ray; ray.init('127.0.0.1:{port}', log_to_driver=False); "
        "print(sum(node['Alive'] for node in ray.nodes()))"
    )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        asked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        if asked.stdout.strip().endswith("2"):
            return
        time.sleep(2)
    raise SystemExit(f"two nodes have not come together within {START_SECONDS} seconds: {asked.stderr[-400:]}")


def list_descendants(pid: int) -> list[int]:
    """A process and all that it has started, as the kernel knows them."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for process in found:
        found += parents.get(process, [])
    return found


def find_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def describe_files(folder: Path) -> str:
    table = lance.dataset(folder / "images.lance")
    named = len(table.get_fragments())
    there = len(list((folder / "images.lance" / "data").iterdir()))
    return f"{there} on the disk, {named} named, {len(table.versions())} versions"


def fingerprint(collection: Collection) -> str:
    """Of every row of every branch, in order of id."""
    digest = hashlib.sha256()
    ids = sorted(record.id for record in collection.records())
    for record in collection.records(ids):
        digest.update(repr(record).encode())
    for branch in range(len(collection.metadata.spaces)):
        for rows in collection.descriptors(branch, ids):
            for part in ("vectors", "owners", "boxes", "weights", "points", "words", "seeds"):
                array = getattr(rows, part)
                digest.update(b"" if array is None else array.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main()

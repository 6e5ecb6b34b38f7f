"""Too little disk space, and too few file descriptors: an error of resight's own, and nothing lost or removed.

Each try runs `resight index` and `resight search` as processes of their own, with so much free space or so many
descriptors. Afterwards, without the shortage, every image that was reported as added is there, and `resight verify`
finds no fault. A process may end with 0 or with an exit code of resight, never by a signal or with a traceback.
"""

import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from support.lossy_disk import is_available, lossy_disk

from chaos_parts.damage import make_photos

FREE_KILOBYTES = (0, 8, 32, 64, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
DESCRIPTORS = (*range(8, 60, 3), 80, 120)
RECIPE = "sift_tokens"
CODES = range(8)  # exit codes of resight.errors


def fill_disk(folder: Path, count: int, seed: int) -> dict[str, object]:  # noqa: ARG001 - the same for every command
    if not is_available():
        return {"skipped": "needs root, a loop device and ext4"}
    photos = make_photos(folder / "photos")
    outcomes: Counter[str] = Counter()
    bad: list[str] = []
    with lossy_disk(folder) as disk:
        for free in FREE_KILOBYTES[:count]:
            collection = disk.path / f"{free}.resight"
            _call("index", str(photos / "0.png"), "--into", str(collection), "--recipe", RECIPE)
            _fill(disk.path, free)
            for words in (
                ("index", str(photos), "--into", str(collection)),
                ("search", str(collection), str(photos / "3.png")),
            ):
                _judge(f"{free} kB: {words[0]}", _call(*words), outcomes, bad)
            (disk.path / "ballast").unlink()
            for words in (("verify", "--deep", str(collection)), ("search", str(collection), str(photos / "3.png"))):
                done = _call(*words)
                if done.returncode:
                    bad.append(f"{free} kB, afterwards: {words[0]}: {done.stderr[-300:]}")
    return {"tries": sum(outcomes.values()), "outcomes": dict(outcomes), "bad": len(bad), "why": bad[:5]}


def withhold_descriptors(folder: Path, count: int, seed: int) -> dict[str, object]:  # noqa: ARG001 - as above
    photos = make_photos(folder / "photos")
    collection = folder / "photos.resight"
    _call("index", str(photos), "--into", str(collection), "--recipe", RECIPE)
    _call("search", str(collection), str(photos / "3.png"))
    indexes = sorted((collection / "indexes").iterdir())
    outcomes: Counter[str] = Counter()
    bad: list[str] = []
    for most in DESCRIPTORS[:count]:

        def limit(most: int = most) -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

        done = _call("search", str(collection), str(photos / "3.png"), before=limit)
        _judge(f"{most} descriptors", done, outcomes, bad)
        if sorted((collection / "indexes").iterdir()) != indexes:
            bad.append(f"{most} descriptors: the indexes have changed")
            indexes = sorted((collection / "indexes").iterdir())
    return {"tries": sum(outcomes.values()), "outcomes": dict(outcomes), "bad": len(bad), "why": bad[:5]}


def _judge(name: str, done: "subprocess.CompletedProcess[str]", outcomes: Counter[str], bad: list[str]) -> None:
    outcomes[f"exit {done.returncode}"] += 1
    if done.returncode not in CODES or "Traceback" in done.stderr:
        bad.append(f"{name}: exit {done.returncode}: {done.stderr[-300:]}")


def _fill(folder: Path, free: int) -> None:
    """Leave `free` kilobytes."""
    status = os.statvfs(folder)
    with (folder / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(status.f_bavail * status.f_frsize - free * 1024, 1))


def _call(*words: str, before: Callable[[], None] | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "resight", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, preexec_fn=before, check=False)

"""A full disk, or too many open files, from every single call on: an error of resight's own, and nothing lost.

`failing_calls.c` is loaded before the C library and lets every call that needs space (ENOSPC) or a file descriptor
(EMFILE) fail from the n-th on, below one folder. For each n, images are added, deleted and searched for; afterwards,
with calls that work again, `verify --deep` finds no fault, every image that was reported as added is there, and none
that was reported as deleted. The whole run is one process of its own, in which the library is loaded.
"""

import ctypes
import errno
import json
import logging
import os
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from pathlib import Path

from chaos_parts.damage import IMAGES, RECIPE, make_photos
from resight.collection import Collection, open_collection
from resight.collection.upkeep.integrity import verify
from resight.errors import ResightError

SOURCE = Path(__file__).with_name("failing_calls.c")
ERRORS = (errno.ENOSPC, errno.EMFILE)
SHOWN = 8


def fail_calls(folder: Path, count: int, seed: int) -> dict[str, object]:  # noqa: ARG001 - the same for every command
    """`count`: tries per error, spread over all calls."""
    if sys.platform != "linux" or shutil.which("cc") is None:
        return {"skipped": "needs Linux and a C compiler"}
    library = folder / "failing_calls.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    words = [sys.executable, "-m", __name__, str(folder), str(library), str(count)]
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"tries": 0, "bad": 1, "why": [f"exit {done.returncode}: {done.stderr[-2000:]}"]}
    found: dict[str, object] = json.loads(done.stdout)
    return found


class Run:
    def __init__(self, folder: Path, library: Path) -> None:
        self._calls = ctypes.CDLL(str(library))
        self._photos, self._whole, self._copy = make_photos(folder / "photos"), folder / "whole", folder / "copy"
        collection = open_collection(self._whole, RECIPE)
        collection.add(*[self._photos / f"{number}.png" for number in range(IMAGES - 3)])
        collection.search(self._photos / "3.png")
        self._networks = collection._encoding.encoder.networks
        self.outcomes: Counter[str] = Counter()
        self.bad: list[str] = []

    def count_calls(self, error: int) -> int:
        return self.attempt(0, error)

    def attempt(self, first: int, error: int) -> int:
        """Work while calls fail from this one on; returns how many there were."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._whole, self._copy)
        expected = {f"{number}.png": True for number in range(IMAGES - 3)}
        self._calls.fail_from(first, error, str(self._copy).encode())
        try:
            ended = self._work(expected)
        except BaseException as found:
            ended = f"{type(found).__name__}"
            self.bad.append(f"{errno.errorcode[error]} from call {first}: {_tell(found)}")
        finally:
            calls = int(self._calls.count_calls())
            self._calls.fail_from(0, 0, b"")
        self.outcomes[f"{errno.errorcode[error]}: {ended}"] += 1
        try:
            self._judge(expected)
        except (ResightError, AssertionError) as found:
            self.bad.append(f"{errno.errorcode[error]} from call {first}, afterwards: {_tell(found)}")
        return calls

    def _work(self, expected: dict[str, bool]) -> str:
        """`expected`: id → whether the image must be there; without those of which an error leaves both open."""
        ended = "done"
        collection: Collection | None = None
        for step in (self._add, self._delete, self._search):
            try:
                collection = collection or open_collection(self._copy, must_exist=True, networks=self._networks)
                step(collection, expected)
            except ResightError as error:
                ended = type(error).__name__
        return ended

    def _add(self, collection: Collection, expected: dict[str, bool]) -> None:
        collection.add(*[self._photos / f"{number}.png" for number in range(IMAGES - 3, IMAGES)])
        expected.update({f"{number}.png": True for number in range(IMAGES - 3, IMAGES)})

    def _delete(self, collection: Collection, expected: dict[str, bool]) -> None:
        del expected["0.png"]
        collection.delete(["0.png"])
        expected["0.png"] = False

    def _search(self, collection: Collection, _: dict[str, bool]) -> None:
        (hit,) = collection.search(self._photos / "3.png", k=1)
        assert hit.id == "3.png", f"another answer: {hit.id}"

    def _judge(self, expected: dict[str, bool]) -> None:
        found = verify(self._copy, deep=True)
        assert not found.faults, f"{found.faults[0]}"
        collection = open_collection(self._copy, must_exist=True, networks=self._networks)
        there = {record.id for record in collection.records()}
        wrong = [name for name, is_there in expected.items() if (name in there) != is_there]
        assert not wrong, f"lost, or back again: {', '.join(wrong)}"
        self._search(collection, {})


def _tell(error: BaseException) -> str:
    lines = traceback.format_exception(error)
    return "".join(lines[-3:])[-700:]


def main() -> None:
    folder, library, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    logging.disable(logging.WARNING)
    run, calls = Run(folder, library), {}
    for error in ERRORS:
        total = calls[errno.errorcode[error]] = run.count_calls(error)
        for first in sorted({1 + number * total // min(count, total) for number in range(min(count, total))}):
            run.attempt(first, error)
    print(
        json.dumps(
            {
                "tries": run.outcomes.total(),
                "calls": calls,
                "outcomes": dict(run.outcomes),
                "bad": len(run.bad),
                "why": run.bad[:SHOWN],
            }
        )
    )


if __name__ == "__main__":
    main()

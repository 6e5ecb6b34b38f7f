"""A process that writes images to a store, and is cut off; then: is everything that it acknowledged there, and whole?

The writer appends, replaces, deletes and compacts. It prints a line for every change that has returned, which is its
acknowledgement.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from support.lossy_disk import is_available, lossy_disk

WRITER = """
import sys
from pathlib import Path
import numpy as np
from resight.store import ImageRecord, Layout, Record, lance
from resight.types import Descriptors

def make(id, value):
    image = ImageRecord(id, Path("/photos/x.jpg"), "0" * 64, 1, 1, (1, 1), {"value": value})
    return Record(image, (Descriptors((id,), np.full((50, 128), value, np.uint8), np.zeros(50, np.int32)),))

store, number = lance.build(lance.Config(Path(sys.argv[1]), (Layout("uint8", 128),))), int(sys.argv[2])
while True:
    number += 1
    step = number % 7
    if step == 5:
        name = f"{number - 5}-0"
        print("try", name, 0, flush=True)
        store.write([make(name, number % 251)])
        print("put", name, number % 251, flush=True)
    elif step == 6:
        name = f"{number - 5}-1"
        print("try", name, 0, flush=True)
        store.remove([name])
        print("gone", name, 0, flush=True)
    else:
        store.write([make(f"{number}-{i}", number % 251) for i in range(4)])
        for i in range(4):
            print("put", f"{number}-{i}", number % 251, flush=True)
    if number % 20 == 0:
        store.compact()
"""
CHECKER = """
import json, sys
from pathlib import Path
from resight.store import lance

store = lance.build(lance.Config(Path(sys.argv[1])))
found = {}
for part in store.descriptors(0):
    for owner, name in enumerate(part.ids):
        rows = part.vectors[part.owners == owner]
        found[name] = int(rows[0, 0]) if len(rows) == 50 and (rows == rows[0, 0]).all() else -1
print(json.dumps(found))
"""


def cut_power(folder: Path, count: int, seed: int) -> dict[str, object]:
    if not is_available():
        return {"skipped": "needs root, a loop device and ext4"}
    with lossy_disk(folder) as disk:

        def strike(process: "subprocess.Popen[str]") -> None:
            disk.cut_power()
            process.kill()
            process.wait()
            disk.unplug()
            disk.plug_in()

        return _repeat(disk.path, count, seed, strike)


def kill(folder: Path, count: int, seed: int) -> dict[str, object]:
    def strike(process: "subprocess.Popen[str]") -> None:
        process.kill()
        process.wait()

    return _repeat(folder, count, seed, strike)


def _repeat(
    folder: Path, count: int, seed: int, strike: Callable[["subprocess.Popen[str]"], None]
) -> dict[str, object]:
    chance = random.Random(seed)
    expected: dict[str, int | None] = {}
    lost: list[str] = []
    unopened: list[str] = []
    number = 0
    for _ in range(count):
        collection = folder / "collection"
        command = [sys.executable, "-c", WRITER, str(collection), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            time.sleep(chance.uniform(0, 0.6))
            strike(process)
            lines += process.stdout.readlines()
        for line in filter(None, map(str.split, lines)):
            if line[0] == "try":
                expected.pop(line[1], None)  # from here to its acknowledgement, either is right
            elif len(line) == 3:
                expected[line[1]] = int(line[2]) if line[0] == "put" else None
        number = (number // 7 + 1000) * 7
        answer = subprocess.run([sys.executable, "-c", CHECKER, str(collection)], capture_output=True, text=True)
        if answer.returncode:
            unopened.append(answer.stderr.strip().rpartition("\n")[2])
            continue
        found = json.loads(answer.stdout)
        lost += [name for name, value in expected.items() if value is not None and found.get(name) != value]
        lost += [name for name, value in expected.items() if value is None and name in found]
    return {
        "count": count,
        "acknowledged": len(expected),
        "lost": len(set(lost)),
        "unopened": len(unopened),
        "why": unopened[:3],
    }

"""A process that writes images to a store, and is cut off; then: is everything that it acknowledged there, and whole?

The writer (lives.py) appends, replaces, deletes and compacts. It prints a line for every change that has
returned: that is its acknowledgement.
"""

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from support.lossy_disk import LossyDisk, is_available, lossy_disk

from chaos_parts import lives
from chaos_parts.warm import WarmProcess

Strike = Callable[[WarmProcess], None]
LONGEST = 0.6  # seconds that a writer may live after its first acknowledgement


def cut_power(folder: Path, count: int, seed: int) -> dict[str, object]:
    if not is_available():
        return {"skipped": "needs root, a loop device and ext4"}
    with lossy_disk(folder) as disk:
        return _repeat(disk.path, count, seed, lambda process: cut_and_return(process, disk))


def cut_and_return(process: WarmProcess, disk: LossyDisk) -> None:
    """A power cut ends all processes; then the disk is there again, with what had reached it."""
    disk.cut_power()
    process.kill()
    disk.unplug()
    disk.plug_in()


def kill(folder: Path, count: int, seed: int) -> dict[str, object]:
    return _repeat(folder, count, seed, WarmProcess.kill)


def _repeat(folder: Path, count: int, seed: int, strike: Strike) -> dict[str, object]:
    chance = random.Random(seed)
    collection = str(folder / "collection")
    expected: dict[str, int | None] = {}
    lost: list[str] = []
    unopened: list[str] = []
    number = 0
    lives_done = 0
    with suppress(KeyboardInterrupt):
        for _ in range(count):
            process = WarmProcess(lives.write, collection, number)
            lines = [process.read_line()]
            time.sleep(chance.uniform(0, LONGEST))
            strike(process)
            lines += process.read_rest()
            process.close()
            for line in filter(None, map(str.split, lines)):
                if line[0] == "try":
                    expected.pop(line[1], None)  # from here to its acknowledgement, either is right
                elif len(line) == 3:
                    expected[line[1]] = int(line[2]) if line[0] == "put" else None
            number += lives.LIFE
            reader = WarmProcess(lives.check, collection)
            answer = reader.read_line()
            reader.wait()
            reader.close()
            lives_done += 1
            if not answer.startswith("{"):
                unopened.append(answer.strip() or "it ended without a word")
                continue
            found = json.loads(answer)
            lost += [name for name, value in expected.items() if value is not None and found.get(name) != value]
            lost += [name for name, value in expected.items() if value is None and name in found]
    return {
        "count": lives_done,
        "acknowledged": len(expected),
        "lost": len(set(lost)),
        "unopened": len(unopened),
        "why": unopened[:3],
    }

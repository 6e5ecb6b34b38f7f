"""Time and memory of `resight craters` for a catalogue of 24,500 craters of the Moon.

    python benchmarks/crater_catalogue.py FOLDER [--data MOON] [--craters 24500] [--view 6] [--encoder craters]

MOON holds HeadCraters.csv (20 km and more), LROCCraters.csv (5 to 20 km) and celestia_hires_moon.jpg, a mosaic of 2.7
km per pixel. The catalogues are joined in FOLDER; every crater becomes a crop, however few pixels the map has for it:
time and memory do not depend on that. The command runs as a process of its own. Printed as JSON: wall time, processor
time of the command and of the processes that it starts, and the largest sum of their memory (shared pages counted
once), looked at every two seconds. Needs Linux. Run it again to measure a run that finds everything stored.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from resight.data.maps.crater_catalogue import Crater, read_catalogue

CATALOGUES = ("HeadCraters.csv", "LROCCraters.csv")
MAP = "celestia_hires_moon.jpg"
PAUSE = 2.0  # seconds between two looks at the memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RESIGHT_DATA", ".")) / "moon")
    parser.add_argument("--craters", type=int, default=24_500)
    parser.add_argument("--view", type=float, default=6.0)
    parser.add_argument("--encoder", default="craters")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    catalogue = options.folder / "craters.csv"
    count = write_catalogue(catalogue, options.data, options.craters)
    words = ["craters", options.data / MAP, catalogue, "--into", options.folder / "moon.resight", "--body", "moon"]
    words += ["--view", options.view, "--least-pixels", 1, "--encoder", options.encoder, "--json"]
    print(json.dumps({"craters": count, **measure([sys.executable, "-m", "resight", *map(str, words)])}, indent=1))


def write_catalogue(path: Path, data: Path, most: int) -> int:
    """Every so-manieth crater of all, so that fewer are of the same sizes; returns how many."""
    joined = list(join(data))
    some = joined[:: max(len(joined) // most, 1)][:most]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("CRATER_ID", "Lon", "Lat", "Diam_km"))
        writer.writerows((crater.id, crater.lon, crater.lat, crater.diameter) for crater in some)
    return len(some)


def join(data: Path) -> Iterator[Crater]:
    for name in CATALOGUES:
        for crater in read_catalogue(data / name):
            yield Crater(f"{name[:4]}-{crater.id}", crater.lat, crater.lon, crater.diameter)


def measure(words: list[str]) -> dict[str, object]:
    started, before, peak = time.perf_counter(), os.times(), 0
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(read_memory, list_family(process.pid))))
            time.sleep(PAUSE)
        answer = process.stdout.read() if process.stdout else ""
    after = os.times()
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "wall_seconds": round(time.perf_counter() - started, 1),
        "processor_seconds": round(worked, 1),
        "peak_mib": round(peak / 2**20),
        "report": json.loads(answer) if process.returncode == 0 else process.returncode,
    }


def list_family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    family = [pid]
    for one in family:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                family += map(int, task.read_text().split())
            except OSError:
                continue  # it has just ended
    return family


def read_memory(pid: int) -> int:
    """Resident bytes of a process that no other process shares, and its part of those that several do."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()

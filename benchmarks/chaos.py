"""Power cuts, kills and damage: what becomes of a collection.

    python benchmarks/chaos.py cuts [--count 200] [--seed 0]           power cuts of a writing library (needs root)
    python benchmarks/chaos.py kills [--count 200] [--seed 0]          the same with SIGKILL
    python benchmarks/chaos.py service-cuts [--count 50] [--seed 0]    power cuts of a service that takes uploads
    python benchmarks/chaos.py service-kills [--count 50] [--seed 0]
    python benchmarks/chaos.py damage [--count 1000] [--seed 0]        random damage to random files
    python benchmarks/chaos.py damage-large [--count 1000]             the same, as in a collection of many gigabytes
    python benchmarks/chaos.py repair [--count 200] [--seed 0]         damage, then `verify --deep` and `repair`
    python benchmarks/chaos.py full-disk                               ever less free space (needs root)
    python benchmarks/chaos.py descriptors                             ever fewer file descriptors
    python benchmarks/chaos.py calls [--count 1000]                    both, from each single call on (needs cc)

Prints JSON. `lost` are images that were acknowledged and are gone, `unopened` collections that do not open, `wrong`
answers that differ without an error, `tracebacks` errors that are not resight's own, and `peak_mib` the memory of the
process that opened damaged collections. Ctrl-C or SIGTERM ends cuts and kills early, with the figures so far.
"""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests"), str(Path(__file__).resolve().parent)]

from chaos_parts import calls, cuts, damage, service_cuts, shortages  # noqa: E402 - found by the line above

COMMANDS = {
    "cuts": cuts.cut_power,
    "kills": cuts.kill,
    "service-cuts": service_cuts.cut_power,
    "service-kills": service_cuts.kill,
    "damage": damage.damage_files,
    "damage-large": damage.damage_large,
    "repair": damage.repair_damage,
    "full-disk": shortages.fill_disk,
    "descriptors": shortages.withhold_descriptors,
    "calls": calls.fail_calls,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="resight-chaos-") as folder:
        print(json.dumps(COMMANDS[options.command](Path(folder), options.count, options.seed), indent=1))


if __name__ == "__main__":
    main()

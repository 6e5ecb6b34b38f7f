"""Speed as ratios against peers in the same run: CPU time of one thread, interleaved, medians, answers compared.

    RESIGHT_DATA=FOLDER python benchmarks/speed.py [--part NAME]… [--small] [--json FILE] [--plot FILE.svg]
                                                   [--cache FOLDER | --tokens FILE.npz]

Parts: exhaustive, top, rerank, single, threads (the kernels; on synthetic tokens and on real ones), layout (tokens with
places, against numpy) and museum (a query over photographs, against a plain OpenCV loop). Peers that are not installed
are left out. Real tokens are made from RESIGHT_DATA, which takes some minutes; --cache keeps them. --tokens takes
others: arrays `database` [N, K, d] and `queries` [Q, K, d]. --plot draws a roofline. A ratio is a peer's time by ours;
bars are those that resight holds itself to.
"""

import argparse
import importlib
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speed_parts.results import Part

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
PARTS = ("exhaustive", "top", "rerank", "single", "threads", "layout", "museum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--small", action="store_true", help="fewer images and no bars: a quick look")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--tokens", type=Path)
    options = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # numpy reads them when it is loaded: start again with them set
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    run(options)


def run(options: argparse.Namespace) -> None:
    from speed_parts import peaks, real_tokens, table

    from resight import kernels

    chosen = options.part or PARTS
    wants_tokens = any(name not in ("layout", "museum") for name in chosen)
    real = real_tokens.load(options.tokens, options.cache, 2500 if options.small else 25_000) if wants_tokens else None
    machine = peaks.measure_machine()
    print(f"kernels: {kernels.implementation()}; one core at its best: " + describe(machine), flush=True)
    parts: dict[str, Part] = {}
    for name in chosen:
        part: Part = importlib.import_module(f"speed_parts.{name}").measure(options.small, real)
        # Bars are about sizes at which the fixed cost of a call does not count.
        parts[name] = replace(part, rows=tuple(replace(row, bar=None) for row in part.rows)) if options.small else part
        print(f"\n{table.show(parts[name].rows)}", flush=True)
        keep(options, machine, parts)  # after every part: what was measured is not lost when a later part fails


def keep(options: argparse.Namespace, machine: dict[str, float], parts: "dict[str, Part]") -> None:
    from speed_parts import roofline

    if options.json:
        figures = {"machine": machine, **{name: asdict(part) for name, part in parts.items()}}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        points = [point for part in parts.values() for point in part.points]
        options.plot.write_text(roofline.draw(machine, points), encoding="utf-8")


def describe(machine: dict[str, float]) -> str:
    units = {"fp32": "fp32 {:.1f} GMAC/s", "int8": "int8 {:.0f} GMAC/s", "read": "reads {:.1f} GB/s"}
    return ", ".join(units[name].format(value) for name, value in machine.items()) or "not known without them"


if __name__ == "__main__":
    main()

"""What indexing would take: a few images, evenly spaced, are read and encoded, and the rest is multiplication.

`estimate` is for this machine, from a probe (collection/probing.py); collection/scale.py goes on to many.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from resight.collection.adding import LARGEST_BATCH
from resight.collection.probing import Probe, probe
from resight.collection.scale import Rates
from resight.types import Recipe

STORE_MEMORY = 300_000_000  # what LanceDB takes while it writes and compacts (benchmarks/endurance.py: 676 MiB in all)
COMMIT_BYTES = 1500  # an image's metadata and its share of the store's own files
USUAL = 1000  # images, where neither a source nor a number is given


@dataclass(frozen=True)
class Plan:
    images: int
    probed: int
    unreadable: int
    seconds: float
    seconds_an_image: float
    memory_bytes: int
    store_bytes: int
    index_bytes: int
    rates: Rates


def estimate(recipe: Recipe, source: Path | None, count: int | None = None) -> Plan:
    """Plan for the images of `source`, or for `count` like them; without a source the probe makes its own images."""
    found = probe(recipe, source)
    total = count or found.images or USUAL
    rates = find_rates(found)
    return Plan(
        images=total,
        probed=found.probed,
        unreadable=found.unreadable,
        seconds=found.seconds * total,
        seconds_an_image=found.seconds,
        memory_bytes=round(_peak_memory() + STORE_MEMORY + 3 * min(total, LARGEST_BATCH) * found.row_bytes),
        store_bytes=round(total * rates.store_bytes),
        index_bytes=round(total * rates.index_bytes),
        rates=rates,
    )


def find_rates(found: Probe) -> Rates:
    return Rates(
        encode_core_seconds=found.core_seconds,
        index_core_seconds=sum(index.build_core_seconds for index in found.indexes),
        scan_core_seconds=sum(index.scan_core_seconds for index in found.indexes),
        store_bytes=found.row_bytes + COMMIT_BYTES,
        index_bytes=sum(index.bytes for index in found.indexes),
        query_bytes=found.query_bytes,
    )


def _peak_memory() -> int:
    """Of this process so far; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

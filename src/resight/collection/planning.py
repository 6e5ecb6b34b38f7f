"""What indexing would take: a few images, evenly spaced, are read and encoded, and the rest is multiplication."""

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from resight import index as indexes
from resight.collection.adding import LARGEST_BATCH, encode_region, list_refs
from resight.data import images
from resight.encode.encoder import Encoder
from resight.errors import BoxError, ImageError, InputError
from resight.types import Descriptors, ImageRef, Picture, Recipe

PROBES = 16
STORE_MEMORY = 300_000_000  # what LanceDB takes while it writes and compacts (benchmarks/endurance.py: 676 MiB in all)
COMMIT_BYTES = 1500  # an image's metadata and its share of the store's own files


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


def estimate(recipe: Recipe, source: Path | None, count: int | None = None) -> Plan:
    """Plan for the images of `source`, or for `count` like them; without a source the probe makes its own images."""
    encoder = Encoder(recipe.branches)
    total, probes = _choose(source) if source else (count or 1000, _generate())
    encoded: list[tuple[Descriptors, ...]] = []
    unreadable, started = 0, time.perf_counter()
    for probe in probes:
        try:
            picture = probe if isinstance(probe, Picture) else images.read(probe, max_side=encoder.max_side)
            encoded.append(encode_region(picture, picture.ref.box, encoder, "database"))
        except (ImageError, BoxError):
            unreadable += 1
    if not encoded:
        raise InputError(
            f"none of {unreadable} images of {source} that were tried can be read",
            expected="images",
            fix="`resight data check folder PATH` tells what is wrong with each",
        )
    seconds = (time.perf_counter() - started) / len(encoded)
    row_bytes = sum(_bytes(rows) for branches in encoded for rows in branches) / len(encoded)
    total = count or total
    return Plan(
        images=total,
        probed=len(encoded),
        unreadable=unreadable,
        seconds=seconds * total,
        seconds_an_image=seconds,
        memory_bytes=round(_peak_memory() + STORE_MEMORY + 3 * min(total, LARGEST_BATCH) * row_bytes),
        store_bytes=round(total * (row_bytes + COMMIT_BYTES)),
        index_bytes=round(total * _index_bytes(recipe, encoded)),
    )


def _choose(source: Path) -> tuple[int, Iterator[ImageRef]]:
    total = sum(1 for ref in list_refs(source) if isinstance(ref, ImageRef))
    if total == 0:
        raise InputError(f"no images in {source}", expected="a folder with images", fix="check the path")
    refs = (ref for ref in list_refs(source) if isinstance(ref, ImageRef))
    return total, islice(refs, 0, None, max(total // PROBES, 1))


def _generate() -> Iterator[Picture]:
    """Textured pictures of a usual size, for planning before there are images."""
    generator = np.random.default_rng(0)
    for number in range(PROBES // 2):
        coarse = generator.integers(0, 255, (60, 80, 3), dtype=np.uint8)
        pixels = np.kron(coarse, np.ones((10, 10, 1), np.uint8))
        yield Picture(ImageRef(str(number), Path(str(number))), pixels, (800, 600))


def _index_bytes(recipe: Recipe, encoded: list[tuple[Descriptors, ...]]) -> float:
    """Bytes an image of the recipe's indexes, built over the probes for real."""
    total = 0
    for branch, part in enumerate(recipe.branches):
        if part.weight > 0:
            choice = part.index or recipe.index
            plugin = indexes.build(choice.name, **choice.settings)
            with tempfile.TemporaryDirectory() as scratch:
                plugin.create(lambda branch=branch: (rows[branch] for rows in encoded), Path(scratch))  # type: ignore[misc]
                total += sum(path.stat().st_size for path in Path(scratch).rglob("*") if path.is_file())
    return total / len(encoded)


def _bytes(rows: Descriptors) -> int:
    parts = (rows.vectors, rows.boxes, rows.weights, rows.points, rows.words, rows.seeds)
    return sum(part.nbytes for part in parts if part is not None)


def _peak_memory() -> int:
    """Of this process so far; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

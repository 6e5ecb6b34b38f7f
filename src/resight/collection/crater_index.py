"""Craters of a catalogue, cut out of a map, in a collection: CraterCrops in, a CraterReport out.

Crops are drawn, encoded and stored in one stream, in overlapping steps of bounded memory: a thread that reads a crop
draws it first (`CraterCrops.read`). Stored batches stay: the same call, run again after a stop, passes over what is
stored and continues. `plan_craters` estimates time, memory and disk from a few crops, and writes nothing.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from resight import recipe as recipes
from resight.collection import Collection, metadata, open_collection
from resight.collection.add import Progress
from resight.collection.fit.fit_codebook import open_learning
from resight.collection.location import exists
from resight.collection.plan.probe import PROBES, Plan, estimate
from resight.data.image_cache import encode_png
from resight.data.maps.crater_crops import NO_DATA, CraterCrops
from resight.encode.extract import gather
from resight.errors import CollectionError, ImageError
from resight.types import ImageRef, Recipe, Skipped

PRESET = "craters"
PORTION = 8192  # crops whose records are in memory at a time
LISTED = 1000  # skipped files in a report, which counts all
LEARNT = 2000  # crops that a code book is learnt from, if the recipe learns one
ASKED = 64  # stored crops that are asked for the map they come from


@dataclass(frozen=True)
class CraterReport:
    """What `index_craters` did.

    Attributes:
        craters: Craters in the catalogue.
        crops: Crops that fit the map.
        added: Number of new crops.
        updated: Number of crops whose place, size or map had changed.
        unchanged: Number of crops that the collection held already.
        left_out: Reason → number of craters or crops left out.
        bad_lines: The catalogue's lines that were left out, the first 1,000, each with the reason.
        bad: Number of these lines.
        skipped: Crops whose file could not be read, the first 1,000.
        unreadable: Number of these crops.
    """

    craters: int
    crops: int
    added: int
    updated: int
    unchanged: int
    left_out: Mapping[str, int]
    bad_lines: tuple[str, ...] = ()
    bad: int = 0
    skipped: tuple[Skipped, ...] = ()
    unreadable: int = 0


@dataclass(frozen=True)
class CraterPlan:
    """What indexing crops would take: `index` for reading, encoding and storing them, and drawing them before."""

    crops: int
    seconds: float
    memory_bytes: int
    crop_bytes: int
    index: Plan


def index_craters(
    collection: str | Path,
    crops: CraterCrops,
    recipe: Recipe | str | Path | None = None,
    progress: Progress | None = None,
) -> CraterReport:
    """Draw the crops and add them to a collection, which is created if it does not exist."""
    crops.check()
    opened = _open(Path(collection), crops, recipe, progress)
    _check_map(opened, crops)
    counts: Counter[str] = Counter()
    skipped: list[Skipped] = []
    done, portions = 0, -(-len(crops) // PORTION)
    for number, refs in enumerate(gather(crops, PORTION), start=1):

        def report(some: int, _: int, before: int = done) -> None:
            if progress:
                progress(before + some, len(crops))

        added = opened.add(refs, progress=report, tidy=number == portions == 1)
        done += len(refs)
        empty = crops.take_empty()
        unreadable = [one for one in added.skipped if one.path not in empty]
        counts.update(added=added.added, updated=added.updated, unchanged=added.unchanged)
        counts.update(empty=sum(empty.values()), unreadable=len(unreadable))
        skipped += unreadable[: LISTED - len(skipped)]
    if portions > 1 and counts["added"] + counts["updated"]:
        opened.tidy()
    left_out = {**crops.left_out, **({NO_DATA: counts["empty"]} if counts["empty"] else {})}
    return CraterReport(
        len(crops.craters),
        len(crops),
        counts["added"],
        counts["updated"],
        counts["unchanged"],
        left_out,
        tuple(crops.craters.bad_lines),
        crops.craters.bad,
        tuple(skipped),
        counts["unreadable"],
    )


def plan_craters(crops: CraterCrops, recipe: Recipe) -> CraterPlan:
    """Draw and encode a few crops, spread over the map; everything else is multiplication."""
    crops.check()
    seconds, size, drawn = 0.0, 0, 0
    with tempfile.TemporaryDirectory(prefix="resight-craters-") as scratch:
        for ref in _spread(crops, PROBES):
            started = time.process_time()
            try:
                data = encode_png(crops.draw(ref))
            except ImageError:
                continue
            seconds += time.process_time() - started
            size += len(data)
            drawn += 1
            (Path(scratch) / f"{drawn}.png").write_bytes(data)
        index = estimate(recipe, Path(scratch), len(crops))
    each = seconds / drawn
    return CraterPlan(
        len(crops),
        index.seconds + each * len(crops),
        index.memory_bytes,
        round(size / drawn * len(crops)),
        replace(index, probed=drawn),
    )


def _open(
    folder: Path, crops: CraterCrops, recipe: Recipe | str | Path | None, progress: Progress | None
) -> Collection:
    if recipe is None and exists(folder, metadata.FILE):
        return open_collection(folder, read=crops.read)
    wanted = recipe if isinstance(recipe, Recipe) else recipes.load(recipe or PRESET)
    return open_learning(folder, wanted, [_Drawn(crops)], progress=progress, read=crops.read)


class _Drawn:
    """Some crops, each drawn before it is given: iterated only if a recipe learns a code book."""

    def __init__(self, crops: CraterCrops) -> None:
        self._crops = crops

    def __iter__(self) -> Iterator[ImageRef]:
        for ref in _spread(self._crops, LEARNT):
            try:
                self._crops.read(ref)
            except ImageError:
                continue
            yield ref


def _spread(crops: CraterCrops, count: int) -> Iterator[ImageRef]:
    """At most about `count` crops, evenly spaced in their order."""
    return islice(crops, 0, None, max(len(crops) // count, 1))


def _check_map(collection: Collection, crops: CraterCrops) -> None:
    """Refuse to replace crops of another map: their ids would be the same."""
    if not len(collection):
        return
    view = collection.view()
    for ref in _spread(crops, ASKED):
        stored = view.find(ref.id)
        other = stored.attributes.get("map") if stored else None
        if other is not None and other != crops.settings.map:
            raise CollectionError(
                f"{collection.path} holds {ref.id!r} from another map",
                expected=f"crops of {crops.settings.map}",
                actual=f"crops of {other}",
                fix="take another collection, or other ids with --prefix; --map-name if it is the same map",
            )

"""Entries that are twice in a crater catalogue: how many `resight dedup` finds, and how many of its pairs are right.

    RESIGHT_DATA=… python benchmarks/dedup_craters.py FOLDER [--encoder PRESET] [--fit FILE]

Measures on test craters; with --fit it fits the probabilities on tuning craters, and writes them to the file.

2,000 craters of Head's catalogue (20 km and more), and 1,000 of them again, as another person may have measured them:
the centre moved by a normal error of 5 % of the diameter to the east and to the north, the diameter by 5 %. Right is a
crater with its own repetition. By position, and by alignment of the crops, which are cut out of one mosaic of
photographs at 3 diameters. Also by position: other errors, and the pairs that LROC's own catalogue has.
"""

import argparse
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from crater_parts.crops import read_craters, render
from crater_parts.jitter import jitter
from crater_parts.split import list_part

from resight.audit.circles.aligned_crops import align_candidates, list_crops
from resight.audit.circles.circle_overlap import find_overlaps
from resight.audit.circles.find_circles import By, CirclePair, find_circles, judge
from resight.collection import Collection, open_collection
from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.crater_view import MOON_KM, CraterView
from resight.evaluate.statistics.reliability import expected_calibration_error
from resight.evaluate.statistics.tests import bootstrap_interval
from resight.search import calibration

MAP, VIEW, SMALLEST = "celestia", 3.0, 20.0
ENTRIES, AGAIN, ERROR = 2000, 1000, 0.05
AGAIN_SUFFIX = "_again"
FIT_FROM = 0.1  # overlaps from which wrong pairs take part in the fit
SURELY = 0.5  # overlap from which a pair of one catalogue is a duplicate itself, and takes no part


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--encoder", default="craters")
    options.add_argument("--fit", type=Path, metavar="FILE", help="fit on tuning craters, and write the calibration")
    given = options.parse_args()
    data = Path(os.environ["RESIGHT_DATA"]) / "moon"
    part = "tuning" if given.fit else "test"
    craters = [one for one in list_part(read_craters(), part) if one.diameter >= SMALLEST]
    generator = np.random.default_rng(23)
    chosen = [craters[row] for row in sorted(generator.permutation(len(craters))[:ENTRIES])]
    twice = [chosen[row] for row in sorted(generator.permutation(len(chosen))[:AGAIN])]
    again = jitter(twice, generator, ERROR, ERROR, AGAIN_SUFFIX)
    print(f"{len(chosen)} {part} craters, {len(again)} of them again")
    if not given.fit:
        measure_positions(chosen, twice, again, read_catalogue(data / "LROCCraters.csv"), generator)
    folder = given.folder / part
    collection = open_collection(folder / f"{Path(given.encoder).stem}.resight", given.encoder)
    collection.add(render([*chosen, *again], MAP, VIEW, folder))
    if given.fit:
        fit(given.fit, craters, read_catalogue(data / "LROCCraters.csv"), collection, generator)
        return
    for by in ("position", "alignment"):
        measure(collection, by, folder / "work", len(again), generator)


def measure_positions(
    chosen: Sequence[Crater],
    twice: Sequence[Crater],
    again: Sequence[Crater],
    lroc: Sequence[Crater],
    generator: np.random.Generator,
) -> None:
    """Without pictures: the errors of the two measurements, and others; and what LROC's own catalogue has twice."""
    print_overlaps("these errors", [*chosen, *again], len(twice))
    for error in (0.025, 0.075, 0.1, 0.15):
        print_overlaps(
            f"errors of {error:g}", [*chosen, *jitter(twice, generator, error, error, AGAIN_SUFFIX)], len(twice)
        )
    own = find_overlaps([view(one) for one in lroc], 0.3)
    print(f"LROC's {len(lroc)} craters: {sum(judge(one) >= 0.5 for one in own)} pairs listed; overlaps from 0.3 on:")
    print(" ".join(f"{one.iou:.2f}" for one in sorted(own, key=lambda one: -one.iou)))


def print_overlaps(name: str, craters: Sequence[Crater], expected: int) -> None:
    listed = [one for one in find_overlaps([view(one) for one in craters], 0.3) if judge(one) >= 0.5]
    right = sum(craters[one.a].id == craters[one.b].id.removesuffix(AGAIN_SUFFIX) for one in listed)
    print(
        f"by position, {name}: recall {right / expected:.4f}, precision {right / max(len(listed), 1):.4f}", flush=True
    )


def measure(collection: Collection, by: By, work: Path, expected: int, generator: np.random.Generator) -> None:
    started = time.perf_counter()
    work.mkdir(parents=True, exist_ok=True)
    report = find_circles(collection, by=by, work=work)
    seconds = time.perf_counter() - started
    right = [is_right(one) for one in report.pairs]
    chances = [one.pair.probability for one in report.pairs]
    found = [1.0] * sum(right) + [0.0] * (expected - sum(right))
    low, high = bootstrap_interval(found, generator)
    print(
        f"{by}: {len(right)} pairs listed, {len(right) - sum(right)} wrong; recall {np.mean(found):.4f} "
        f"[{low:.4f}, {high:.4f}], precision {np.mean(right):.4f}, expected wrong {report.report.expected_wrong:.1f}, "
        f"ECE {expected_calibration_error(chances, right):.4f}, {report.report.groups} groups, {seconds:.1f} s"
    )
    for one in report.pairs:
        if not is_right(one):
            print("  wrong:", one.label_a, one.label_b, f"iou {one.overlap.iou:.3f}, p {one.pair.probability:.3f}")


def is_right(pair: CirclePair) -> bool:
    return pair.label_a.removesuffix(AGAIN_SUFFIX) == pair.label_b.removesuffix(AGAIN_SUFFIX)


def fit(
    path: Path, head: Sequence[Crater], lroc: Sequence[Crater], collection: Collection, generator: np.random.Generator
) -> None:
    """By position: repetitions against real pairs of both catalogues; by alignment: the candidates of the search."""
    lroc = list_part(lroc, "tuning")
    known = [view(one) for one in (*head, *lroc)]
    wrong = [one for one in find_overlaps(known, FIT_FROM) if one.iou < SURELY]
    repeated = zip(map(view, head), map(view, jitter(head, generator, ERROR, ERROR)), strict=True)
    samples = [({"iou": one.circle_iou(two)}, True) for one, two in repeated]
    samples += [({"iou": one.iou}, False) for one in wrong]
    by_position = calibration.fit(samples)
    work = collection.path.parent / "work"
    work.mkdir(parents=True, exist_ok=True)
    crops = list_crops(collection)
    aligned, _ = align_candidates([collection], [crops], FIT_FROM, work, None)
    labels = [crop.label.removesuffix(AGAIN_SUFFIX) for crop in crops]
    both = [({"iou": one.iou, "agreement": one.agreement}, labels[one.a] == labels[one.b]) for one in aligned]
    by_alignment = calibration.fit(both)
    calibration.save([by_position, by_alignment], path)
    for name, fitted, some in (("position", by_position, samples), ("alignment", by_alignment, both)):
        chances = [fitted.probability(fitted.log_odds(signals)) for signals, _ in some]
        error = expected_calibration_error(chances, [same for _, same in some])
        print(f"{name}: {fitted}, ECE on these pairs {error:.4f}")
        print_range(some)


def print_range(samples: Iterable[tuple[dict[str, float], bool]]) -> None:
    for same in (True, False):
        values = np.array([list(signals.values()) for signals, truth in samples if truth == same])
        print(f"  {'same' if same else 'different'}: {len(values)}, 0/1/50/99/100 % of", end=" ")
        print(np.percentile(values, (0, 1, 50, 99, 100), axis=0).round(3).T.tolist())


def view(crater: Crater) -> CraterView:
    return CraterView(crater.id, crater.lat, crater.lon, crater.diameter, VIEW, MOON_KM)


if __name__ == "__main__":
    main()

"""Craters of the Moon in two maps: how many `resight match` finds again, how many of its matches are right, and whether
its probabilities hold.

    RESIGHT_DATA=… python benchmarks/match_craters.py FOLDER [--craters N] [--terrain] [--priors] [--fit FILE]

A holds a crop of each crater cut out of one mosaic of photographs, B one cut out of another, made by other people from
other photographs; with --terrain, B is a map of heights with light from the north-west. Craters are 20 km and larger,
crops 6 diameters wide. Absent: a quarter of A's craters have no crop in B, and a tenth of B's none in A. Right is the
same crater. With --fit the craters are the tuning ones, and the probabilities of matches are fitted on them and written
to the file; otherwise they are test craters, of other ground (crater_parts/split.py). Not CraterBench-R.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
from crater_parts.cut_crops import MOON_KM, Cut, cut_crops, fits, jitter
from crater_parts.split import list_part

from resight.apps.match_page import render
from resight.audit.match.find_matches import MatchReport, Settings, find_matches, list_truths
from resight.audit.match.match_entries import list_match_entries
from resight.audit.match.match_priors import Priors
from resight.audit.match.match_probability import SIGNAL, Evidence, fingerprint_search
from resight.audit.match.ranked_candidates import rank_candidates
from resight.collection import Collection, open_collection
from resight.collection.view import View
from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.map_file import open_map
from resight.data.maps.map_image import MapImage, cut
from resight.data.maps.moon_maps import find_maps
from resight.data.maps.terrain import Light
from resight.evaluate.match_quality import Outcome, find_recall, measure_matches
from resight.evaluate.statistics.reliability import expected_calibration_error
from resight.search import calibration
from resight.types import ImageRef

MAPS = "moon_8k_color_brim16_4096x2048.jpg", "celestia_hires_moon.jpg"
LIGHT = Light(315.0, 45.0, 2.0)
VIEW, SMALLEST = 6.0, 20.0  # the preset wants six diameters
ABSENT, EXTRA = 0.25, 0.1
ERROR_KM = 10.0  # of the positions in A, for the measurement with a prior: a normal error to each side
PRIORS = Priors(30.0, 1.3)
WAYS = {
    "best of each": Settings(least=0.5),
    "one to one": Settings(one_to_one=True),
    "mutual": Settings(mutual=True),
    "mutual, within 30 km, ratio 1.3": Settings(mutual=True, priors=PRIORS),
}
CLASSES = ((20, 30), (30, 60), (60, 10_000))


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--encoder", default="craters")
    options.add_argument("--terrain", action="store_true", help="B is the hillshaded map of heights")
    options.add_argument("--craters", type=int, default=0, help="how many to draw; 0: all")
    options.add_argument("--smallest", type=float, default=SMALLEST, help="diameter in km")
    options.add_argument("--priors", action="store_true", help="with positions that are 10 km off, within 30 km")
    options.add_argument("--fit", type=Path, metavar="FILE", help="fit on tuning craters, and write the calibration")
    given = options.parse_args()
    part, pair = "tuning" if given.fit else "test", "terrain" if given.terrain else "optical"
    folder = given.folder / f"{part}_{pair}"
    here, there = open_maps(Path(os.environ["RESIGHT_DATA"]) / "moon", given.terrain)
    craters = choose(
        Path(os.environ["RESIGHT_DATA"]) / "moon", part, given.smallest, given.craters, (here[0], there[0])
    )
    generator = np.random.default_rng(23)
    draw = generator.random(len(craters))
    first = [one for one, at in zip(craters, draw, strict=True) if at >= EXTRA]
    second = [one for one, at in zip(craters, draw, strict=True) if at < 1 - ABSENT]
    name = f"{Path(given.encoder).stem}_{len(craters)}.resight"
    a = fill(folder / f"a_{name}", given.encoder, cut_crops(here[1], first, folder / "a", VIEW))
    b = fill(folder / f"b_{name}", given.encoder, cut_crops(there[1], second, folder / "b", VIEW))
    print(f"{pair}, {part}: {len(first)} craters in A, {len(second)} in B, preset {given.encoder}")
    if given.fit:
        fit(a.view(), b.view(), given.fit)
        return
    figures = {}
    for way, settings in WAYS.items():
        if bool(settings.priors) != given.priors:
            continue
        if settings.priors:
            moved = shift(first, generator)
            a = fill(
                folder / f"moved_{name}", given.encoder, place(cut_crops(here[1], first, folder / "a", VIEW), moved)
            )
        started = time.perf_counter()
        work = folder / f"work_{'prior' if settings.priors else 'plain'}"  # ways share what they have in common
        work.mkdir(exist_ok=True)
        report = find_matches(a, b, settings, work=work)
        figures[way] = measure(way, report, time.perf_counter() - started)
        outcomes = [Outcome(*one) for one in list_truths(report)]
        page = render(report, a, b, outcomes, measure_matches(outcomes, settings.least))
        (folder / f"{way.split(',')[0].replace(' ', '_')}{'_prior' if settings.priors else ''}.html").write_text(page)
        if way == "best of each":
            measure_classes(report, {one.id: one.diameter for one in craters})
    (folder / f"figures_{'priors_' if given.priors else ''}{name}.json").write_text(json.dumps(figures, indent=1))


def open_maps(data: Path, terrain: bool) -> tuple[tuple[MapImage, Cut], tuple[MapImage, Cut]]:
    """For A and for B, the map, and how to cut a frame out of it."""
    images = [open_map(data / name, (), MOON_KM * 1000) for name in MAPS]
    cuts: list[Cut] = [partial(cut, image) for image in images]
    if not terrain:
        return (images[0], cuts[0]), (images[1], cuts[1])
    maps = find_maps(data)
    return (images[1], cuts[1]), (images[1], lambda frame, pixels: maps.shade(frame, True, LIGHT, pixels))


def choose(data: Path, part: str, smallest: float, count: int, maps: Iterable[MapImage]) -> list[Crater]:
    listed = [one for one in read_catalogue(data / "HeadCraters.csv") if one.diameter >= smallest]
    craters = [one for one in list_part(listed, part) if all(fits(image, one, VIEW) for image in maps)]
    if not count:
        return craters
    rows = np.random.default_rng(0).permutation(len(craters))[:count]
    return [craters[row] for row in sorted(rows.tolist())]


def fill(path: Path, encoder: str, refs: Sequence[ImageRef]) -> Collection:
    collection = open_collection(path, encoder)
    collection.add(refs)
    return collection


def measure(way: str, report: MatchReport, seconds: float) -> dict[str, object]:
    outcomes = [Outcome(*one) for one in list_truths(report)]
    found = measure_matches(outcomes, report.settings.least)
    recall, threshold = find_recall(outcomes, 0.99)
    low, high = interval(outcomes, lambda some: find_recall(some, 0.99)[0])
    print(
        f"{way}: {found.queries} craters, {found.present} present; R@1 {span(found.best_right, found.best_interval)}; "
        f"recall at precision .99 {span(recall, (low, high))}, from {threshold:.3f} on; at {report.settings.least:g} "
        f"precision {span(found.precision, found.precision_interval)}, recall "
        f"{span(found.recall, found.recall_interval)}; ECE {found.calibration_error:.4f}"
        f"{' (fitted)' if report.fitted else ' (of the search)'}; {seconds:.0f} s"
    )
    return {**asdict(found), "recall_at_99": recall, "interval_at_99": (low, high), "threshold": threshold}


def interval(outcomes: Sequence[Outcome], measured: Callable[[Sequence[Outcome]], float]) -> tuple[float, float]:
    """Of a figure of all outcomes, by drawing them with replacement."""
    generator = np.random.default_rng(0)
    figures = []
    for _ in range(300):
        rows = generator.integers(len(outcomes), size=len(outcomes))
        figures.append(measured([outcomes[row] for row in rows.tolist()]))
    low, high = np.quantile(figures, (0.025, 0.975))
    return float(low), float(high)


def span(value: float, ends: tuple[float, float]) -> str:
    return f"{value:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"


def measure_classes(report: MatchReport, diameters: dict[str, float]) -> None:
    labelled = [one for one in report.best if one.label_a]
    truths = [Outcome(*one) for one in list_truths(report)]
    for low, high in CLASSES:
        rows = [row for row, one in enumerate(labelled) if low <= diameters[one.label_a] < high]
        some = [truths[row] for row in rows]
        if any(one.present for one in some):
            found = measure_matches(some)
            recall = find_recall(some, 0.99)[0]
            print(f"  {low} to {high} km: {found.present} present, R@1 {found.best_right:.3f}, at .99 {recall:.3f}")


def shift(craters: Sequence[Crater], generator: np.random.Generator) -> list[Crater]:
    """The same craters, as a catalogue in another frame places them; the crops stay."""
    return [jitter([one], generator, ERROR_KM / one.diameter, 0.05, "")[0] for one in craters]


def place(refs: Sequence[ImageRef], craters: Sequence[Crater]) -> list[ImageRef]:
    return [
        replace(
            ref, attributes={**ref.attributes, "crater_lat": at.lat, "crater_lon": at.lon, "diameter_km": at.diameter}
        )
        for ref, at in zip(refs, craters, strict=True)
    ]


def fit(a: View, b: View, path: Path) -> None:
    """One calibration for one direction, one for both; the best candidate of each crater takes part."""
    entries, others = list_match_entries(a.records(), True), list_match_entries(b.records(), True)
    forward = rank_candidates(a, entries, b, others, 5, signal=SIGNAL, boxes=False)
    best = [some.candidates[0].entry for some in forward]
    wanted = sorted(set(best))
    back = rank_candidates(b, [others[number] for number in wanted], a, entries, 5, signal=SIGNAL, boxes=False)
    key = fingerprint_search(b)
    fitted = []
    for backward in (None, dict(zip(wanted, back, strict=True))):
        evidence = Evidence(forward, backward, len(others))
        samples = [
            (evidence.list_signals(number, other), entries[number].label == others[other].label)
            for number, other in enumerate(best)
        ]
        one = calibration.fit(samples)
        names = ("score",) if backward is None else ("score", "back")
        fitted.append(replace(one, spaces=dict.fromkeys(names, key)))
        chances = [one.probability(one.log_odds(signals)) for signals, _ in samples]
        truths = [same for _, same in samples]
        print(f"{one}: {np.mean(truths):.3f} right, ECE on these {expected_calibration_error(chances, truths):.4f}")
    calibration.save(fitted, path)


if __name__ == "__main__":
    main()

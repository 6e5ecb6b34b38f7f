"""Craters of the Moon in two maps: how many `resight match` finds again, how many of its matches are right, and whether
its probabilities hold.

    RESIGHT_DATA=… python benchmarks/match_craters.py FOLDER [--limit N] [--terrain] [--priors] [--fit FILE]

A holds a crop of each crater cut out of one mosaic of photographs, B one cut out of another, made by other people from
other photographs; with --terrain, A is the hillshaded map of heights. Craters are 20 km and larger, crops 6 diameters
wide. A fifth of the craters have no crop in B; with --limit, A holds a part of them, so that most of B's are not in A.
Right is the same crater. With --fit the craters are the tuning ones, and the probabilities of matches are fitted on
them and written to the file; otherwise they are test craters, of other ground (crater_parts/split.py). Crops and
collections are those of benchmarks/craters.py, if it ran in the same folder. Not CraterBench-R.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from crater_parts.crops import read_craters, render
from crater_parts.jitter import jitter
from crater_parts.measure import drop_some
from crater_parts.split import list_part
from craters import ABSENT, PAIRS, fill

from resight import recipe as recipes
from resight.audit.match.find_matches import MatchReport, Settings, find_matches, list_truths
from resight.audit.match.match_entries import list_match_entries
from resight.audit.match.match_priors import Priors
from resight.audit.match.match_probability import Evidence, fingerprint_spaces
from resight.audit.match.ranked_candidates import rank_candidates
from resight.collection.view import View
from resight.data.maps.crater_catalogue import Crater
from resight.evaluate.match_quality import Outcome, find_recall, measure_matches
from resight.evaluate.statistics.reliability import expected_calibration_error
from resight.search import calibration
from resight.tasks.match_page import render as render_page
from resight.types import ImageRef

VIEW = 6.0
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
    options.add_argument("--terrain", action="store_true", help="A is the hillshaded map of heights")
    options.add_argument("--limit", type=int, default=0, help="craters in A; 0: all")
    options.add_argument("--priors", action="store_true", help="with positions that are 10 km off, within 30 km")
    options.add_argument("--fit", type=Path, metavar="FILE", help="fit on tuning craters, and write the calibration")
    given = options.parse_args()
    part, (asked, database) = "tuning" if given.fit else "test", PAIRS[int(given.terrain)]
    recipe, craters = recipes.load(given.encoder), list_part(read_craters(), part)
    first = choose(craters, given.limit)
    name = f"{part}_{asked}_{VIEW:g}x_{given.limit or 'all'}"
    refs = render(first, asked, VIEW, given.folder)
    if given.priors:
        refs, name = move(refs, first), f"{name}_moved"
    a = fill(recipe, refs, given.folder / name)
    b = fill(
        recipe,
        drop_some(render(craters, database, VIEW, given.folder), ABSENT),
        given.folder / f"{part}_{database}_{VIEW:g}x_most",
    )
    print(f"{part}: {len(a)} craters of {asked} in {len(b)} of {database}, preset {given.encoder}", flush=True)
    if given.fit:
        fit(a.view(), b.view(), given.fit)
        return
    results = given.folder / f"match_{name}"
    results.mkdir(exist_ok=True)
    figures = {}
    for way, settings in WAYS.items():
        if bool(settings.priors) != given.priors:
            continue
        started = time.perf_counter()
        report = find_matches(a, b, settings, work=results)  # ways share what they have in common
        figures[way] = measure(way, report, time.perf_counter() - started)
        outcomes = [Outcome(*one) for one in list_truths(report)]
        page = render_page(report, a, b, outcomes, measure_matches(outcomes, settings.least))
        (results / f"{way.replace(' ', '_')}.html").write_text(page, encoding="utf-8")
        if way == "best of each":
            measure_classes(report, {one.id: one.diameter for one in craters})
    (results / "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


def choose(craters: Sequence[Crater], limit: int) -> list[Crater]:
    """The same as benchmarks/craters.py chooses."""
    rows = sorted(np.random.default_rng(1).permutation(len(craters))[: limit or len(craters)].tolist())
    return [craters[row] for row in rows]


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


def move(refs: Sequence[ImageRef], craters: Sequence[Crater]) -> list[ImageRef]:
    """The same crops, in a catalogue of another frame: positions are ERROR_KM off to each side, diameters 5 %."""
    generator = np.random.default_rng(23)
    moved = [jitter([one], generator, ERROR_KM / one.diameter, 0.05)[0] for one in craters]
    return [
        replace(
            ref,
            attributes={
                **ref.attributes,
                "crater_lat": at.lat,
                "crater_lon": at.lon,
                "diameter_km": at.diameter,
            },
        )
        for ref, at in zip(refs, moved, strict=True)
    ]


def fit(a: View, b: View, path: Path) -> None:
    """One calibration for one direction, one for both; the best candidate of each crater takes part."""
    entries, others = list_match_entries(a.records(), True), list_match_entries(b.records(), True)
    forward = rank_candidates(a, entries, b, others, 5, centred=True, boxes=False)
    best = [some.candidates[0].entry for some in forward]
    wanted = sorted(set(best))
    back = rank_candidates(b, [others[number] for number in wanted], a, entries, 5, centred=True, boxes=False)
    key = fingerprint_spaces(b)
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

"""Fits the calibrations that come with the package, on pairs whose truth is known.

Two sources with equal weight per query (preset_parts/signals.py): new views of the photographs of two Python packages,
flat things and places at another hour; and, with RESIGHT_DATA, up to 60 queries of each shared
set, of its tuning half alone (preset_parts/halves.py). `benchmarks/presets.py` measures on the test halves.

    python benchmarks/fit_calibration.py FOLDER [PRESET…]    writes src/resight/search/calibration.json

FOLDER keeps collections and signals, so that a run goes on where it stopped. Calibrations for other signals stay as
they are: those of other presets, and of collections that an earlier version made.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from preset_parts.halves import load_halves
from preset_parts.signals import Samples, list_pairs, search_half, search_photos

from resight import recipe as recipes
from resight.collection import open_collection
from resight.search import calibration

QUERIES = 60  # of each shared set
LEARNT = ("aggregated",)
PRESETS = (
    ("sift_tokens", LEARNT),
    ("products", LEARNT),
    ("sift", ()),
    ("sift_vlad", ()),
    ("tokens", ()),
)  # and learnt scores


def main() -> None:
    folder, wanted_presets = Path(sys.argv[1]), sys.argv[2:]
    fitted = []
    for preset, learnt in PRESETS:
        if wanted_presets and preset not in wanted_presets:
            continue
        samples = collect(preset, folder)
        spaces = {score: space for score, space in name_spaces(preset, folder).items() if score in learnt}
        for wanted in choose_signals(preset, samples):
            part = [({key: signals.get(key, 0.0) for key in wanted}, same) for signals, same in samples]
            fitted.append(replace(calibration.fit(part), spaces=spaces))
            report(preset, fitted[-1], part)
    new = [entry.weights.keys() for entry in fitted]
    others = [entry for entry in calibration.load(calibration.SHIPPED) if entry.weights.keys() not in new]
    calibration.save([*fitted, *others], calibration.SHIPPED)


def collect(preset: str, folder: Path) -> Samples:
    searches = search_photos(preset, folder / "signals", folder / "work")
    for half in load_halves("tuning", QUERIES):
        searches += search_half(preset, half, folder / "signals", folder / "work")
    return list_pairs(searches)


def choose_signals(preset: str, samples: Samples) -> list[list[str]]:
    """With verification, with its geometry alone, and without. Of tokens alone only the standout, for every encoder."""
    if preset == "tokens":
        return [["standout"]]
    everything = sorted({key for signals, _ in samples for key in signals})
    without_layout = [key for key in everything if not key.startswith("layout")]
    alone = [key for key in without_layout if not key.endswith(("inliers", "significance"))]
    return [everything, alone] if without_layout == everything else [everything, without_layout, alone]


def name_spaces(preset: str, folder: Path) -> dict[str, str]:
    collection = open_collection(folder / "work" / f"{preset} photos.resight", recipes.load(preset))
    return {part.name: collection.metadata.spaces[part.branch] for part in collection.view().pipeline.shortlisters}


def report(preset: str, fitted: calibration.Calibration, samples: Samples) -> None:
    guesses = np.array([fitted.probability(fitted.log_odds(signals)) for signals, _ in samples])
    truths = np.array([same for _, same in samples])
    print(
        f"{preset}: {fitted.pairs} pairs, {fitted.same} same; bias {fitted.bias:.2f}, "
        + ", ".join(f"{name} {weight:.2f}" for name, weight in fitted.weights.items())
        + f"; above 0.5: {np.mean(guesses[truths] > 0.5):.1%} of the same, "
        + f"{np.mean(guesses[~truths] > 0.5):.3%} of the others"
    )


if __name__ == "__main__":
    main()

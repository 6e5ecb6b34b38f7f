"""The README's figures on quality: every preset on every data set with known truth.

    RESIGHT_DATA=FOLDER python benchmarks/quality.py [--json FILE] [--preset NAME]… [--data RECIPE]…

FOLDER holds `museum/`, `gardenspoint/`, `halensee/` and `moon/`; those that are missing are skipped and named.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import resight
from resight.collection import DEFAULT, Collection, open_collection
from resight.data.folder_walk import walk
from resight.data.sets import build as build_set
from resight.evaluate.evaluation import Evaluation
from resight.evaluate.statistics.reliability import auc, expected_calibration_error
from resight.types import ImageRef

PRESETS = ("sift", "sift_vlad", "tokens", "products", "sift_tokens")
DATA = {  # recipe that says data and metrics → folder
    "museum_photo_to_painting": "museum",
    "museum_painting_to_photos": "museum",
    "gardens_point": "gardenspoint",
    "halensee": "halensee",
    "moon": "moon",
}
MUSEUM_SETS = ("qsd1_w1", "qsd2_w2", "qsd1_w3", "qsd2_w3", "qsd1_w4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--preset", choices=PRESETS, action="append")
    parser.add_argument("--data", choices=list(DATA), action="append")
    options = parser.parse_args()
    root = Path(os.environ["RESIGHT_DATA"])
    figures: list[dict[str, Any]] = []
    for name in options.data or DATA:
        if not (root / DATA[name]).is_dir():
            print(f"\n{name}: skipped, there is no folder {DATA[name]} in RESIGHT_DATA")
            continue
        for preset in options.preset or PRESETS:
            figures += measure(preset, name, root)
    print_choice(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1, default=str) + "\n", encoding="utf-8")


def measure(preset: str, name: str, root: Path) -> Iterator[dict[str, Any]]:
    folder = root / DATA[name]
    with tempfile.TemporaryDirectory() as scratch:
        keep = Path(scratch) / "database.resight"
        evaluation = resight.evaluate(name, folder, encoders=[preset], keep=keep)
        show(preset, evaluation)
        figures = {"preset": preset, "data": name, **evaluation.to_dict()}
        yield figures
        if name == "museum_photo_to_painting":
            yield {"preset": preset} | separate_unknown(open_collection(keep), figures["per_query"], root)
    if (preset, name) == (DEFAULT, "museum_painting_to_photos"):
        for part in MUSEUM_SETS:
            overrides = [f'data.sets=["{part}"]']
            evaluation = resight.evaluate(name, folder, encoders=[preset], overrides=overrides)
            show(f"{preset}, only the photos of {part}", evaluation)
            yield {"preset": preset, "data": f"{name}, {part}", **evaluation.to_dict()}


def print_choice(figures: list[dict[str, Any]]) -> None:
    """One row per preset: R@1 and AP on each data set, and their means."""
    names = list(dict.fromkeys(entry["data"] for entry in figures if entry.get("data") in DATA))
    print(
        "\nR@1 / AP at the hits\n\n| preset | "
        + " | ".join([*names, "mean"])
        + " |\n"
        + "|---" * (len(names) + 2)
        + "|"
    )
    for preset in PRESETS:
        rows = {
            entry["data"]: entry["metrics"] for entry in figures if entry.get("preset") == preset and "data" in entry
        }
        if all(name in rows for name in names) and names:
            pairs = [(rows[name]["recall@1"]["mean"], rows[name]["ap"]["mean"]) for name in names]
            pairs.append((sum(first for first, _ in pairs) / len(pairs), sum(ap for _, ap in pairs) / len(pairs)))
            print(f"| {preset} | " + " | ".join(f"{first:.3f} / {ap:.3f}" for first, ap in pairs) + " |")


def show(stages: str, evaluation: Evaluation) -> None:
    table = evaluation.table
    print(f"\n{table.title}; {stages}\n")
    print("| " + " | ".join(table.columns) + " |")
    print("|" + "---|" * len(table.columns))
    for row in table.rows:
        print("| " + " | ".join(row) + " |")
    for note in table.notes:
        if note.startswith(("AUC", "indexing")):
            print(f"\n{note}", flush=True)


def separate_unknown(collection: Collection, judged: list[dict[str, Any]], root: Path) -> dict[str, Any]:
    """How well the probability separates photos of known paintings from photos of unknown ones and of streets."""
    known = [query["probability"] for query in judged if "recall@1" in query]
    unknown = [query["probability"] for query in judged if "recall@1" not in query]
    streets = [collection.search(ref, k=1)[0].probability or 0.0 for ref in list_streets(root)]
    truths = [query.get("recall@1", 0.0) for query in judged] + [0.0] * len(streets)
    error = expected_calibration_error([query["probability"] for query in judged] + streets, truths)
    found = {
        "known": len(known),
        "unknown_paintings": len(unknown),
        "streets": len(streets),
        "auc_unknown_paintings": auc(known, unknown),
        "auc_streets": auc(known, streets),
        "auc_all": auc(known, unknown + streets),
        "expected_calibration_error": error,
        "known_above_half": sum(value >= 0.5 for value in known),
        "others_above_half": sum(value >= 0.5 for value in unknown + streets),
    }
    print("\nprobability of the best answer, photos whose painting is there against others:")
    for name, value in found.items():
        print(f"  {name}: {value:.4f}" if isinstance(value, float) else f"  {name}: {value}")
    return found


def list_streets(root: Path) -> Iterator[ImageRef]:
    """Every fourth frame of Gardens Point by day, every second street photo of Halensee."""
    yield from build_set("gardens_point").load(root / "gardenspoint").database[::4]
    refs = [ref for ref in walk(root / "halensee") if isinstance(ref, ImageRef)]
    yield from refs[::2]


if __name__ == "__main__":
    main()

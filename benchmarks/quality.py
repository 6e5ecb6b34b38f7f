"""The README's figures on quality: museum and Gardens Point, with real images.

    RESIGHT_DATA=FOLDER python benchmarks/quality.py [--json FILE]

FOLDER holds `museum/` and `gardenspoint/` (and `halensee/`, whose street photos serve as queries that have no answer).
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resight import recipe as recipes
from resight.collection import Collection, open_collection
from resight.data.sets import build as build_set
from resight.data.sets.folder import walk
from resight.evaluate.calibration import auc, expected_calibration_error
from resight.evaluate.report import summarise, tabulate
from resight.evaluate.run import RunResult, run
from resight.types import ImageRef

RUNS = (
    ("museum_photo_to_painting", "museum", "asmk", ()),
    ("museum_photo_to_painting", "museum", "vlad", ("branches.0.descriptor=vlad", "index=exact")),
    ("museum_painting_to_photos", "museum", "asmk", ()),
    ("museum_painting_to_photos", "museum", "vlad", ("branches.0.descriptor=vlad", "index=exact")),
    ("gardens_point", "gardenspoint", "asmk", ()),
    ("gardens_point", "gardenspoint", "vlad", ("branches.0.descriptor=vlad", "index=exact")),
)
MUSEUM_SETS = ("qsd1_w1", "qsd2_w2", "qsd1_w3", "qsd2_w3", "qsd1_w4")
NO_GEOMETRY = "rerankers=[]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    root = Path(os.environ["RESIGHT_DATA"])
    figures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, folder, descriptor, overrides) in enumerate(RUNS):
            keep = Path(scratch) / f"{number}.resight"
            for stages, more in ((f"{descriptor} + geometry", ()), (f"{descriptor} alone", (NO_GEOMETRY,))):
                result = run(recipes.load(name, (*overrides, *more)), root / folder, keep=keep)
                show(stages, result)
                figures.append({"stages": stages, **summarise(result)})
            if (name, descriptor) == ("museum_photo_to_painting", "asmk"):
                figures.append(tell_strangers(open_collection(keep), figures[0]["per_query"], root))
    for name in MUSEUM_SETS:
        recipe = recipes.load("museum_painting_to_photos", (f'data.sets=["{name}"]',))
        result = run(recipe, root / "museum")
        show(f"asmk + geometry, only the photos of {name}", result)
        figures.append({"stages": f"asmk + geometry, {name}", **summarise(result)})
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1, default=str) + "\n", encoding="utf-8")


def show(stages: str, result: RunResult) -> None:
    table = tabulate(result)
    print(f"\n{table.title}; {stages}\n")
    print("| " + " | ".join(table.columns) + " |")
    print("|" + "---|" * len(table.columns))
    for row in table.rows:
        print("| " + " | ".join(row) + " |")
    for note in table.notes:
        if note.startswith(("AUC", "indexing")):
            print(f"\n{note}", flush=True)


def tell_strangers(collection: Collection, judged: list[dict[str, Any]], root: Path) -> dict[str, Any]:
    """Does the probability tell photos of a painting that is there from those of one that is not, and from streets?"""
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

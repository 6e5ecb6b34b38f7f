"""Craters of the Moon in two maps: how many `resight match` finds again, and how many of its matches are right.

    RESIGHT_DATA=… python benchmarks/match_craters.py FOLDER [--encoder PRESET] [--craters N]

A holds a crop of each crater cut out of one mosaic of photographs, B one cut out of another, made by other people from
other photographs. Both have three diameters a side, and craters of 60 km and more, some 25 pixels across. Right is the
same crater; recall counts all craters. Writes FOLDER/curve.csv: threshold, matches, precision, recall; with and without
one-to-one. Not CraterBench-R.
"""

import argparse
import csv
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from resight.audit.match import Matched, match_collections
from resight.collection import Collection, open_collection
from resight.data.sets import crater_map
from resight.types import ImageRef

MAPS = Path("moon_8k_color_brim16_4096x2048.jpg"), Path("celestia_hires_moon.jpg")
SHOWN = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--encoder", default="sift_tokens")
    options.add_argument("--craters", type=int, default=200)
    given = options.parse_args()
    config = crater_map.Config(
        map=MAPS[0],
        query_map=MAPS[1],
        catalogue=Path("HeadCraters.csv"),
        views=(3.0,),
        query_views=(3.0,),
        smallest_km=60.0,
        craters=given.craters,
        crops=given.folder,
    )
    data = crater_map.build(config).load(Path(os.environ["RESIGHT_DATA"]) / "moon")
    a = fill(given.folder / f"a_{given.encoder}.resight", given.encoder, data.queries)
    b = fill(given.folder / f"b_{given.encoder}.resight", given.encoder, data.database)
    right = {name: set(judgement.grades) for name, judgement in data.judgements.items()}
    rows = []
    for one_to_one in (False, True):
        found = match_collections(a, b, one_to_one=one_to_one, least=0.0)
        rows += [{"one_to_one": one_to_one, **point} for point in draw_curve(found, right)]
    with (given.folder / f"curve_{given.encoder}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    print(f"{given.encoder}: {len(a)} craters in {MAPS[1].stem}, {len(b)} crops of {MAPS[0].stem}")
    for row in rows:
        if row["threshold"] in SHOWN:
            text = "{threshold:.2f}: {matches} matches, precision {precision:.3f}, recall {recall:.3f}".format(**row)
            print("one to one" if row["one_to_one"] else "best of each", text)


def fill(path: Path, encoder: str, refs: Sequence[ImageRef]) -> Collection:
    collection = open_collection(path, encoder)
    collection.add([replace(ref, box=None) for ref in refs])
    return collection


def draw_curve(found: Sequence[Matched], right: dict[str, set[str]]) -> list[dict[str, float]]:
    points = []
    for threshold in sorted({*SHOWN, *(round(one.probability, 3) for one in found if one.b)}):
        chosen = [one for one in found if one.b and one.probability >= threshold]
        good = sum(one.b in right[one.a] for one in chosen)
        points.append(
            {
                "threshold": threshold,
                "matches": len(chosen),
                "precision": good / len(chosen) if chosen else 1.0,
                "recall": good / len(right),
            }
        )
    return points


if __name__ == "__main__":
    main()

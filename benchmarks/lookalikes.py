"""Craters that look alike: whether the nearest crater by form is nearer in its relief than the nearest by vectors.

    RESIGHT_DATA=… python benchmarks/lookalikes.py FOLDER [--part test] [--smallest 60] [--pairs 100]

Crops of three diameters are cut out of an optical mosaic (2.7 km per pixel at the equator), once per mosaic: the
methods see these alone. Craters have 60 km and more, which is 22 map pixels, and lie whole on the map of heights
(longitude 0 to 180, latitude -60 to 60), which the methods never see.

Test craters and tuning craters lie in other bands of longitude (crater_parts/split.py). Rings, harmonics, block, equal
weights and the least diameter were chosen on tuning craters by this measure; nothing is fitted to heights.

The nearest neighbour of a crater is the most similar crater of the same part that shares no ground with it: by vectors
(the method before: cosine of the means of the tokens that sift_tokens and tokens store, here over all craters rather
than the first 100 of a search), and by form, as `resight lookalikes` computes both.

The measure, of the heights' radial profile p(r), the median over 96 directions, r in radii, D the diameter:

    depth       (p(rim) - min of p up to r = 0.8) / D, rim = the highest p between r = 0.8 and 1.2
    rim         sharpness: (p(rim) - mean of p(rim - 0.2) and p(rim + 0.2)) / D
    peak        (mean of p up to r = 0.1 - min of p between r = 0.15 and 0.5) / D, at least 0

Each is standardised over the craters of the part. A pair's difference is the mean of the three absolute differences.
Pairs are blind: the measure knows no method. Intervals are paired bootstraps over query craters. The last rows are the
mean of both mosaics, per crater. `detects` is the difference that so many pairs would show in four of five studies: 2.8
standard errors.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from crater_parts.split import find_part
from numpy.typing import NDArray

from resight.audit.dedup.branches import pool
from resight.audit.likeness.crater_form import build_encoder, compare
from resight.audit.likeness.find_lookalikes import shares_ground
from resight.audit.likeness.form_cache import read_forms
from resight.collection import Collection, open_collection
from resight.data.image_cache import encode_png, write_images
from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.crater_view import read_crater_view
from resight.data.maps.map_file import open_map
from resight.data.maps.map_image import PlainMap, cut
from resight.data.maps.moon_maps import MOSAIC_BOUNDS, MOSAICS
from resight.data.maps.terrain import MOON_RADIUS, STEP, find_terrain
from resight.evaluate.statistics.tests import bootstrap_interval
from resight.types import FloatArray, ImageRef

VIEW = 3.0
PIXELS, HEIGHT_PIXELS = 256, 192
MEASURES = ("depth", "rim", "peak")
METHODS = ("vectors", "form")
SEED = 23
Values = NDArray[np.float64]
Apart = dict[str, Values]  # method → absolute differences of each crater and its neighbour [craters, measures]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--part", choices=("tuning", "test"), default="test")
    options.add_argument("--smallest", type=float, default=60.0)
    options.add_argument("--pairs", type=int, default=100, help="query craters of the first figure")
    given = options.parse_args()
    root = Path(os.environ["RESIGHT_DATA"]) / "moon"
    terrain = find_terrain(root)
    craters = [
        crater
        for crater in read_catalogue(root / "HeadCraters.csv")
        if crater.diameter >= given.smallest
        and terrain.holds(crater.frame(VIEW, MOON_RADIUS))
        and find_part(crater.lat, crater.lon, crater.diameter, VIEW) == given.part
    ]
    heights = PlainMap(terrain.grid, terrain.read_heights())
    measured = np.array([measure(heights, crater) for crater in craters])
    standard = (measured - measured.mean(axis=0)) / measured.std(axis=0)
    generator = np.random.default_rng(SEED)
    chosen = np.sort(generator.permutation(len(craters))[: given.pairs])
    chance = np.abs(standard[:, None] - standard[None]).mean()
    print(
        f"{len(craters)} {given.part} craters of {given.smallest:g} km and more; two at random differ by {chance:.3f}"
    )
    report: dict[str, object] = {"craters": len(craters), "part": given.part, "random": chance}
    apart: list[Apart] = []
    for mosaic in MOSAICS:
        collection = fill(given.folder / f"{given.part}_{Path(mosaic).stem}", root / mosaic, craters)
        nearest = find_nearest(collection, craters)
        apart.append({by: np.abs(standard - standard[rows]) for by, rows in nearest.items()})
        report[mosaic] = judge(mosaic, apart[-1], chosen, generator)
    both = {by: np.mean([one[by] for one in apart], axis=0) for by in METHODS}
    report["both"] = judge("both mosaics", both, chosen, generator)
    (given.folder / f"lookalikes_{given.part}.json").write_text(json.dumps(report, indent=1))


def measure(heights: PlainMap, crater: Crater) -> tuple[float, float, float]:
    """Depth, sharpness of the rim and height of the central peak, each over the diameter."""
    crop = cut(heights, crater.frame(VIEW, MOON_RADIUS), HEIGHT_PIXELS).astype(np.float32) * np.float32(STEP)
    return measure_profile(*draw_profile(crop), 1000 * crater.diameter)


def draw_profile(crop: FloatArray) -> tuple[Values, Values]:
    """Radii, and the median height at each over 96 directions; the crop is VIEW diameters wide."""
    radii, angles = np.linspace(0, 1.4, 57), np.arange(96) * (2 * np.pi / 96)
    middle, radius = (len(crop) - 1) / 2, len(crop) / (2 * VIEW)
    x, y = ((middle + radius * np.outer(turn(angles), radii)).astype(np.float32) for turn in (np.cos, np.sin))
    return radii, np.median(cv2.remap(crop, x, y, cv2.INTER_LINEAR), axis=0).astype(np.float64)


def measure_profile(radii: Values, profile: Values, diameter: float) -> tuple[float, float, float]:
    around = np.flatnonzero((radii >= 0.8) & (radii <= 1.2))
    rim = around[profile[around].argmax()]
    beside = (np.interp(radii[rim] - 0.2, radii, profile) + np.interp(radii[rim] + 0.2, radii, profile)) / 2
    ring = profile[(radii >= 0.15) & (radii <= 0.5)].min()
    peak = max(profile[radii <= 0.1].mean() - ring, 0.0)
    depth = profile[rim] - profile[radii <= 0.8].min()
    return float(depth / diameter), float((profile[rim] - beside) / diameter), float(peak / diameter)


def fill(folder: Path, mosaic: Path, craters: Sequence[Crater]) -> Collection:
    image = open_map(mosaic, MOSAIC_BOUNDS, MOON_RADIUS)
    crops = {crater.id: folder / f"{crater.id}.png" for crater in craters}
    missing = [crater for crater in craters if not crops[crater.id].is_file()]
    drawn = ((crops[one.id], encode_png(cut(image, one.frame(VIEW, MOON_RADIUS), PIXELS))) for one in missing)
    write_images(drawn, folder, "folder")
    collection = open_collection(folder.with_suffix(".resight"), "tokens")
    facts = ("crater_lat", "crater_lon", "diameter_km")
    collection.add(
        [
            ImageRef(
                one.id,
                crops[one.id],
                attributes={
                    **dict(zip(facts, (one.lat, one.lon, one.diameter), strict=True)),
                    "label": one.id,
                    "view": f"{VIEW:g}x",
                },
            )
            for one in craters
        ]
    )
    return collection


def find_nearest(collection: Collection, craters: Sequence[Crater]) -> dict[str, NDArray[np.int64]]:
    """Method → the row of each crater's nearest neighbour."""
    view = collection.view()
    crops = [(record, read_crater_view(record.attributes)) for record in view.records([one.id for one in craters])]
    known = [(record, one) for record, one in crops if one is not None]
    forms = read_forms(collection.path, known, build_encoder())
    assert len(forms.ids) == len(craters) == len(known)
    vectors = pool(view, 0, [one.id for one in craters])
    alike = {
        "vectors": vectors @ vectors.T,
        "form": np.stack([compare(form, forms.vectors)[0] for form in forms.vectors]),
    }
    blank = int((np.linalg.norm(vectors, axis=1) == 0).sum())
    print(f"{collection.path.name}: {blank} crops without tokens")
    for row, (_, here) in enumerate(known):
        shared = [shares_ground(here, other) for _, other in known]
        for similarity in alike.values():
            similarity[row, shared] = -np.inf
    return {by: similarity.argmax(axis=1) for by, similarity in alike.items()}


def judge(mosaic: str, apart: Apart, chosen: NDArray[np.int64], generator: np.random.Generator) -> dict[str, object]:
    found: dict[str, object] = {}
    print(mosaic)
    for words, queries in ((f"{len(chosen)} pairs", chosen), ("all pairs", np.arange(len(apart["form"])))):
        gain = (apart["form"] - apart["vectors"])[queries]
        low, high = bootstrap_interval(gain.mean(axis=1), generator, samples=10_000)
        detects = 2.8 * float(gain.mean(axis=1).std(ddof=1)) / len(gain) ** 0.5
        means = {by: float(apart[by][queries].mean()) for by in METHODS}
        each = {
            name: [round(float(apart[by][queries, k].mean()), 3) for by in METHODS] for k, name in enumerate(MEASURES)
        }
        found[words] = {
            **means,
            "difference": float(gain.mean()),
            "interval": [low, high],
            "detects": detects,
            "measures": each,
        }
        print(
            f"  {words}: vectors {means['vectors']:.3f}, form {means['form']:.3f}, "
            f"difference {gain.mean():+.3f} [{low:+.3f}, {high:+.3f}], detects {detects:.3f}; {each}"
        )
    return found


if __name__ == "__main__":
    main()

"""Fits the probability of pairs that comes with the package, on pairs whose truth is known by construction.

Photographs of two Python packages (mvtb-data, scikit-image), none of which is in a test, are changed in random ways:
those of a copy (dedup_parts/copies.py, two of them one after the other), and those of another view
(fit_calibration.py: flat things in another scene, places in other light). All go into one collection; every pair that
`resight dedup` verifies is a sample. Pairs of two photographs of one subject are left out.

    python benchmarks/fit_pairs.py        writes src/resight/audit/calibration.json
"""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from dedup_parts.copies import WAYS, copy
from preset_parts.signals import Photo, load_photos

from resight.audit.dedup.branches import choose_branches
from resight.audit.dedup.candidates import Depth, find_candidates
from resight.audit.dedup.grey_thumbnails import Side, make_thumbnails, outline_of
from resight.audit.dedup.pairs import FITTED, classify, list_signals
from resight.audit.dedup.verify import Finding, examine
from resight.collection import open_collection
from resight.evaluate.synthetic_views import show_flat, show_place
from resight.search import calibration

COPIES, VIEWS = 3, 2  # of each photograph
TWICE_INLIERS, TWICE_AGREEMENT = 15, 0.5  # of two photographs that have to be looked at: one thing, perhaps


def main() -> None:
    generator = np.random.default_rng(11)
    photos = list(load_photos())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "pictures"
        subjects = {str(number): photo.subject for number, photo in enumerate(photos)}
        for number, photo in enumerate(photos):
            write_changed(photo, folder / str(number), generator)
        # Inliers and agreement are the same for every preset with these key points; this one needs no network.
        collection = open_collection(Path(scratch) / "pairs.resight", "sift")
        collection.add(folder)
        records = list(collection.records())
        thumbnails = make_thumbnails(records, Path(scratch) / "thumbnails.npy")
        side = Side(collection, thumbnails.ids, tuple(map(outline_of, records)), thumbnails)
        branches = choose_branches(collection.recipe)
        # Also pairs that no candidate list would give: unrelated images of the same kind of scene.
        candidates = find_candidates(side, side, branches, Depth(words=20, mirrored=8, least_dense=0.2), Path(scratch))
        found = [finding for _, batch in examine(side, side, candidates, branches) for finding in batch]
        by_shades = replace(branches, words=None, local=None, mirrors=False)
        laid = [finding for _, batch in examine(side, side, candidates, by_shades) for finding in batch]
    twice = find_twice(found, side.ids)
    print(f"{len(photos)} photographs, {len(records)} images, {len(candidates.rows)} candidates")
    print(f"{len(twice)} pairs of photographs are left out, because they may show one thing under two names")
    fitted = []
    for name, findings in (("key points", found), ("shades alone", laid)):
        known = judge_known(findings, side.ids, subjects)
        samples = [sample for sample in known if name_photos(sample[0], side.ids) not in twice]
        fitted.append(fit_even([(list_signals(finding), same) for finding, same in samples]))
        report(name, samples, fitted[-1])
    calibration.save(fitted, FITTED)


def fit_even(samples: list[tuple[calibration.Signals, bool]]) -> calibration.Calibration:
    """As if as many pairs were wrong as right: here most are copies by construction, elsewhere most are not."""
    fitted = calibration.fit(samples)
    return replace(fitted, bias=fitted.bias + math.log((fitted.pairs - fitted.same) / fitted.same))


def write_changed(photo: Photo, folder: Path, generator: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    pixels = photo.picture.pixels
    cv2.imwrite(str(folder / "original.png"), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
    for number in range(COPIES):
        first, second = generator.choice(list(WAYS), 2, replace=False)
        once = cv2.imdecode(np.frombuffer(copy(pixels, first, generator), np.uint8), cv2.IMREAD_COLOR)
        again = np.asarray(cv2.cvtColor(once, cv2.COLOR_BGR2RGB), np.uint8)
        (folder / f"copy_{number}.jpg").write_bytes(copy(again, second, generator))
    for number in range(VIEWS):
        # Noise behind: another photograph would make true pairs that are called wrong.
        scene = generator.integers(0, 256, (70, 70, 3)).astype(np.uint8)
        view = show_flat(pixels, scene, generator) if number % 3 else show_place(pixels, generator)
        cv2.imwrite(str(folder / f"view_{number}.jpg"), cv2.cvtColor(view, cv2.COLOR_RGB2BGR))


def find_twice(found: list[Finding], ids: tuple[str, ...]) -> set[tuple[str, str]]:
    """Photographs that show one thing under two names: the packages have some twice."""
    return {
        name_photos(finding, ids)
        for finding in found
        if all(Path(ids[row]).stem == "original" for row in (finding.a, finding.b))
        and finding.inliers >= TWICE_INLIERS
        and finding.registration.agreement >= TWICE_AGREEMENT
    }


def name_photos(finding: Finding, ids: tuple[str, ...]) -> tuple[str, str]:
    one, two = sorted(Path(ids[row]).parts[0] for row in (finding.a, finding.b))
    return one, two


def judge_known(found: list[Finding], ids: tuple[str, ...], subjects: dict[str, str]) -> Iterator[tuple[Finding, bool]]:
    for finding in found:
        one, two = (Path(ids[row]).parts[0] for row in (finding.a, finding.b))
        if one == two or subjects[one] != subjects[two]:
            yield finding, one == two


def report(name: str, samples: list[tuple[Finding, bool]], fitted: calibration.Calibration) -> None:
    chances = np.array([fitted.probability(fitted.log_odds(list_signals(finding))) for finding, _ in samples])
    truths = np.array([same for _, same in samples])
    print(f"{name}: {truths.sum()} same, {(~truths).sum()} other; bias {fitted.bias:.2f}, {dict(fitted.weights)}")
    print(
        f"at 0.5 and more: {np.mean(chances[truths] >= 0.5):.3%} of the same, {np.sum(chances[~truths] >= 0.5)} others"
    )
    for finding, _ in sorted((one for one in samples if not one[1]), key=lambda one: -one[0].inliers)[:10]:
        print("  other:", finding.inliers, "inliers, agreement", round(finding.registration.agreement, 2))
    kinds = [classify(finding) for finding, same in samples if same]
    print("kinds of the same:", {kind: kinds.count(kind) for kind in set(kinds)})
    for low, high in zip((0, 0.1, 0.5, 0.9, 0.99), (0.1, 0.5, 0.9, 0.99, 1.01), strict=True):
        inside = (chances >= low) & (chances < high)
        if inside.any():
            print(
                f"  {low:.2f} to {high:.2f}: {inside.sum()} pairs, said {chances[inside].mean():.3f}, "
                f"true {truths[inside].mean():.3f}"
            )


if __name__ == "__main__":
    main()

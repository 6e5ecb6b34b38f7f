"""Fits the calibrations that come with the package, on pairs whose truth is known by construction.

Photographs of two Python packages (mvtb-data, scikit-image) are split by subject into those that a collection holds
and those that it lacks. Queries are new views of both: warped, relit, blurred, compressed, and laid into another
scene. A candidate is "same" when it is the photograph that the view was made from; candidates of the same subject,
or of the scene's, are left out.

    python benchmarks/fit_calibration.py        writes src/resight/search/calibration.json
"""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.collection import Collection, open_collection
from resight.data import images
from resight.data.sets.folder import walk
from resight.errors import ImageError
from resight.search import calibration
from resight.types import ImageRef, Picture, Skipped

VIEWS = 3  # of each photograph
SMALLEST = 200  # pixels; below are icons and drawings
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Photo:
    subject: str
    picture: Picture


def main() -> None:
    photos = list(load_photos())
    subjects = sorted({photo.subject for photo in photos})
    held = set(subjects[::2])
    print(f"{len(photos)} photographs of {len(subjects)} subjects, {len(held)} of them in the collection")
    fitted = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("sift", "sift_vlad"):
            collection = open_collection(Path(scratch) / f"{name}.resight", name)
            collection.add([photo.picture.ref for photo in photos if photo.subject in held])
            samples = list(collect(collection, photos, np.random.default_rng(7)))
            unverified = [
                ({key: signals[key] for key in signals if key != "inliers"}, same) for signals, same in samples
            ]
            for part in (samples, unverified):
                fitted.append(calibration.fit(part))
                report(name, fitted[-1], part)
    calibration.save(fitted, calibration.SHIPPED)


def load_photos() -> Iterator[Photo]:
    for package, folder in (("mvtbdata", "images"), ("skimage", "data")):
        root = Path(str(resources.files(package) / folder))
        for ref in walk(root):
            if isinstance(ref, Skipped):
                continue
            try:
                picture = images.read(ref, max_side=800)
            except ImageError:
                continue
            if min(picture.size) >= SMALLEST:
                subject = Path(ref.id).parts[0] if "/" in ref.id else re.split(r"[\d_.-]", ref.id)[0]
                yield Photo(subject, replace(picture, ref=ImageRef(f"{package}/{ref.id}", ref.path)))


def collect(
    collection: Collection, photos: list[Photo], generator: np.random.Generator
) -> Iterator[tuple[calibration.Signals, bool]]:
    """The signals of every candidate of every view, and whether it is the same thing."""
    subject_of = {photo.picture.ref.id: photo.subject for photo in photos}
    for photo in photos:
        for _ in range(VIEWS):
            scene = photos[generator.integers(len(photos))]
            pixels = make_view(photo.picture.pixels, scene.picture.pixels, generator)
            size = (pixels.shape[1], pixels.shape[0])
            ranking = collection.ask(Picture(ImageRef("view", Path("view")), pixels, size), k=30).ranking
            for name in ranking.ids:
                same = name == photo.picture.ref.id
                if same or subject_of[name] not in (photo.subject, scene.subject):
                    yield ranking.signals[name], same


def make_view(pixels: Pixels, scene: Pixels, generator: np.random.Generator) -> Pixels:
    """The photograph as a flat thing seen anew in another scene."""
    height, width = pixels.shape[:2]
    share = generator.uniform(0.25, 1.0)
    scale = share * 700 / max(height, width)
    background = cv2.resize(scene, (700, 700), interpolation=cv2.INTER_AREA)
    tilt = np.radians(generator.normal(0, 15))
    square = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    turned = (
        (square - square.mean(axis=0)) * scale @ np.array([[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]])
    )
    turned += generator.normal(0, 0.06 * share * 700, (4, 2)) + 350 + generator.uniform(-1, 1, 2) * (1 - share) * 300
    transform = cv2.getPerspectiveTransform(square.astype(np.float32), turned.astype(np.float32))
    view = cv2.warpPerspective(pixels, transform, (700, 700), background, cv2.INTER_AREA, cv2.BORDER_TRANSPARENT)
    lit = 255 * (view / 255.0) ** generator.uniform(0.5, 1.8) * generator.uniform(0.5, 1.2)
    blurred = cv2.GaussianBlur(lit, (0, 0), generator.uniform(0.3, 2.0))
    noisy = np.clip(blurred + generator.normal(0, generator.uniform(0, 8), view.shape), 0, 255).astype(np.uint8)
    _, packed = cv2.imencode(".jpg", noisy, [cv2.IMWRITE_JPEG_QUALITY, int(generator.integers(25, 90))])
    return np.asarray(cv2.imdecode(packed, cv2.IMREAD_COLOR), np.uint8)


def report(name: str, fitted: calibration.Calibration, samples: list[tuple[calibration.Signals, bool]]) -> None:
    guesses = np.array([fitted.probability(fitted.log_odds(signals)) for signals, _ in samples])
    truths = np.array([same for _, same in samples])
    print(
        f"{name}: {fitted.pairs} pairs, {fitted.same} same; bias {fitted.bias:.2f}, "
        + ", ".join(f"{name} {weight:.2f}" for name, weight in fitted.weights.items())
        + f"; above 0.5: {np.mean(guesses[truths] > 0.5):.1%} of the same, "
        + f"{np.mean(guesses[~truths] > 0.5):.3%} of the others"
    )


if __name__ == "__main__":
    main()

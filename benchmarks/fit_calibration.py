"""Fits the calibrations that come with the package, on pairs whose truth is known by construction.

Photographs of two Python packages (mvtb-data, scikit-image) are split by subject into those that a collection holds
and those that it lacks. Queries are new views of both, of two kinds: flat things (warped, relit, blurred, compressed,
and laid into another scene), and places at another hour (a window of the photograph in other light, with shade, lamps
and noise). A candidate is "same" when it is the photograph that the view was made from; candidates of the same subject,
or of the scene's, are left out.

    python benchmarks/fit_calibration.py        writes src/resight/search/calibration.json
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.collection import Collection, open_collection
from resight.data import image_files
from resight.data.folder_walk import walk
from resight.errors import ImageError
from resight.search import calibration
from resight.types import ImageRef, Picture, Skipped

SMALLEST = 200  # pixels; below are icons and drawings
Pixels = NDArray[np.uint8]
Samples = Sequence[tuple[calibration.Signals, bool]]


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
        for name, learnt in (("sift", ()), ("sift_vlad", ()), ("sift_tokens", ("aggregated",)), ("tokens", ())):
            collection = open_collection(Path(scratch) / f"{name}.resight", name)
            collection.add([photo.picture.ref for photo in photos if photo.subject in held])
            samples = list(collect(collection, photos, np.random.default_rng(7)))
            for wanted in choose_signals(name, samples):
                part = [({key: signals.get(key, 0.0) for key in wanted}, same) for signals, same in samples]
                spaces = {key: space for key, space in name_spaces(collection).items() if key in learnt}
                fitted.append(replace(calibration.fit(part), spaces=spaces))
                report(name, fitted[-1], part)
    others = [entry for entry in calibration.load(calibration.SHIPPED) if "layout" in entry.weights]  # of craters.py
    calibration.save([*fitted, *others], calibration.SHIPPED)


def choose_signals(name: str, samples: Samples) -> list[list[str]]:
    """With verification and without it. Of tokens alone only the standout is used, which suits every encoder."""
    if name == "tokens":
        return [["standout"]]
    everything = sorted({key for signals, _ in samples for key in signals})
    return [everything, [key for key in everything if key != "inliers"]]


def name_spaces(collection: Collection) -> dict[str, str]:
    return {part.name: collection.metadata.spaces[part.branch] for part in collection.view().pipeline.shortlisters}


def load_photos() -> Iterator[Photo]:
    for package, folder in (("mvtbdata", "images"), ("skimage", "data")):
        root = Path(str(resources.files(package) / folder))
        for ref in walk(root):
            if isinstance(ref, Skipped):
                continue
            try:
                picture = image_files.read(ref, max_side=800)
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
        for kind in ("flat", "flat", "place", "place"):
            scene = photos[generator.integers(len(photos))] if kind == "flat" else photo
            pixels = (
                show_flat(photo.picture.pixels, scene.picture.pixels, generator)
                if kind == "flat"
                else show_place(photo.picture.pixels, generator)
            )
            size = (pixels.shape[1], pixels.shape[0])
            ranking = collection.ask(Picture(ImageRef("view", Path("view")), pixels, size), k=30).ranking
            for name in ranking.ids:
                same = name == photo.picture.ref.id
                if same or subject_of[name] not in (photo.subject, scene.subject):
                    yield ranking.signals[name], same


def show_flat(pixels: Pixels, scene: Pixels, generator: np.random.Generator) -> Pixels:
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
    return spoil(lit, 2.0, 8, generator)


def show_place(pixels: Pixels, generator: np.random.Generator) -> Pixels:
    """A window of the photograph at another hour: darker, tinted, shaded from one side, with lamps."""
    height, width = pixels.shape[:2]
    part = generator.uniform(0.6, 1.0)
    wide, high = int(width * part), int(height * part)
    left, top = generator.integers(0, width - wide + 1), generator.integers(0, height - high + 1)
    window = cv2.resize(
        pixels[top : top + high, left : left + wide], (640, max(1, 640 * high // wide)), interpolation=cv2.INTER_AREA
    )
    lit = (window / 255.0) ** np.exp(generator.uniform(-0.5, 1.2)) * generator.uniform(0.15, 1.1)
    y, x = np.mgrid[0 : lit.shape[0], 0 : lit.shape[1]]
    from_side = np.cos(angle := generator.uniform(0, 2 * np.pi)) * x / x.max() + np.sin(angle) * y / max(y.max(), 1)
    shade = (from_side - from_side.min()) / np.ptp(from_side)
    lit *= (1 - generator.uniform(0, 0.8) * shade)[..., None] * generator.uniform((0.7, 1, 0.6), (1.1, 1, 1.1))
    for _ in range(generator.integers(0, 4)):
        lamp = (x - generator.uniform(0, x.max())) ** 2 + (y - generator.uniform(0, y.max())) ** 2
        reach, strength = generator.uniform(15, 80), generator.uniform(0.2, 0.9)
        lit += strength * np.exp(-lamp / (2 * reach**2))[..., None]
    return spoil(255 * lit, 2.5, 12, generator)


def spoil(view: NDArray[np.float64], blur: float, noise: float, generator: np.random.Generator) -> Pixels:
    """Blurred, noisy and compressed, each up to that much."""
    blurred = cv2.GaussianBlur(view, (0, 0), generator.uniform(0.3, blur))
    noisy = np.clip(blurred + generator.normal(0, generator.uniform(0, noise), view.shape), 0, 255).astype(np.uint8)
    _, packed = cv2.imencode(".jpg", noisy, [cv2.IMWRITE_JPEG_QUALITY, int(generator.integers(25, 90))])
    return np.asarray(cv2.imdecode(packed, cv2.IMREAD_COLOR), np.uint8)


def report(name: str, fitted: calibration.Calibration, samples: Samples) -> None:
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

"""Fits the calibrations that come with the package, on pairs whose truth is known by construction.

Photographs of two Python packages (mvtb-data, scikit-image) are split by subject into those that a collection holds
and those that it lacks. Queries are new views of both, of two kinds: flat things (warped, relit, blurred, compressed,
and laid into another scene), and places at another hour (a window of the photograph in other light, with shade, lamps
and noise). A candidate is "same" when it is the photograph that the view was made from; candidates of the same subject,
or of the scene's, are left out.

With RESIGHT_DATA, as many queries of each shared set take part, too: of the tuning half (preset_parts/halves.py), each
once with its answer in the database and once without. `benchmarks/presets.py` measures on the test halves.

    python benchmarks/fit_calibration.py SIGNALS    writes src/resight/search/calibration.json

SIGNALS is a folder for the signals of each preset, so that a run goes on where it stopped.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np
from preset_parts.halves import load_halves

from resight.collection import Collection, open_collection
from resight.data import image_files
from resight.data.folder_walk import walk
from resight.errors import ImageError
from resight.evaluate.synthetic_views import show_flat, show_place
from resight.search import calibration
from resight.search.pipeline import search
from resight.search.request import SearchRequest
from resight.types import ImageRef, Picture, Skipped

SMALLEST = 200  # pixels; below are icons and drawings
QUERIES = 60  # of each shared set
CANDIDATES = 30
PRESETS = (("sift_tokens", ("aggregated",)), ("sift", ()), ("sift_vlad", ()), ("tokens", ()))  # and learnt scores
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
        for name, learnt in PRESETS:
            collection = open_collection(Path(scratch) / f"{name}.resight", name)
            known = Path(sys.argv[1]) / f"{name}.json"
            if not known.exists():
                collection.add([photo.picture.ref for photo in photos if photo.subject in held])
                made = list(collect(collection, photos, np.random.default_rng(7)))
                write(known, [*made, *collect_shared(name, Path(scratch))])
            samples = [(signals, same) for signals, same in json.loads(known.read_text())]
            for wanted in choose_signals(name, samples):
                part = [({key: signals.get(key, 0.0) for key in wanted}, same) for signals, same in samples]
                spaces = {key: space for key, space in name_spaces(collection).items() if key in learnt}
                fitted.append(replace(calibration.fit(part), spaces=spaces))
                report(name, fitted[-1], part)
    others = [entry for entry in calibration.load(calibration.SHIPPED) if "layout" in entry.weights]  # of craters.py
    calibration.save([*fitted, *others], calibration.SHIPPED)


def choose_signals(name: str, samples: Samples) -> list[list[str]]:
    """With verification, with its geometry alone, and without. Of tokens alone only the standout, for every encoder."""
    if name == "tokens":
        return [["standout"]]
    everything = sorted({key for signals, _ in samples for key in signals})
    without_layout = [key for key in everything if not key.startswith("layout")]
    alone = [key for key in without_layout if key not in ("inliers", "significance")]
    return [everything, alone] if without_layout == everything else [everything, without_layout, alone]


def write(file: Path, samples: Samples) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([[dict(signals), bool(same)] for signals, same in samples]))


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
            ranking = collection.ask(Picture(ImageRef("view", Path("view")), pixels, size), k=CANDIDATES).ranking
            for name in ranking.ids:
                same = name == photo.picture.ref.id
                if same or subject_of[name] not in (photo.subject, scene.subject):
                    yield ranking.signals[name], same


def collect_shared(name: str, scratch: Path) -> Iterator[tuple[calibration.Signals, bool]]:
    """The candidates of queries of the tuning halves, each searched with its answer and without."""
    for half in load_halves("tuning", QUERIES):
        collection = open_collection(scratch / f"{name} {half.name}.resight", name)
        collection.add(list(half.dataset.database))
        view = collection.view()
        for ref in half.queries:
            query = view.encode_query(SearchRequest(ref))
            ignored = half.ignored(ref)
            for allowed in (None, half.unlike(ref)):
                ranking = search(query, view.pipeline, CANDIDATES, allowed, by_tokens=0)
                for image in ranking.ids:
                    if image not in ignored:
                        yield ranking.signals[image], image in half.positives(ref)
        print(f"{name}, {half.name}: {len(half.queries)} queries of the tuning half", flush=True)


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

"""The signals of every candidate of labelled searches, kept in a folder so that a run goes on where it stopped.

Two sources: new views of the photographs of two Python packages, whose truth is known by construction, and the shared
sets of `halves.py`. Half of the packages' subjects are missing from their collection; a query of a shared set asks
twice, once with its answer in the database and once without. Images that show nearly the same are left out.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np

from preset_parts.halves import Half
from resight.collection import Collection, open_collection
from resight.data import image_files
from resight.data.folder_walk import walk
from resight.errors import ImageError
from resight.evaluate.synthetic_views import show_flat, show_place
from resight.search.calibration import Signals
from resight.search.pipeline import search
from resight.search.request import SearchRequest
from resight.types import ImageRef, Picture, Ranking, Skipped

SMALLEST = 200  # pixels; below are icons and drawings
CANDIDATES = 30
Samples = list[tuple[Signals, bool]]


@dataclass(frozen=True)
class Photo:
    subject: str
    picture: Picture


@dataclass(frozen=True)
class Search:
    """The candidates of one search: image, whether it shows the same, its signals."""

    query: str
    known: bool  # whether the answer is in the database
    candidates: list[tuple[str, bool, Signals]]


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


def search_photos(preset: str, folder: Path, work: Path) -> list[Search]:
    """Two flat views and two of a place of every photograph, searched among those of every other subject."""
    return _keep(folder / f"{preset} photos.json", lambda: _search_photos(preset, work / f"{preset} photos.resight"))


def search_half(preset: str, half: Half, folder: Path, work: Path) -> list[Search]:
    """Every query of a half of a shared set, with its answer in the database and without."""
    return _keep(
        folder / f"{preset} {half.name} {half.part}.json",
        lambda: _search_half(half, make_collection(preset, half, work)),
    )


def make_collection(preset: str, half: Half, work: Path) -> Collection:
    """The database of a shared set."""
    collection = open_collection(work / f"{Path(preset).stem} {half.name}.resight", preset)
    collection.add(list(half.dataset.database))
    return collection


def list_pairs(searches: list[Search]) -> Samples:
    return [(signals, same) for each in searches for _, same, signals in each.candidates]


def _keep(file: Path, make: Callable[[], list[Search]]) -> list[Search]:
    if not file.exists():
        found = [asdict(each) for each in make()]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, default=float))
        print(f"{file.stem}: {len(found)} searches", flush=True)
    return [
        Search(each["query"], each["known"], [(image, same, signals) for image, same, signals in each["candidates"]])
        for each in json.loads(file.read_text())
    ]


def _search_photos(preset: str, path: Path) -> list[Search]:
    photos, generator = list(load_photos()), np.random.default_rng(7)
    subject_of = {photo.picture.ref.id: photo.subject for photo in photos}
    held = set(sorted(set(subject_of.values()))[::2])
    collection = open_collection(path, preset)
    collection.add([photo.picture.ref for photo in photos if photo.subject in held])
    found = []
    for photo in photos:
        for kind in ("flat", "flat", "place", "place"):
            scene = photos[generator.integers(len(photos))] if kind == "flat" else photo
            pixels = (
                show_flat(photo.picture.pixels, scene.picture.pixels, generator)
                if kind == "flat"
                else show_place(photo.picture.pixels, generator)
            )
            view = Picture(ImageRef("view", Path("view")), pixels, (pixels.shape[1], pixels.shape[0]))
            ranking = collection.ask(view, k=CANDIDATES).ranking
            own = photo.picture.ref.id
            alike = {name for name in ranking.ids if name != own and subject_of[name] in (photo.subject, scene.subject)}
            found.append(_record(f"{kind} {own}", photo.subject in held, ranking, {own}, alike))
    return found


def _search_half(half: Half, collection: Collection) -> list[Search]:
    view, found = collection.view(), []
    for ref in half.queries:
        query = view.encode_query(SearchRequest(ref))
        for known, allowed in ((True, None), (False, half.unlike(ref))):
            ranking = search(query, view.pipeline, CANDIDATES, allowed, by_tokens=0)
            found.append(_record(ref.id, known, ranking, half.positives(ref), half.ignored(ref)))
    return found


def _record(name: str, known: bool, ranking: Ranking, same: set[str] | frozenset[str], left_out: set[str]) -> Search:
    signals = {image: dict(ranking.signals[image]) for image in ranking.ids}
    rows = [(image, image in same, signals[image]) for image in ranking.ids if image not in left_out]
    return Search(name, known, rows)

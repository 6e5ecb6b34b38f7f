"""A collection: a folder of described images that can be added to and searched.

`Collection` wires the stages (data, encode, store, index, search) for everybody above: the command, the Python
API and the service all go through it. It may be used from many threads: one of them writes at a time (of all processes,
see resight.files.lock), and the others read through views, which no write changes.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import numpy as np

from resight import recipe as recipes
from resight import store as stores
from resight.collection import add as adding
from resight.collection import metadata
from resight.collection.add import AddReport, Progress, ReadImage
from resight.collection.answer import Answer
from resight.collection.build_pipeline import LOCAL, start_engine
from resight.collection.encode import Encoding
from resight.collection.image_list import ImageList, Source, list_images
from resight.collection.indexes import IndexCache
from resight.collection.location import fetch_newest, find_home, is_there, write_file
from resight.collection.view import View
from resight.data import image_files
from resight.encode.backbones import Backbone
from resight.encode.encoder import Encoder
from resight.encode.feature_cache import FeatureCache
from resight.errors import CollectionError, InputError, SpaceMismatch
from resight.files.lock import writer_lock
from resight.index import Searcher
from resight.search import calibration as calibrations
from resight.search.filters import Near
from resight.search.pipeline import Pipeline
from resight.search.request import Image, SearchRequest
from resight.store import KEEP, ImageRecord, Layout, Store
from resight.types import Box, Choice, Descriptors, Hit, ImageRef, Picture, Positions, Query, Recipe

DEFAULT = "sift_tokens"
CALIBRATION = "calibration.json"


def open_collection(
    path: str | Path,
    recipe: Recipe | str | Path | None = None,
    *,
    must_exist: bool = False,
    cache: FeatureCache | None = None,
    engine: str = LOCAL,
    read: ReadImage = image_files.read,
    networks: Mapping[str, Backbone] | None = None,
) -> "Collection":
    """The collection in a folder or at s3://…, made if missing. `recipe` is a name, a path or a Recipe.

    An existing collection keeps the encoding it was made with; a recipe may only change how it is searched. With a
    `cache`, no picture goes through the same network twice, in any collection. `engine` is where it is searched:
    "local", "ray" or "ray://HOST:PORT" (build_pipeline.py). `read` decodes image files; the service passes one that
    runs in a sandbox. `networks` are loaded already, by the repr of their encoder's Choice.
    """
    start_engine(engine)
    folder = Path(path)
    wanted = recipes.load(recipe) if isinstance(recipe, (str, Path)) else recipe
    if must_exist or is_there(folder, metadata.FILE):
        made = metadata.read(folder)
        if wanted is not None:
            encoder = Encoder(wanted.branches, networks=networks)
            _check_same_encoding(folder, made, encoder)
            networks = encoder.networks
        return Collection(folder, made, wanted or made.recipe, cache, engine, read, networks)
    wanted = wanted or recipes.load(DEFAULT)
    encoder = Encoder(wanted.branches, networks=networks)
    store = wanted.store

    def make_store() -> None:
        stores.build(store.name, folder=folder, layout=_layout(encoder), **store.settings)

    made = metadata.create(folder, wanted, encoder.spaces, make_store)
    networks = _move_networks(encoder, wanted, made.recipe) if made.spaces == encoder.spaces else None
    return Collection(folder, made, made.recipe, cache, engine, read, networks)


class Collection:
    """Made by `resight.open`."""

    def __init__(
        self,
        folder: Path,
        made: metadata.Description,
        recipe: Recipe,
        cache: FeatureCache | None = None,
        engine: str = LOCAL,
        read: ReadImage = image_files.read,
        networks: Mapping[str, Backbone] | None = None,
    ) -> None:
        self.path = folder  # or where it lies elsewhere, folded (resight.files.remote)
        self.home = find_home(folder)  # the same, or the local folder that it works in
        self.cache = cache
        self.recipe = recipe
        self.engine = engine
        self.description = made
        self._encoding = Encoding(recipe.branches, made.spaces, cache, str(folder), read, networks)
        self._indexes = IndexCache(self.home, made.spaces, engine)
        self._lock = threading.Lock()
        self._view: View | None = None
        self._prepared: View | None = None

    def add(
        self, *sources: Source | ImageList, progress: Progress | None = None, engine: str = "local", tidy: bool = True
    ) -> AddReport:
        """Add images from folders, files, manifests or ImageRefs: new ones, and those that changed.

        `engine` says where they are encoded: "local", "ray", "ray://HOST:PORT" or "ray://auto"; see docs/scale.md.
        Without `tidy`, small files are left for `tidy()` to merge, however many there are; not so on a cluster.
        """
        with writer_lock(self.home):
            lists = list_images(sources)
            if engine != "local":
                return self._add_on_cluster(lists, engine, progress)
            return adding.add(lists, self._encoding.encoder, self._written, progress, tidy, self._encoding.read)

    def _add_on_cluster(self, lists: Sequence[ImageList], engine: str, progress: Progress | None) -> AddReport:
        from resight.collection import ray_add  # Ray is an extra

        if self.cache is not None:
            raise InputError(
                "the feature cache is of one machine, and cannot be used with an engine",
                expected="a cache, or an engine",
                actual=f"both, with the engine {engine!r}",
                fix="leave out one of them",
            )
        return ray_add.add(lists, self.path, self.description.spaces, self._written, engine, progress)

    def delete(self, ids: str | Sequence[str]) -> int:
        """Remove images by id; gives how many were there. The files themselves stay."""
        with writer_lock(self.home):
            return self._written.remove([ids] if isinstance(ids, str) else ids)

    def tidy(self, keep: timedelta = KEEP) -> None:
        """Merge the small files that many additions leave, and the parts of indexes; searches go on meanwhile.

        States that were replaced more than `keep` ago can no longer be read.
        """
        with writer_lock(self.home):
            self._written.compact(keep)
        self.view().merge_indexes()

    def view(self) -> View:
        """The newest state, for good: a search over it, or several, is not disturbed by whoever writes."""
        with self._lock:
            self._read.refresh()
            if self._view is None or self._view.version != self._read.version:
                self._view = self._make_view(self._view)
            return self._view

    def prepare(self) -> View:
        """The newest state with its indexes open, which takes a moment after a change; then `prepared` gives it."""
        view = self.view()
        _ = view.pipeline
        with self._lock:
            if self._prepared is None or view.version >= self._prepared.version:  # another thread may have been faster
                self._prepared = view
        return view

    def prepared(self) -> View:
        """The state that was last prepared: what to search where nobody should wait for an index of the newest one."""
        return self._prepared or self.prepare()

    def search(
        self,
        image: Image | Query,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> list[Hit]:
        """The best min(k, size) images. `box` is what to look for in the query; `where` holds conditions on
        attributes ("label=crater"); `near` is latitude, longitude and a radius in metres."""
        return list(self.ask(image, k, box=box, where=where, near=near).hits)

    def ask(
        self,
        image: Image | Query,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> Answer:
        """Like `search`, with the ranking and the matches."""
        return self.view().ask(SearchRequest.parse(image, k, box=box, where=where, near=near))

    def encode_query(self, image: Image, box: Box | None = None) -> Query:
        return self._encoding.encode_query(image, box)

    @property
    def query_side(self) -> int | None:
        """The side that the picture of a query may be reduced to when it is decoded whole; None: to none."""
        return self._encoding.query_side

    def records(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        """What is known of the images, all or some."""
        return self.view().records(ids)

    def descriptors(self, branch: int, ids: Sequence[str] | None = None) -> Iterator[Descriptors]:
        """The stored rows of one branch, a few images at a time."""
        return self.view().descriptors(branch, ids)

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        """Every patch of an image, or of a region of it, encoded now; None where that cannot be done."""
        return self.view().patches(name, region)

    def searcher(self, branch: int, choice: Choice | None = None, *, whole: bool = False) -> Searcher:
        """An index over the stored rows of one branch: see `View.searcher`."""
        return self.view().searcher(branch, choice, whole=whole)

    def positions(self) -> Positions:
        """Where the images were taken, of those that have lat and lon."""
        return self.view().positions()

    def __len__(self) -> int:
        return len(self.view())

    @property
    def pipeline(self) -> Pipeline:
        """The stages of a search over the newest state."""
        return self.view().pipeline

    def calibrate(self, calibration: calibrations.Calibration) -> None:
        """Use this calibration from now on, in place of the shipped one."""
        with writer_lock(self.home):
            calibrations.save([calibration], self.home / CALIBRATION)
            if self.home != self.path:
                write_file(self.path, CALIBRATION, (self.home / CALIBRATION).read_bytes())
        with self._lock:
            self._view = self._make_view(self._view)

    def _make_view(self, before: View | None) -> View:
        reader = self._read.snapshot()
        calibration = fetch_newest(self.path, CALIBRATION)
        return View(reader, self.recipe, self._encoding, self._indexes, calibration, before)

    @cached_property
    def _read(self) -> Store:
        """For views; used under `_lock`."""
        return self._open_store()

    @cached_property
    def _written(self) -> Store:
        """For whoever holds the writer lock, so that a write does not make readers wait."""
        return self._open_store()

    def _open_store(self) -> Store:
        choice = self.description.recipe.store
        return stores.build(choice.name, folder=self.path, **choice.settings)


def _layout(encoder: Encoder) -> tuple[Layout, ...]:
    """What the rows look like, from a blank picture: dtype and dimensions do not depend on what it shows."""
    blank = Picture(ImageRef("blank", Path("blank")), np.zeros((64, 64, 3), np.uint8), (64, 64))
    (rows,) = encoder.encode([blank])
    return tuple(Layout(str(row.vectors.dtype), row.vectors.shape[1], row.space) for row in rows)


def _move_networks(encoder: Encoder, wanted: Recipe, made: Recipe) -> dict[str, Backbone]:
    """The loaded networks under the names that they have in the collection's own recipe, which names its own files."""
    branches = zip(wanted.branches, made.branches, strict=True)
    return {repr(own.encoder): encoder.networks[repr(branch.encoder)] for branch, own in branches}


def _check_same_encoding(folder: Path, made: metadata.Description, encoder: Encoder) -> None:
    if encoder.spaces != made.spaces:
        raise SpaceMismatch(
            f"{folder} holds descriptors of another kind",
            expected=" | ".join(made.spaces),
            actual=" | ".join(encoder.spaces),
            fix="leave out --encoder and --recipe to use what it was made with, or index into a new collection",
        )


__all__ = ["DEFAULT", "AddReport", "Answer", "Collection", "CollectionError", "Image", "View", "open_collection"]

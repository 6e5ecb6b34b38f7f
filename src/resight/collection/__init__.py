"""A collection: a folder of encoded images that can be added to and searched.

`Collection` wires the stages (data, encode, store, index, search): the command, the Python API and the service all go
through it. Many threads may use one: one of them writes at a time (of all processes, see resight.files.lock), and the
others read through views, which no write changes. What only writing or only searching needs is imported when it is
first used, so that `resight index` loads no search and `resight search` loads nothing that adds.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resight import recipe as recipes
from resight import store as stores
from resight.collection import metadata
from resight.collection.encode import Encoding, check_same_encoding, measure_layout, move_networks
from resight.collection.location import fetch_newest, find_local_folder, write_file
from resight.collection.queries import Searchable
from resight.data import image_files
from resight.encode.backbones import Backbone
from resight.encode.encoder import Encoder
from resight.files.lock import writer_lock
from resight.store import KEEP, ImageRecord, Store
from resight.types import Attribute, Descriptors, ImageRef, Recipe

if TYPE_CHECKING:
    from resight.collection.add import AddReport, EncodedImages, Progress, ReadImage
    from resight.collection.image_list import ImageList, Source
    from resight.collection.indexes import IndexCache
    from resight.collection.moved_files import RelinkReport
    from resight.collection.view import View
    from resight.encode.feature_cache import FeatureCache
    from resight.search.calibration import Calibration

DEFAULT = "sift_tokens"
CALIBRATION, LOCAL = "calibration.json", "local"  # LOCAL: the engine of this process


def open_collection(
    path: str | Path,
    recipe: Recipe | str | Path | None = None,
    *,
    encoder: Any = None,
    must_exist: bool = False,
    cache: "FeatureCache | None" = None,
    engine: str = LOCAL,
    read: "ReadImage" = image_files.read,
    networks: Mapping[str, Backbone] | None = None,
) -> "Collection":
    """Open a collection, and create it if it does not exist.

    Args:
        path: A folder, or an s3://… address.
        recipe: The name of a shipped recipe, the path of a TOML file, or a Recipe; default: the collection's own.
            It may change how an existing collection is searched, but not its encoding.
        encoder: Instead of the recipe's: the name of an encoder, an ONNX file, a network of torch, timm or
            sentence-transformers, a function (`wrap_encoder`), or vectors that you compute yourself (`own_vectors`).
        must_exist: Refuse to create a collection.
        cache: Reuse features in this cache: no picture goes through the same network twice.
        engine: Where searches run: "local", "ray", "ray://HOST:PORT" or "ray://auto".
        read: Decodes image files; the service passes a function that runs in a sandbox.
        networks: Networks that are loaded already, by the repr of their encoder's Choice.

    Returns:
        The collection. It is ready to add and to search; networks load on first use.

    Raises:
        CollectionError: The collection is missing or damaged, or the folder holds other files.
        SpaceMismatch: The recipe encodes images in another way than the collection does.
        RecipeError: The recipe is unknown or invalid.
        StorageError: The folder cannot be written to.

    Examples:
        >>> import resight
        >>> len(resight.open("photos.resight"))
        10
    """
    if engine != LOCAL:
        from resight.collection.engine import start_engine

        start_engine(engine)
    folder = Path(path)
    wanted = recipes.load(recipe) if isinstance(recipe, (str, Path)) else recipe
    if encoder is not None:
        from resight.collection.own_encoder import attach

        made = metadata.read(folder) if must_exist or metadata.exists(folder) else None
        wanted, networks = attach(encoder, wanted, made.recipe if made else None, made.spaces if made else ())
    if must_exist or metadata.exists(folder):
        made = metadata.read(folder)
        if wanted is not None:
            encoders = Encoder(wanted.branches, networks=networks)
            check_same_encoding(folder, made.spaces, encoders)
            networks = encoders.networks
        return Collection(folder, made, wanted or made.recipe, cache, engine, read, networks)
    wanted = wanted or recipes.load(DEFAULT)
    encoders = Encoder(wanted.branches, networks=networks)
    store = partial(stores.build, wanted.store.name, folder=folder, **wanted.store.settings)
    made = metadata.create(folder, wanted, encoders.spaces, lambda: store(layout=measure_layout(encoders)))
    networks = move_networks(encoders, wanted, made.recipe) if made.spaces == encoders.spaces else None
    return Collection(folder, made, made.recipe, cache, engine, read, networks)


class Collection(Searchable):
    """A folder of encoded images that you can add to and search; `resight.open` returns it.

    Many threads may share one. `len()` counts its images, iterating gives their ids, `id in photos` looks one up, and
    `photos[id]` is its record; `path` is its folder or address, and `recipe` holds how it encodes and searches.

    Examples:
        >>> import resight
        >>> photos = resight.open("photos.resight")
        >>> photos.add("photos/").unchanged
        10
        >>> query = photos.encode_query("query.jpg")  # once, for several searches
        >>> for hit in photos.search(query, k=1):
        ...     print(hit.id, hit.probability > 0.98)
        eiffel-2.png True
        >>> photos.ask(query).hits[0].located_by
        'homography'
        >>> photos["eiffel-2.png"].size
        (480, 360)
        >>> next(photos.descriptors(1, ["eiffel-2.png"])).vectors.shape
        (32, 208)
        >>> photos.delete(["castle.png", "unknown.png"])
        1
    """

    def __init__(
        self,
        folder: Path,
        made: metadata.Metadata,
        recipe: Recipe,
        cache: "FeatureCache | None" = None,
        engine: str = LOCAL,
        read: "ReadImage" = image_files.read,
        networks: Mapping[str, Backbone] | None = None,
    ) -> None:
        self.path = folder  # a remote one as resight.files.remote writes it
        self.local_folder = find_local_folder(folder)  # the same, or the folder of a remote one on this machine
        self.cache = cache
        self.recipe = recipe
        self.engine = engine
        self.metadata = made
        self._store = made.recipe.store
        self._encoding = Encoding(recipe.branches, made.spaces, cache, str(folder), read, networks, recipe.rotations)
        self._lock = threading.Lock()
        self._view: View | None = None
        self._prepared: View | None = None

    def add(
        self,
        *sources: "Source | ImageList",
        save_to: str | Path | None = None,
        progress: "Progress | bool | None" = True,
        engine: str = LOCAL,
        tidy: bool = True,
        encoded: "EncodedImages | None" = None,
    ) -> "AddReport":
        """Add new and changed images. If it is interrupted, add them again: it continues where it stopped.

        Args:
            *sources: Folders, image files, manifests (CSV, JSON Lines, JSON), data sets ("gldv2:ROOT"), lists of paths
                or of ImageRefs; with `save_to` also images in memory: {"id": pixels, …}.
            save_to: A folder for images that have no file: pixels are saved as PNG, bytes and addresses as they are.
            progress: True shows a bar in a notebook, False none; or a function, called with the number of images done
                and in all.
            engine: Where images are encoded: "local", "ray", "ray://HOST:PORT" or "ray://auto".
            tidy: Merge small files at the end; a cluster always does.
            encoded: Images that `encode_images` has encoded already.

        Returns:
            Counts of added, updated, unchanged and moved images and of other files, and the files that were skipped.

        Raises:
            InputError: There are no images, or a source is none of these.
            CollectionBusy: Another process is writing.
        """
        from resight.collection.add import add
        from resight.collection.image_list import list_images
        from resight.collection.moved_files import follow
        from resight.progress import follow as follow_progress

        with writer_lock(self.local_folder), follow_progress(progress, "adding") as shown:
            lists = list_images(sources, None if save_to is None else Path(save_to))
            if engine != LOCAL:
                from resight.collection import ray_add  # Ray is an extra

                return ray_add.add(lists, self.path, self.metadata.spaces, self._written, engine, shown, self.cache)
            moved = follow(self._written, lists)
            report = add(lists, self._encoding.encoder, self._written, shown, tidy, self._encoding.read, encoded)
            return replace(report, moved=moved)

    def encode_images(self, refs: Sequence[ImageRef]) -> "EncodedImages":
        """Read and encode images, whose ids are unique, for `add`, without locking the collection."""
        from resight.collection.add import encode_images

        return encode_images(refs, self._encoding.encoder, self._encoding.read)

    def add_vectors(
        self,
        ids: Sequence[str],
        vectors: Any,
        *,
        paths: Sequence[str | Path] | None = None,
        attributes: Sequence[Mapping[str, Attribute]] | None = None,
        boxes: Sequence[Any] | None = None,
    ) -> "AddReport":
        """Add images by vectors that you have computed; those of known ids are replaced.

        The collection has one branch: `resight.open(path, encoder=resight.own_vectors(…))`, or an encoder of your own.

        Args:
            ids: One per image.
            vectors: [n, D], one per image; for tokens [n, k, D], or a list of [k, D]. They are scaled to unit length.
            paths: The files of the images, for answers to show.
            attributes: Values to filter by, one mapping per image.
            boxes: For tokens: [k, 4] per image, in pixels of the image; answers are located by them.

        Returns:
            Counts of added and updated images, and the files that were skipped.

        Raises:
            InputError: The vectors do not fit the collection; then none is added.
        """
        from resight.collection import own_vectors

        with writer_lock(self.local_folder):
            store, read = self._written, self._encoding.read
            checker = own_vectors.RowChecker(self.recipe.branches, store.layout, self.metadata.spaces)
            return own_vectors.add_vectors(
                store, checker, self.local_folder, read, ids, vectors, paths, attributes, boxes, self._encoding.probe
            )

    def delete(self, ids: str | Sequence[str]) -> int:
        """Remove images by id. The image files stay.

        Args:
            ids: One id, or several; unknown ids are ignored.

        Returns:
            How many of them the collection held.
        """
        with writer_lock(self.local_folder):
            return self._written.remove([ids] if isinstance(ids, str) else ids)

    def relink(self, source: "Source | ImageList", old: str | Path | None = None) -> "RelinkReport":
        """Give images whose files were moved their new paths; ids stay, and nothing is encoded again.

        Args:
            source: Where the files are now. Without `old`, files with the same content are found among these.
            old: The folder that `source` was before: the paths below it are changed, if the content is the same.

        Returns:
            How many images moved, and which are missing or have changed.
        """
        from resight.collection.moved_files import relink

        with writer_lock(self.local_folder):
            return relink(self._written, source, old)

    def prune(self, *folders: str | Path, most: float = 0.5) -> tuple[str, ...]:
        """Remove images whose files have vanished from folders.

        Args:
            *folders: Where the files were; each must exist and hold images, so that no unmounted disk empties it.
            most: Refuse to remove more than this share of the images of these folders; 1: remove any.

        Returns:
            The ids that were removed.

        Raises:
            InputError: A folder is missing or empty, or too many of its files are gone.
        """
        from resight.collection.moved_files import prune

        with writer_lock(self.local_folder):
            return prune(self._written, [Path(folder) for folder in folders], most)

    def tidy(self, keep: timedelta = KEEP) -> None:
        """Merge the small files that many additions leave, and the segments of indexes; searches go on meanwhile.

        Args:
            keep: States replaced longer ago than this can no longer be read.
        """
        with writer_lock(self.local_folder):
            self._written.compact(keep)
        self.view().merge_indexes()

    def view(self) -> "View":
        """Take a snapshot of the newest state, which no later write changes.

        Returns:
            A view; searches over one view agree with each other.
        """
        with self._lock:
            self._read.refresh()
            if not (self._view and self._view.commit_id == self._read.commit_id):
                self._view = self._make_view(self._view)
            return self._view

    def prepare(self) -> "View":
        """The newest state with its indexes open, which takes a moment after a change; `prepared` then returns it."""
        view = self.view()
        _ = view.pipeline
        with self._lock:
            if self._prepared is None or view.version >= self._prepared.version:  # another thread may have been faster
                self._prepared = view
        return view

    def prepared(self) -> "View":
        """The state last prepared: a search over it never waits for an index of a newer one."""
        return self._prepared or self.prepare()

    def records(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        """Read what is stored about images: path, size, checksum and attributes.

        Args:
            ids: The images, in this order; default: all. An unknown id is a CollectionError.

        Returns:
            Their records, one by one.
        """
        return self.view().records(ids)

    def descriptors(self, branch: int, ids: Sequence[str] | None = None) -> Iterator[Descriptors]:
        """Read the stored descriptors of one branch.

        Args:
            branch: The number of the branch in the recipe, from 0.
            ids: The images, in this order; default: all. An unknown id is a CollectionError.

        Returns:
            Batches of descriptors, a few images each.
        """
        return self.view().descriptors(branch, ids)

    def __len__(self) -> int:
        with self._lock:
            self._read.refresh()
            return len(self._read)

    def calibrate(self, calibration: "Calibration") -> None:
        """Use this calibration from now on, instead of the shipped one; `resight calibrate` fits one.

        Args:
            calibration: Turns the scores of the stages into a probability.
        """
        from resight.search import calibration as calibrations

        with writer_lock(self.local_folder):
            calibrations.save([calibration], self.local_folder / CALIBRATION)
            if self.local_folder != self.path:
                write_file(self.path, CALIBRATION, (self.local_folder / CALIBRATION).read_bytes())
        with self._lock:
            self._view = self._make_view(self._view)

    def _make_view(self, before: "View | None") -> "View":
        from resight.collection.view import View

        reader = self._read.snapshot()
        calibration = fetch_newest(self.path, CALIBRATION)
        return View(reader, self.recipe, self._encoding, self._indexes, calibration, before)

    @cached_property
    def _indexes(self) -> "IndexCache":
        from resight.collection.indexes import IndexCache

        return IndexCache(self.local_folder, self.metadata.spaces, self.engine)

    @cached_property
    def _read(self) -> Store:
        """The store that views read; used under `_lock`."""
        return stores.build(self._store.name, folder=self.path, **self._store.settings)

    @cached_property
    def _written(self) -> Store:
        """The store that the holder of the writer lock writes to, so that readers never wait for a write."""
        return stores.build(self._store.name, folder=self.path, **self._store.settings)

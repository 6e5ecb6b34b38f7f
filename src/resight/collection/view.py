"""A collection at one moment: everything that a search needs, and that no later write changes.

In: a snapshot of the store, and what all states of the collection share (encoding, indexes). Out: Answers. Many threads
may use a view at the same time, and a running search keeps the view that it began with. The view is the Gallery of its
pipeline. It reads and opens everything once, on first use.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from resight.collection.answer import Answer, Stage, TokenExplainer, make_answer
from resight.collection.encode import Encoding, query_by_id
from resight.collection.indexes import IndexCache
from resight.errors import ImageError, RecipeError, did_you_mean
from resight.files import remote
from resight.geodesy import Positions
from resight.index import Searcher
from resight.search import calibration as calibrations
from resight.search import fusions, rerankers
from resight.search.filters import Filter
from resight.search.gallery import Gallery
from resight.search.pipeline import Pipeline, search, search_in_stages
from resight.search.request import SearchRequest, StoredImage
from resight.search.shortlist import Shortlister, name_standout
from resight.store import ImageRecord, Layout, Reader
from resight.types import Box, Branch, Choice, Descriptors, Query, Ranking, Recipe

if TYPE_CHECKING:
    from resight.collection.attributes import AttributeSummary, AttributeTable
    from resight.collection.crater_positions import CraterPositions
    from resight.data.image_inputs import ImageInput


class View:
    """One state of a collection, which no later write changes; `Collection.view` returns it.

    `len()` counts its images. Many threads may share a view.

    Attributes:
        recipe: How the collection encodes and searches.

    Examples:
        >>> import resight
        >>> photos = resight.open("photos.resight")
        >>> view = photos.view()
        >>> photos.delete("castle.png")
        1
        >>> len(photos), len(view)
        (9, 10)
        >>> view.find("castle.png").size, photos.view().find("castle.png")
        ((480, 360), None)
    """

    def __init__(
        self,
        reader: Reader,
        recipe: Recipe,
        encoding: Encoding,
        indexes: IndexCache,
        calibration: Path,
        before: "View | None" = None,
    ) -> None:
        """`calibration` is the file of the collection's own, if any; `before` is an earlier view, to start from."""
        self.recipe = recipe
        self._reader = reader
        self._encoding = encoding
        self._indexes = indexes
        self._calibration = calibration
        self._lock = threading.RLock()  # guards the pipeline and the searchers
        self._pipeline: Pipeline | None = None
        self._searchers: dict[str, Searcher] = {}
        self._reading = threading.Lock()  # guards the attributes: listing images never waits for an index
        self._attributes: AttributeTable | None = None
        self._known: AttributeTable | None = None  # of an earlier state
        if before is not None:
            self._known = before._attributes or before._known

    @property
    def version(self) -> int:
        """A number that changes with every change of the collection."""
        return self._reader.version

    @property
    def commit_id(self) -> str:
        """A text of its own for every commit; a version number may come again if the store goes back."""
        return self._reader.commit_id

    def find_commit(self, version: int) -> str | None:
        """The commit that made an earlier version of this state's history; None if it is not known, or not earlier."""
        return self._reader.find_commit(version)

    @property
    def layout(self) -> tuple[Layout, ...]:
        """Dtype and dimensions of each branch's rows."""
        return self._reader.layout

    @property
    def stamps(self) -> Mapping[str, int]:
        """Id → the version in which the image last changed, in the order of the store."""
        return self._reader.stamps

    def __len__(self) -> int:
        return len(self._reader)

    def ask(self, request: SearchRequest) -> Answer:
        """Answer one search.

        Args:
            request: The image, the number of hits, the box and the filters.

        Returns:
            The best min(k, size) of the images that meet the filters.
        """
        query, allowed = self.encode_query(request), self._filter(request)
        return self._answer(query, search(query, self.pipeline, request.k, allowed), "verified", allowed)

    def ask_in_stages(self, request: SearchRequest) -> Iterator[Answer]:
        """Answer one search twice: early, and in full.

        Args:
            request: The image, the number of hits, the box and the filters.

        Returns:
            First the shortlist, as soon as it is found, and then the answer of `ask`.
        """
        query, allowed = self.encode_query(request), self._filter(request)
        stages: tuple[Stage, Stage] = ("shortlist", "verified")
        rankings = search_in_stages(query, self.pipeline, request.k, allowed)
        return (self._answer(query, ranking, stage, allowed) for ranking, stage in zip(rankings, stages, strict=True))

    def encode_query(self, request: SearchRequest) -> Query:
        """The request's image encoded, or the part in its box; an encoded query is returned as it is."""
        image = self.find_image(request.image)
        if isinstance(image, Query):
            return image
        if isinstance(image, StoredImage):
            return query_by_id(self._reader, image, self._encoding, request.box)
        return self._encoding.encode_query(image, request.box)

    def find_image(self, image: "ImageInput | StoredImage | Query") -> "ImageInput | StoredImage | Query":
        """A text that is no address is the path of a file, or the id of a stored image; all else stays as it is."""
        if not isinstance(image, str) or remote.is_remote(image):
            return image
        if os.path.lexists(image):
            return Path(image)
        if image in self._reader.stamps:
            return StoredImage(image)
        raise ImageError(
            f"cannot read {image}: there is no such file, and no image of the collection has this id",
            expected="the path of a file, an address, or an id of the collection",
            actual=repr(image),
            fix=did_you_mean(image, self._reader.stamps, "check the path, or list the ids"),
        )

    def records(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        """Read what is stored about images: path, size, checksum and attributes.

        Args:
            ids: The images, in this order; default: all. An unknown id is a CollectionError.

        Returns:
            Their records, one by one.
        """
        return self._reader.metadata(ids)

    def find(self, name: str) -> ImageRecord | None:
        """Read what is stored about one image.

        Args:
            name: Its id.

        Returns:
            Its record; None if the collection does not hold it.
        """
        return next(self._reader.metadata([name])) if name in self._reader.stamps else None

    def filter_images(self, filters: Sequence[Filter]) -> frozenset[str]:
        """The images that meet all filters."""
        return self._read_attributes().filter(filters)

    def attributes(self) -> "tuple[AttributeSummary, ...]":
        """List the attributes that filters can use.

        Returns:
            Their names, kinds and common values.
        """
        return self._read_attributes().summarise()

    def positions(self) -> Positions:
        """Read where images were taken.

        Returns:
            The positions of the images that have `lat` and `lon`.
        """
        return self._read_attributes().positions

    def craters(self) -> "CraterPositions":
        """Read which craters the images show, and where on their globe these lie.

        Returns:
            The craters of the images that have `crater_lat`, `crater_lon` and `diameter_km`.
        """
        return self._read_attributes().craters

    def descriptors(self, branch: int, ids: Sequence[str] | None = None) -> Iterator[Descriptors]:
        """The stored rows of one branch, a few images at a time."""
        return self._reader.descriptors(branch, ids)

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        """Every patch of an image or of a region of it, encoded now; None if its file is gone or has changed."""
        (record,) = self._reader.metadata([name])
        return self._encoding.look_at(record, region)

    def sizes(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Width and height of the originals, of those images that the collection holds."""
        held = [name for name in ids if name in self._reader.stamps]
        return {record.id: record.size for record in self._reader.metadata(held)} if held else {}

    def searcher(self, branch: int, choice: Choice | None = None, *, whole: bool = False) -> Searcher:
        """An index over the stored rows of one branch, built if missing; None: the one that the recipe names.

        `whole`: in one piece, by the plug-in itself.
        """
        choice = choice or self.recipe.branches[branch].index or self.recipe.index
        key = repr((branch, choice.name, sorted(choice.settings.items()), whole))
        with self._lock:
            if key not in self._searchers:
                self._searchers[key] = self._indexes.open(choice, self._reader, branch, whole=whole)
            return self._searchers[key]

    def merge_indexes(self) -> None:
        """Merge the segments of the indexes of the shortlist, for later views."""
        for number, branch in enumerate(self.recipe.branches):
            if branch.weight > 0:
                self._indexes.merge(branch.index or self.recipe.index, self._reader, number)

    @property
    def pipeline(self) -> Pipeline:
        """The stages of a search."""
        with self._lock:
            if self._pipeline is None:
                self._pipeline = build_pipeline(self.recipe, self._indexes.spaces, self, self._calibration)
            return self._pipeline

    def _filter(self, request: SearchRequest) -> frozenset[str] | None:
        return self.filter_images(request.filters) if request.filters else None

    def _answer(self, query: Query, ranking: Ranking, stage: Stage, allowed: frozenset[str] | None) -> Answer:
        branch = self._encoding.patch_branch
        explainer = None if branch is None else TokenExplainer(query, branch, self._reader, self.patches)
        searched = len(self) if allowed is None else len(allowed)
        return make_answer(query, ranking, self._reader.metadata, explainer, stage, searched)

    def _read_attributes(self) -> "AttributeTable":
        from resight.collection.attributes import AttributeTable  # for filters and positions alone

        with self._reading:
            if self._attributes is None:
                self._attributes = AttributeTable.read(self._reader, self._known)
                self._known = None
            return self._attributes


def build_pipeline(recipe: Recipe, spaces: Sequence[str], gallery: Gallery, calibration_file: Path) -> Pipeline:
    """`spaces` are those of the branches; the file holds the collection's own calibration, where it has one."""
    shortlisters = tuple(
        Shortlister(_signal(branch, recipe.branches), number, branch.weight, gallery.searcher(number, None))
        for number, branch in enumerate(recipe.branches)
        if branch.weight > 0
    )
    if not shortlisters:
        raise RecipeError(
            "no branch takes part in the shortlist", expected="a branch with weight above 0", fix="set a weight"
        )
    chain = tuple(rerankers.build(choice.name, **choice.settings) for choice in recipe.rerankers)
    scores = {part.name: spaces[part.branch] for part in shortlisters}
    signals = [name_standout(name, len(scores)) for name in scores] + [name for part in chain for name in part.signals]
    calibration = calibrations.choose(signals, calibration_file, scores)
    fusion = recipe.fusion or Choice("score")
    return Pipeline(shortlisters, fusions.build(fusion.name, **fusion.settings), chain, calibration, gallery)


def _signal(branch: Branch, branches: Sequence[Branch]) -> str:
    """The name of a branch's score: its descriptor, with the encoder before it where that alone is not unique."""
    same = [other for other in branches if other.weight > 0 and other.descriptor.name == branch.descriptor.name]
    return branch.descriptor.name if len(same) == 1 else f"{branch.encoder.name}_{branch.descriptor.name}"

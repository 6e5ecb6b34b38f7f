"""A collection as it is at one moment: everything that a search needs, and that no write changes any more.

In: a snapshot of the store, and what a collection has for all its states (encoding, indexes). Out: Answers. A view may
be used from many threads at once, and a search that runs keeps the view it began with. It is the Gallery of its
pipeline. What is read or opened for it is read or opened when it is first needed, once.
"""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from resight.collection.answer import Answer, Stage, TokenExplainer, check_count, make_answer
from resight.collection.attributes import AttributeSummary, AttributeTable, read_positions
from resight.collection.build_pipeline import build_pipeline
from resight.collection.encode import Encoding, Image, make_stored_query
from resight.collection.indexes import IndexCache
from resight.errors import InputError
from resight.index import Searcher
from resight.search import filters
from resight.search.pipeline import Pipeline, search, search_in_stages
from resight.search.position import estimate_position, list_best
from resight.store import ImageRecord, Layout, Reader
from resight.types import Box, Choice, Descriptors, Hit, Positions, Query, Ranking, Recipe

Near = tuple[float, float, float]  # latitude, longitude, metres


class View:
    """Made by `Collection.view`."""

    def __init__(
        self,
        reader: Reader,
        recipe: Recipe,
        encoding: Encoding,
        indexes: IndexCache,
        calibration: Path,
        before: "View | None" = None,
    ) -> None:
        """`calibration` is the collection's own, where it has one; of the view `before`, what is unchanged is kept."""
        self.recipe = recipe
        self._reader = reader
        self._encoding = encoding
        self._indexes = indexes
        self._calibration = calibration
        self._lock = threading.RLock()  # of what is below, up to the searchers
        self._pipeline: Pipeline | None = None
        self._searchers: dict[str, Searcher] = {}
        self._reading = threading.Lock()  # of the rest: whoever lists images does not wait for an index
        self._attributes: AttributeTable | None = None
        self._known: AttributeTable | None = None  # of an earlier state, to start from
        if before is not None:
            self._known = before._attributes or before._known

    @property
    def version(self) -> int:
        return self._reader.version

    @property
    def layout(self) -> tuple[Layout, ...]:
        """What the rows of each branch look like."""
        return self._reader.layout

    def __len__(self) -> int:
        return len(self._reader)

    def search(
        self,
        image: Image | Query,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> list[Hit]:
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
        """The best min(k, size) images. `box` is what to look for in the query; `where` holds conditions on
        attributes ("label=crater"); `near` is latitude, longitude and a radius in metres."""
        query, allowed = self._prepare(image, k, box, where, near)
        return self._answer(query, search(query, self.pipeline, k, allowed), "verified")

    def ask_in_stages(
        self,
        image: Image | Query,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> Iterator[Answer]:
        """First the shortlist, as soon as it is there, and then what `ask` gives."""
        query, allowed = self._prepare(image, k, box, where, near)
        stages: tuple[Stage, Stage] = ("shortlist", "verified")
        rankings = search_in_stages(query, self.pipeline, k, allowed)
        return (self._answer(query, ranking, stage) for ranking, stage in zip(rankings, stages, strict=True))

    def stored_query(self, name: str) -> Query:
        """A query for what a stored image shows; its file is read where what is stored does not tell enough."""
        return make_stored_query(self._reader, name, self._encoding)

    def records(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        """What is known of the images, all or some."""
        return self._reader.metadata(ids)

    def find(self, name: str) -> ImageRecord | None:
        """What is known of one image; None where there is none of that id."""
        return next(self._reader.metadata([name])) if name in self._reader.stamps else None

    def choose(self, where: Sequence[str] = (), near: Near | None = None) -> frozenset[str]:
        """The images that meet all conditions."""
        return self._read_attributes().choose(filters.parse(where, near))

    def attributes(self) -> tuple[AttributeSummary, ...]:
        """What may be filtered by: names with their kind and common values."""
        return self._read_attributes().summarise()

    def positions(self) -> Positions:
        """Where the images were taken, of those that have lat and lon."""
        return self._read_attributes().positions

    def descriptors(self, branch: int, ids: Sequence[str] | None = None) -> Iterator[Descriptors]:
        """The stored rows of one branch, a few images at a time."""
        return self._reader.descriptors(branch, ids)

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        """Every patch of an image, or of a region of it, encoded now; None where that cannot be done."""
        (record,) = self._reader.metadata([name])
        return self._encoding.look_at(record, region)

    def searcher(self, branch: int, choice: Choice | None = None, *, whole: bool = False) -> Searcher:
        """An index over the stored rows of one branch, made when missing; None: the one that the recipe names.

        `whole`: in one piece, the plug-in's own.
        """
        choice = choice or self.recipe.branches[branch].index or self.recipe.index
        key = repr((branch, choice.name, sorted(choice.settings.items()), whole))
        with self._lock:
            if key not in self._searchers:
                self._searchers[key] = self._indexes.open(choice, self._reader, branch, whole=whole)
            return self._searchers[key]

    def merge_indexes(self) -> None:
        """Put together the parts of the indexes that the shortlist is made with, for the views that come."""
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

    def _prepare(
        self, image: Image | Query, k: int, box: Box | None, where: Sequence[str], near: Near | None
    ) -> tuple[Query, frozenset[str] | None]:
        check_count(k)
        chosen = filters.parse(where, near)
        if isinstance(image, Query) and box is not None:
            raise InputError("the query is encoded already", expected="no box", actual=str(box), fix="encode the box")
        query = image if isinstance(image, Query) else self._encoding.encode_query(image, box)
        return query, self._read_attributes().choose(chosen) if chosen else None

    def _answer(self, query: Query, ranking: Ranking, stage: Stage) -> Answer:
        likely = list_best(ranking)  # more of them than hits, where few were asked for
        records = {record.id: record for record in self._reader.metadata(list({*ranking.ids, *likely}))}
        position = estimate_position(ranking, read_positions(records[name] for name in likely))
        return make_answer(query, ranking, records, position, self._explainer(query), stage)

    def _explainer(self, query: Query) -> TokenExplainer | None:
        branch = self._encoding.patch_branch
        return None if branch is None else TokenExplainer(query, branch, self._reader, self.patches)

    def sizes(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        return {record.id: record.size for record in self._reader.metadata(ids)} if ids else {}

    def _read_attributes(self) -> AttributeTable:
        with self._reading:
            if self._attributes is None:
                self._attributes = AttributeTable.read(self._reader, self._known)
                self._known = None
            return self._attributes

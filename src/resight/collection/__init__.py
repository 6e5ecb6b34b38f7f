"""A collection: a folder of described images that can be added to and searched.

`Collection` wires the stages (data, encode, store, index, search) for everybody above: the command, the Python
API and the service all go through it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from resight import recipe as recipes
from resight import store as stores
from resight.collection import adding, description
from resight.collection.adding import AddReport, Progress, Source
from resight.collection.explaining import TokenExplainer
from resight.collection.index_cache import open_index
from resight.collection.patches import find_patch_branch, keep_all_patches, look_at
from resight.collection.placing import read_positions
from resight.crops import clip
from resight.data import images
from resight.encode.encoder import Encoder
from resight.encode.feature_cache import FeatureCache
from resight.errors import BoxError, CollectionError, InputError, RecipeError, SpaceMismatch
from resight.index import Searcher
from resight.lock import writer_lock
from resight.search import calibration as calibrations
from resight.search import filters, fusions, rerankers
from resight.search.pipeline import Pipeline, search
from resight.search.position import estimate_position, list_best
from resight.search.shortlist import Shortlister, name_standout
from resight.store import ImageRecord, Layout, Store
from resight.types import (
    Box,
    Branch,
    Choice,
    Descriptors,
    Evidence,
    Hit,
    ImageRef,
    Picture,
    PositionEstimate,
    Positions,
    Query,
    Ranking,
    Recipe,
)

DEFAULT = "sift_tokens"
Image = str | Path | ImageRef | Picture


@dataclass(frozen=True)
class Answer:
    """All that a search found: hits for people, and the ranking with its matches for programs."""

    query: Query
    ranking: Ranking
    hits: tuple[Hit, ...]
    position: PositionEstimate | None = None  # where the query was taken; None: no positions, or no probabilities
    explainer: TokenExplainer | None = field(default=None, repr=False, compare=False)

    def explain(self, hit: Hit) -> Evidence:
        """Why this hit: the verified match, and by tokens which part matched which, with heat maps of both images.

        The maps take one run of the encoder.
        """
        match = self.ranking.matches.get(hit.id)
        evidence = Evidence(
            self.query.id,
            hit.id,
            hit.box,
            match=match,
            probability=hit.probability,
            region=self.ranking.regions.get(hit.id),
            located_by=hit.located_by,
        )
        return self.explainer.explain(evidence) if self.explainer else evidence


def open_collection(
    path: str | Path,
    recipe: Recipe | str | Path | None = None,
    *,
    must_exist: bool = False,
    cache: FeatureCache | None = None,
) -> "Collection":
    """The collection in a folder, made when missing. A recipe may be given by name, by path or ready-made.

    An existing collection keeps the encoding it was made with; a recipe may only change how it is searched. With a
    `cache`, no picture goes through the same network twice, whichever collection asks.
    """
    folder = Path(path)
    wanted = recipes.load(recipe) if isinstance(recipe, (str, Path)) else recipe
    if must_exist or (folder / description.FILE).exists():
        made = description.read(folder)
        if wanted is not None:
            _check_same_encoding(folder, made, wanted)
        return Collection(folder, made, wanted or made.recipe, cache)
    wanted = wanted or recipes.load(DEFAULT)
    encoder = Encoder(wanted.branches)
    store = wanted.store

    def make_store() -> None:
        stores.build(store.name, folder=folder, layout=_layout(encoder), **store.settings)

    made = description.create(folder, wanted, encoder.spaces, make_store)
    return Collection(folder, made, made.recipe, cache)


class Collection:
    """Made by `resight.open`."""

    def __init__(
        self, folder: Path, made: description.Description, recipe: Recipe, cache: FeatureCache | None = None
    ) -> None:
        self.path = folder
        self.cache = cache
        self.recipe = recipe
        self.description = made
        self._pipeline: tuple[int, Pipeline] | None = None
        self._searchers: dict[tuple[int, int, str], Searcher] = {}
        self._positions: tuple[int, Positions] | None = None

    def add(self, *sources: Source, progress: Progress | None = None) -> AddReport:
        """Add images from folders, files, manifests or ImageRefs: new ones, and those that changed."""
        with writer_lock(self.path):
            return adding.add(sources, self._encoder, self._store, progress)

    def delete(self, ids: str | Sequence[str]) -> int:
        """Remove images by id; gives how many were there. The files themselves stay."""
        with writer_lock(self.path):
            return self._store.remove([ids] if isinstance(ids, str) else ids)

    def search(
        self,
        image: Image,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: tuple[float, float, float] | None = None,
    ) -> list[Hit]:
        """The best min(k, size) images. `box` is what to look for in the query; `where` holds conditions on
        attributes ("label=crater"); `near` is latitude, longitude and a radius in metres."""
        return list(self.ask(image, k, box=box, where=where, near=near).hits)

    def ask(
        self,
        image: Image,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: tuple[float, float, float] | None = None,
    ) -> Answer:
        """Like `search`, with the ranking and the matches."""
        if k < 1:
            raise InputError("cannot give that many answers", expected="k of 1 or more", actual=f"k = {k}")
        chosen = filters.parse(where, near)
        query = self.encode_query(image, box)
        self._store.refresh()
        allowed = self._filter(chosen) if chosen else None
        ranking = search(query, self.pipeline, k, allowed)
        position = estimate_position(ranking, read_positions(self._store.metadata(list_best(ranking))))
        return Answer(query, ranking, tuple(self._hits(ranking)), position, self._explainer(query))

    def encode_query(self, image: Image, box: Box | None = None) -> Query:
        picture = read_query(image, None if box else self._query_encoder.query_side)
        box = box or picture.ref.box
        if box is not None and len(box) != 4:
            raise BoxError("not a box", expected="x0, y0, x1, y1", actual=f"{len(box)} numbers", fix="give four")
        width, height = picture.size
        outline = (0.0, 0.0, float(width), float(height)) if box is None else clip(box, picture.size, picture.ref.id)
        count = len(self.recipe.branches)
        rows = adding.encode_region(picture, box, self._query_encoder, "query")
        patches = next(iter(rows[count:]), None)
        return Query(picture.ref.id, picture.size, outline, rows[:count], picture.ref.attributes, patches)

    def records(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        """What is known of the images, all or some."""
        return self._store.metadata(ids)

    def descriptors(self, branch: int, ids: Sequence[str] | None = None) -> Iterator[Descriptors]:
        """The stored rows of one branch, a few images at a time."""
        return self._store.descriptors(branch, ids)

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        """Every patch of an image, or of a region of it, encoded now; None where that cannot be done."""
        if self._patch_encoder is None:
            return None
        (record,) = self._store.metadata([name])
        return look_at(record, region, self._patch_encoder)

    def searcher(self, branch: int, choice: Choice | None = None) -> Searcher:
        """An index over the stored rows of one branch: opened once for a state of the store, made when missing.

        None: the index that the recipe names for the branch.
        """
        choice = choice or self.recipe.branches[branch].index or self.recipe.index
        version = self._store.version
        key = version, branch, repr((choice.name, sorted(choice.settings.items())))
        if key not in self._searchers:
            opened = open_index(self.path, choice, self._store, branch, self.description.spaces[branch])
            current = {known: old for known, old in self._searchers.items() if known[0] == version}
            self._searchers = {**current, key: opened}
        return self._searchers[key]

    def positions(self) -> Positions:
        """Where the images were taken, of those that have lat and lon: read once for a state of the store."""
        version = self._store.version
        if self._positions is None or self._positions[0] != version:
            self._positions = version, read_positions(self._store.metadata())
        return self._positions[1]

    def __len__(self) -> int:
        return len(self._store)

    @property
    def pipeline(self) -> Pipeline:
        """The stages of a search over the present state of the store."""
        if self._pipeline is None or self._pipeline[0] != self._store.version:
            self._pipeline = self._store.version, self._build_pipeline()
        return self._pipeline[1]

    def calibrate(self, calibration: calibrations.Calibration) -> None:
        """Use this calibration from now on, in place of the shipped one."""
        with writer_lock(self.path):
            calibrations.save([calibration], self._calibration_file)
        self._pipeline = None

    @property
    def _calibration_file(self) -> Path:
        return self.path / "calibration.json"

    @cached_property
    def _encoder(self) -> Encoder:
        encoder = Encoder(self.recipe.branches, self.cache)
        if encoder.spaces != self.description.spaces:
            raise SpaceMismatch(
                f"{self.path} was encoded in a way that is not available here",
                expected=" | ".join(self.description.spaces),
                actual=" | ".join(encoder.spaces),
                fix="restore the code book or the weights that it was made with, or index the images again",
            )
        return encoder

    @cached_property
    def _query_encoder(self) -> Encoder:
        """Of the same networks: it gives the patches of a query, too, from the same pass."""
        patches = [keep_all_patches(self.recipe.branches[branch]) for branch in self._patch_branches]
        return Encoder([*self.recipe.branches, *patches], networks=self._encoder.networks)

    @cached_property
    def _patch_encoder(self) -> Encoder | None:
        patches = [keep_all_patches(self.recipe.branches[branch]) for branch in self._patch_branches]
        return Encoder(patches, networks=self._encoder.networks) if patches else None

    @property
    def _patch_branches(self) -> list[int]:
        """One, or none."""
        branch = find_patch_branch(self.recipe.branches)
        return [] if branch is None else [branch]

    @cached_property
    def _store(self) -> Store:
        choice = self.description.recipe.store
        return stores.build(choice.name, folder=self.path, **choice.settings)

    def _build_pipeline(self) -> Pipeline:
        recipe = self.recipe
        shortlisters = tuple(
            Shortlister(
                _signal(branch, recipe.branches),
                number,
                branch.weight,
                self.searcher(number, branch.index or recipe.index),
            )
            for number, branch in enumerate(recipe.branches)
            if branch.weight > 0
        )
        if not shortlisters:
            raise RecipeError(
                "no branch takes part in the shortlist", expected="a branch with weight above 0", fix="set a weight"
            )
        chain = tuple(rerankers.build(choice.name, **choice.settings) for choice in recipe.rerankers)
        scores = {part.name: self.description.spaces[part.branch] for part in shortlisters}
        signals = [name_standout(name, len(scores)) for name in scores] + [
            name for part in chain for name in part.signals
        ]
        calibration = calibrations.choose(signals, self._calibration_file, scores)
        fusion = recipe.fusion or Choice("score")
        return Pipeline(
            shortlisters, chain, calibration, self, self._sizes, fusions.build(fusion.name, **fusion.settings)
        )

    def _explainer(self, query: Query) -> TokenExplainer | None:
        branch = find_patch_branch(self.recipe.branches)
        return None if branch is None else TokenExplainer(query, branch, self._store, self.patches)

    def _sizes(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        return {record.id: record.size for record in self._store.metadata(ids)} if ids else {}

    def _filter(self, chosen: Sequence[filters.Filter]) -> frozenset[str]:
        return frozenset(
            record.id
            for record in self._store.metadata()
            if all(condition.holds(record.attributes) for condition in chosen)
        )

    def _hits(self, ranking: Ranking) -> Iterator[Hit]:
        records = self._store.metadata(ranking.ids) if ranking.ids else iter(())
        for record, score in zip(records, ranking.scores.tolist(), strict=True):
            yield Hit(
                id=record.id,
                path=record.path,
                score=score,
                probability=ranking.probabilities.get(record.id),
                box=ranking.boxes.get(record.id),
                attributes=record.attributes,
                stages=ranking.signals.get(record.id, {}),
                located_by=ranking.located_by.get(record.id, ""),
            )


def read_query(image: Image, max_side: int | None) -> Picture:
    if isinstance(image, Picture):
        return image
    ref = image if isinstance(image, ImageRef) else ImageRef(Path(image).name, Path(image))
    return images.read(ref, max_side=None if ref.box else max_side)


def _layout(encoder: Encoder) -> tuple[Layout, ...]:
    """What the rows look like, from a blank picture: dtype and dimensions do not depend on what it shows."""
    blank = Picture(ImageRef("blank", Path("blank")), np.zeros((64, 64, 3), np.uint8), (64, 64))
    (rows,) = encoder.encode([blank])
    return tuple(Layout(str(row.vectors.dtype), row.vectors.shape[1], row.space) for row in rows)


def _signal(branch: Branch, branches: Sequence[Branch]) -> str:
    """The name of a branch's score: its descriptor, with the encoder before it where that alone is not unique."""
    same = [other for other in branches if other.weight > 0 and other.descriptor.name == branch.descriptor.name]
    return branch.descriptor.name if len(same) == 1 else f"{branch.encoder.name}_{branch.descriptor.name}"


def _check_same_encoding(folder: Path, made: description.Description, wanted: Recipe) -> None:
    spaces = Encoder(wanted.branches).spaces
    if spaces != made.spaces:
        raise SpaceMismatch(
            f"{folder} holds descriptors of another kind",
            expected=" | ".join(made.spaces),
            actual=" | ".join(spaces),
            fix="leave out --encoder and --recipe to use what it was made with, or index into a new collection",
        )


__all__ = ["AddReport", "Answer", "Collection", "CollectionError", "Image", "open_collection"]

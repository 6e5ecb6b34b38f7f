"""Whatever was added, changed and removed: an index answers as one that was just built over the whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from resight import index, plugins
from resight.collection.indexes import IndexCache
from resight.errors import MissingExtra, RecipeError
from resight.index import Divisible, Index
from resight.store import ImageRecord
from resight.types import Choice, Descriptors, Ranking

MORE: list[tuple[str, dict[str, Any]]] = [
    ("exact", {"match": "mean"}),
    ("bow_histogram", {"tf_idf": False}),
    ("bow_histogram", {"tf_idf": False, "distance": "l1"}),
    ("asmk_inverted", {"idf": True}),
    ("maxsim", {"kind": "fp32"}),
    ("maxsim", {"kind": "fp16", "exact": False}),
    ("maxsim", {"exact": False}),
    ("ray_shards", {"shards": 3, "inner": Choice("maxsim", {"keep": "none"})}),
    ("maxsim", {"cascade": True, "cascade_dims": 4, "cascade_keep": (6, 4)}),
]
PARTED = {"exact", "hnsw", "maxsim", "asmk_inverted", "bow_histogram", "qdrant", "ray_shards"}  # with some settings
ONE_ROW = {"exact", "hnsw", "ivfpq", "qdrant", "ray_shards"}
Kind = Literal["regions", "vectors", "words", "counts"]


@dataclass(frozen=True)
class Image:
    stamp: int
    sha256: str
    rows: Descriptors


@dataclass
class State:
    """One state of a store in memory; notes how many images were read to build indexes."""

    version: int = 0
    images: Mapping[str, Image] = field(default_factory=dict)
    read: list[int] = field(default_factory=list)
    layout: tuple[str, ...] = ("rows",)

    @property
    def commit_id(self) -> str:
        return f"commit {self.version}"

    def find_commit(self, version: int) -> str | None:
        return f"commit {version}" if version <= self.version else None

    def __len__(self) -> int:
        return len(self.images)

    @property
    def stamps(self) -> dict[str, int]:
        return {name: image.stamp for name, image in self.images.items()}

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        names = list(self.images) if ids is None else ids
        return (ImageRecord(name, Path(name), self.images[name].sha256, 1, 1, (8, 8)) for name in names)

    def descriptors(self, branch: int, ids: Sequence[str] | None = None, **_: Any) -> Iterator[Descriptors]:
        assert branch == 0
        names = list(self.images) if ids is None else ids
        self.read.append(len(names))
        return (self.images[name].rows for name in names)

    def follow(self, images: Mapping[str, Image]) -> "State":
        return replace(self, version=self.version + 1, images=images, read=[])


class History:
    """Random additions, changes, removals and compactions of images with random rows."""

    def __init__(self, kind: Kind, seed: int) -> None:
        self._kind = kind
        self._random = np.random.default_rng(seed)
        self._written = 0
        self.state = State(images=self._write({}, [f"{number:03}" for number in range(60)]))

    def go_on(self) -> State:
        present = list(self.state.images)
        some = [str(name) for name in self._random.choice(present, min(len(present), 3), replace=False)]
        match self._random.integers(5):
            case 0 | 1:
                images = self._write(self.state.images, [f"new {self._written + number}" for number in range(3)])
            case 2:
                images = self._write(self.state.images, some)
            case 3:
                images = {name: image for name, image in self.state.images.items() if name not in some}
            case _:
                images = {name: replace(image, stamp=self._count()) for name, image in self.state.images.items()}
        self.state = self.state.follow(images)
        return self.state

    def ask(self) -> Descriptors:
        return replace(self.make_rows("query", single=self._kind == "vectors"), boxes=None)

    def make_rows(self, name: str, single: bool = False) -> Descriptors:
        random = self._random
        count = 1 if single else int(random.integers(0, 4))
        if self._kind in ("words", "counts"):
            words = np.sort(random.choice(12, count + 2, replace=False)).astype(np.int32)
            dtype, columns = (np.uint8, 8) if self._kind == "words" else (np.float32, 1)
            values = random.integers(1, 200, (len(words), columns)).astype(dtype)
            return Descriptors((name,), values, np.zeros(len(words), np.int32), words=words)
        rows = random.normal(size=(count, 8)).astype(np.float32)
        boxes = random.uniform(0, 9, (count, 4)).astype(np.float32) if self._kind == "regions" else None
        return Descriptors((name,), rows, np.zeros(count, np.int32), boxes=boxes)

    def _write(self, images: Mapping[str, Image], names: Sequence[str]) -> dict[str, Image]:
        """After those that stay, as a store does."""
        kept = {name: image for name, image in images.items() if name not in names}
        single = self._kind == "vectors"
        return kept | {
            name: Image(stamp := self._count(), f"file {stamp}", self.make_rows(name, single)) for name in names
        }

    def _count(self) -> int:
        self._written += 1
        return self._written


def build(name: str, settings: Mapping[str, Any]) -> Index:
    try:
        return index.build(name, **settings)
    except MissingExtra as missing:
        pytest.skip(missing.problem)


def find_kinds(plugin: Index, folder: Path) -> list[Kind]:
    """The kinds of rows that an index takes."""
    kinds: list[Kind] = []
    for kind in ("regions", "vectors", "words", "counts"):
        history = History(kind, 1)
        path = folder / kind
        path.mkdir(parents=True)
        try:
            plugin.create(lambda state=history.state: state.descriptors(0), path)  # type: ignore[misc]
        except RecipeError:
            continue
        kinds.append(kind)
    return kinds


def build_anew(plugin: Index, state: State, folder: Path, query: Descriptors, k: int, some: Any) -> Ranking:
    folder.mkdir(parents=True)
    return plugin.create(lambda: state.descriptors(0), folder).search(query, k, some)


def check_same(found: Ranking, truth: Ranking) -> None:
    assert found.ids == truth.ids
    assert found.scores == pytest.approx(truth.scores, abs=1e-6)
    assert found.boxes == truth.boxes


@pytest.mark.parametrize("some", [None, 20], ids=["all", "allowed"])
@pytest.mark.parametrize(
    ("name", "settings"), [*((name, {}) for name in plugins.names("resight.index")), *MORE], ids=str
)
def test_an_index_in_segments_answers_as_one_that_was_built_at_once(
    tmp_path: Path, name: str, settings: dict[str, Any], some: int | None
):
    plugin = build(name, settings)
    choice = Choice(name, settings)
    for kind in find_kinds(plugin, tmp_path / "kinds"):
        history, cache = History(kind, 7), IndexCache(tmp_path / kind, [""])
        (tmp_path / kind).mkdir()
        built = 0
        for step in range(14):
            state = history.go_on()
            query = history.ask()
            if kind == "regions" and "match" not in settings and len(query) > 1 and name in ONE_ROW:
                query = replace(query, vectors=query.vectors[:1], owners=query.owners[:1])
            if step % 6 == 5:
                cache = IndexCache(tmp_path / kind, [""])  # another process
            allowed = None if some is None else frozenset(list(state.images)[-some:])
            found = cache.open(choice, state, 0).search(query, 9, allowed)  # type: ignore[arg-type]
            built += sum(state.read)
            check_same(found, build_anew(plugin, state, tmp_path / f"{kind} {step}", query, 9, allowed))
        if isinstance(plugin, Divisible) and plugin.divisible:
            assert name in PARTED
            assert built < 14 * 60 // 2, "an index in segments is built anew every time"
            assert len(list((tmp_path / kind / "indexes").iterdir())) <= 4


def test_few_segments_are_left_however_often_images_are_added(tmp_path: Path):
    """Each image is indexed a few times, and none of the segments that were put together is left."""
    history, cache, most, read = History("vectors", 3), IndexCache(tmp_path, [""]), 0, 0
    for number in range(200):
        history.state = history.state.follow(history._write(history.state.images, [f"one {number}"]))
        cache.open(Choice("exact"), history.state, 0)  # type: ignore[arg-type]
        most = max(most, len(list((tmp_path / "indexes").iterdir())))
        read += sum(history.state.read)
    assert most <= 6
    assert read <= 60 + 200 * 8

"""A collection that cannot be opened is reported and tried again; one that cannot be refreshed goes on as it is."""

from collections import namedtuple
from pathlib import Path
from typing import Any, cast

import pytest

from resight.apps.service import registry
from resight.apps.service.error_responses import ApiError
from resight.apps.service.registry import CollectionRegistry
from resight.collection import Collection
from resight.errors import CollectionError, StorageError

Usage = namedtuple("Usage", "total used free")


class Fake:
    query_side = 0

    def __init__(self) -> None:
        self.fault: BaseException | None = None
        self.prepared = 0

    def prepare(self) -> None:
        if self.fault:
            raise self.fault
        self.prepared += 1


class Panic(BaseException):
    """As a panic of a native library arrives."""


class Bench:
    """Two collections of which the first may refuse to be opened."""

    def __init__(self, folder: Path) -> None:
        self.fault: Exception | None = None
        self.fakes = {"a": Fake(), "b": Fake()}
        self.welcomed: list[str] = []
        self.paths = {name: folder / name for name in self.fakes}

    def make(self) -> CollectionRegistry:
        return CollectionRegistry(self.paths, self.open_one, lambda name, _: self.welcomed.append(name))

    def open_one(self, path: Path) -> Collection:
        if self.fault and path.name == "a":
            raise self.fault
        return cast(Collection, self.fakes[path.name])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(registry, "RETRY", 0.0)
    return Bench(tmp_path)


def test_one_that_cannot_be_opened_leaves_the_others_and_comes_back(bench: Bench, tmp_path: Path) -> None:
    bench.fault = CollectionError(f"{bench.paths['a']} is damaged")
    made = bench.make()
    made.refresh()
    assert list(made.ready) == ["b"] and made.list_faults() == {"a": ["a is damaged"]}
    with pytest.raises(ApiError) as caught:
        made.find("a")
    assert (caught.value.status, caught.value.actual) == (503, "a is damaged") and caught.value.headers["Retry-After"]
    assert str(tmp_path) not in str(caught.value)
    bench.fault = None
    made.refresh()
    assert list(made.ready) == ["a", "b"] and made.list_faults() == {}
    assert made.find("a") is bench.fakes["a"] and bench.welcomed == ["b", "a"]


@pytest.mark.parametrize("fault", [StorageError("the disk is full"), Panic("index out of bounds"), OSError(28, "full")])
def test_a_state_that_cannot_be_prepared_is_told_and_the_previous_one_is_served(
    bench: Bench, fault: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    made = bench.make()
    made.refresh()
    bench.fakes["a"].fault = fault
    for _ in range(3):
        made.refresh()
    assert made.find("a") is bench.fakes["a"] and bench.fakes["b"].prepared == 4
    assert list(made.list_faults()) == ["a"] and len(caplog.records) == 1, "told once, not every second"
    bench.fakes["a"].fault = None
    made.refresh()
    assert made.list_faults() == {} and bench.welcomed == ["a", "b"]


def test_a_store_that_panics_when_it_is_opened_does_not_stop_the_service(bench: Bench) -> None:
    bench.fakes["a"].fault = Panic()
    made = bench.make()
    made.refresh()
    assert list(made.ready) == ["b"] and "Panic" in made.list_faults()["a"][0]


def test_a_disk_that_is_almost_full_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    made = bench.make()
    made.refresh()
    usage: Any = lambda _: Usage(10**9, 10**9, 2**20)  # noqa: E731
    monkeypatch.setattr(registry.shutil, "disk_usage", usage)
    assert made.list_faults()["b"] == ["only 1 MiB are free on its disk"]

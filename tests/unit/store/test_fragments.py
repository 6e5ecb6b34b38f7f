"""Rows that were written apart: unseen before their commit, there once after it, and gone when they are swept."""

import json
from pathlib import Path

import numpy as np
import pytest

from resight import store as stores
from resight.errors import CollectionError, StorageError
from resight.store import ImageRecord, Layout, Record, SharedWriter
from resight.store.lance import Config, LanceStore, build
from resight.types import Descriptors

LAYOUT = (Layout("float32", 4, "s"),)


def make_record(number: int) -> Record:
    name = f"image {number}"
    rows = Descriptors((name,), np.full((2, 4), number, np.float32), np.zeros(2, np.int32), space="s")
    return Record(ImageRecord(name, Path("/a") / name, "", 1, 2, (3, 4), {"lat": 1.5}), (rows,))


def open_store(folder: Path) -> LanceStore:
    return build(Config(folder, LAYOUT))


def list_files(folder: Path) -> list[Path]:
    return sorted((folder / "images.lance" / "data").iterdir())


def test_rows_written_apart_by_two_stores_are_there_after_one_commit_and_not_before(tmp_path: Path) -> None:
    driver = open_store(tmp_path)
    fragments = [open_store(tmp_path).write_apart([make_record(number), make_record(number + 10)]) for number in (1, 2)]
    assert not driver.refresh()
    assert len(driver) == 0
    driver.commit(fragments)
    assert len(driver) == 4
    assert list(driver.metadata(["image 12", "image 1"])) == [make_record(12).image, make_record(1).image]
    (rows,) = driver.descriptors(0, ["image 2", "image 11"])
    assert rows.vectors[:, 0].tolist() == [2, 2, 11, 11]


def test_a_commit_copies_nothing(tmp_path: Path) -> None:
    driver = open_store(tmp_path)
    fragment = driver.write_apart([make_record(1)])
    before = [(path, path.stat().st_mtime_ns) for path in list_files(tmp_path)]
    driver.commit([fragment])
    assert [(path, path.stat().st_mtime_ns) for path in list_files(tmp_path)] == before


def test_an_image_is_committed_once_however_often_it_was_written(tmp_path: Path) -> None:
    driver = open_store(tmp_path)
    first, second = (driver.write_apart([make_record(1)]) for _ in range(2))
    with pytest.raises(CollectionError, match="stored already"):
        driver.commit([first, second])
    assert len(open_store(tmp_path)) == 0
    driver.commit([first])
    with pytest.raises(CollectionError, match="stored already"):
        driver.commit([second])
    assert len(open_store(tmp_path)) == 1


def test_a_file_that_was_cut_short_is_refused_and_the_collection_stays_readable(tmp_path: Path) -> None:
    driver = open_store(tmp_path)
    driver.write([make_record(1)])
    fragment = driver.write_apart([make_record(2)])
    file = tmp_path / "images.lance" / "data" / json.loads(fragment.files[0])["files"][0]["path"]
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(StorageError) as caught:
        driver.commit([fragment])
    assert caught.value.expected == f"{size:,} bytes"
    assert caught.value.actual == f"{size - 100:,} bytes"
    file.unlink()
    with pytest.raises(StorageError, match="is not what a node has written"):
        driver.commit([fragment])
    assert [record.id for record in open_store(tmp_path).metadata()] == ["image 1"]


def test_sweeping_removes_what_was_never_committed_and_nothing_else(tmp_path: Path) -> None:
    driver = open_store(tmp_path)
    driver.commit([driver.write_apart([make_record(1)])])
    kept = list_files(tmp_path)
    driver.write_apart([make_record(2)])
    assert len(list_files(tmp_path)) == 2
    driver.sweep()
    assert list_files(tmp_path) == kept
    assert len(driver) == 1
    driver.write([make_record(3)])
    assert len(driver) == 2


def test_the_embedded_store_is_one_that_many_may_write_to(tmp_path: Path) -> None:
    assert isinstance(stores.build("lance", folder=tmp_path, layout=LAYOUT), SharedWriter)

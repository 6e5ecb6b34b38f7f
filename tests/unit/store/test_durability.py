"""Durable commits, torn and lost manifests, rollbacks, and files that changed on the disk."""

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from resight.errors import CollectionError
from resight.files import durable
from resight.store import ImageRecord, Layout, Record, _files, lance
from resight.store._history import TABLE, History, list_versions, name_manifest
from resight.types import Descriptors

LAYOUT = (Layout("uint8", 128),)


def open_store(folder: Path) -> lance.LanceStore:
    return lance.build(lance.Config(folder, LAYOUT))


def make(id: str, seed: int = 0, rows: int = 20) -> Record:
    vectors = np.random.default_rng([seed, *id.encode()]).integers(0, 255, (rows, 128), dtype=np.uint8)
    image = ImageRecord(id, Path.cwd() / "x.jpg", sha256=f"{seed}", bytes=0, modified_ns=0, size=(1, 1))
    return Record(image, (Descriptors((id,), vectors, np.zeros(rows, np.int32)),))


def read(store: lance.LanceStore, id: str) -> bytes:
    (rows,) = store.descriptors(0, [id])
    return rows.vectors.tobytes()


def newest_manifest(folder: Path) -> Path:
    return folder / TABLE / name_manifest(list_versions(folder / TABLE)[0])


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files and folders in the order in which they are synced."""
    done: list[Path] = []
    original = os.fsync

    def fsync(descriptor: int) -> None:
        done.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        original(descriptor)

    monkeypatch.setattr(durable.os, "fsync", fsync)
    return done


CHANGES: dict[str, Callable[[lance.LanceStore], object]] = {
    "append": lambda store: store.write([make("c")]),
    "replace": lambda store: store.write([make("a", seed=1), make("d")]),
    "delete": lambda store: store.remove(["a"]),
    "compact": lambda store: store.compact(),
    "commit": lambda store: store.commit([store.write_apart([make("e")])]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_new_file_is_synced_before_a_commit_counts(
    tmp_path: Path, synced: list[Path], change: Callable[[lance.LanceStore], object]
) -> None:
    store = open_store(tmp_path)
    store.write([make("a")])
    store.write([make("b")])
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    synced.clear()
    change(store)
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    needed = {path for path in new if path.name != "latest_version_hint.json" and _is_read(path, store)}
    assert needed <= {*synced, *(path for path in new if path.parent.name == "commits")}
    assert {path.parent for path in needed} <= set(synced)
    order = {path: place for place, path in enumerate(synced)}
    manifest = newest_manifest(tmp_path)
    for path in needed:
        if path.parent.name in ("data", "_deletions"):
            assert order[path] < order[manifest]
    assert synced[-1] == tmp_path / "commits"


def _is_read(path: Path, store: lance.LanceStore) -> bool:
    """The version that a compaction reserves numbers with is never read."""
    own = {name_manifest(store.version), *_files.list_state_files(store._table)}
    return path.parent.name == "commits" or path.relative_to(path.parents[1]).as_posix() in own


@pytest.mark.parametrize("content", [b"", b"torn", None], ids=["empty", "torn", "zeros"])
def test_an_unconfirmed_torn_manifest_is_stepped_over(
    tmp_path: Path, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(tmp_path)
    store.write([make("a")])
    store.write([make("b")])
    manifest = newest_manifest(tmp_path)
    (tmp_path / "commits" / f"{store.version:012d}.json").unlink()  # the power went before the commit was confirmed
    manifest.write_bytes(bytes(manifest.stat().st_size) if content is None else content)
    again = open_store(tmp_path)
    assert list(again.stamps) == ["a"]
    assert "was never confirmed" in caplog.text
    again.write([make("c")])
    assert list(open_store(tmp_path).stamps) == ["a", "c"]
    assert (tmp_path / "damaged" / manifest.name).is_file()


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_confirmed_manifest_comes_back_from_its_record(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    store = open_store(tmp_path)
    store.write([make("a")])
    store.write([make("b")])
    damage(newest_manifest(tmp_path))
    assert list(open_store(tmp_path).stamps) == ["a", "b"]


def test_a_table_that_went_back_is_reported_with_what_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(tmp_path)
    store.write([make("a")])
    shutil.copytree(tmp_path / TABLE, tmp_path / "copy")
    store.write([make("lost")])
    shutil.rmtree(tmp_path / TABLE)
    (tmp_path / "copy").rename(tmp_path / TABLE)
    again = open_store(tmp_path)
    assert list(again.stamps) == ["a"]
    assert "has gone back" in caplog.text
    assert "lost" in caplog.text
    again.write([make("b")])
    caplog.clear()
    assert list(open_store(tmp_path).stamps) == ["a", "b"]
    assert not caplog.text


def test_a_version_number_that_comes_again_is_another_commit(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([make("a")])
    shutil.copytree(tmp_path / TABLE, tmp_path / "copy")
    store.write([make("b", seed=1)])
    lost = store.version, store.commit_id
    shutil.rmtree(tmp_path / TABLE)
    (tmp_path / "copy").rename(tmp_path / TABLE)
    again = open_store(tmp_path)
    assert again.find_commit(lost[0]) is None
    again.write([make("b", seed=2)])
    assert again.version == lost[0]
    assert again.commit_id != lost[1]
    assert store.refresh()
    assert read(store, "b") == read(again, "b")


def test_a_history_is_known_after_compaction_has_removed_its_states(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([make("a")])
    version, commit = store.version, store.commit_id
    store.write([make("b")])
    store.compact(keep=lance.timedelta(0))
    assert not (tmp_path / TABLE / name_manifest(version)).exists()
    assert open_store(tmp_path).find_commit(version) == commit
    assert len(list((tmp_path / "commits").iterdir())) == 1


@pytest.mark.parametrize("large", [False, True])
def test_a_changed_byte_is_an_error_and_never_another_answer(
    tmp_path: Path, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:  # as if there were too many bytes to read all of them
        monkeypatch.setattr(_files, "CHECKED_BYTES", 0)
        monkeypatch.setattr(_files, "BLOCK", 64)
    store = open_store(tmp_path)
    store.write([make(name) for name in "abc"])
    expected = {name: read(store, name) for name in "abc"}
    (file,) = (tmp_path / TABLE / "data").iterdir()
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 40).tolist():
        file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << int(rng.integers(8)))]) + whole[place + 1 :])
        try:
            again = open_store(tmp_path)
            found = {name: read(again, name) for name in "abc"}
            found_images = [image.id for image in again.metadata()]
        except CollectionError as error:
            assert error.fix
            continue
        assert found == expected  # a byte that nothing reads
        assert found_images == list("abc")


def test_records_that_are_damaged_are_noticed_and_harm_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([make("a")])
    store.write([make("b")])
    newest = max((tmp_path / "commits").iterdir())
    newest.write_bytes(newest.read_bytes().replace(b'"images": 2', b'"images": 3'))
    history = History(tmp_path)
    history.refresh()
    assert history.damaged == {newest.name}
    assert list(open_store(tmp_path).stamps) == ["a", "b"]


def test_a_collection_without_records_is_read_and_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Format 1."""
    caplog.set_level(logging.WARNING)
    open_store(tmp_path).write([make("a")])
    shutil.rmtree(tmp_path / "commits")
    store = open_store(tmp_path)
    store.write([make("b")])
    assert list(open_store(tmp_path).stamps) == ["a", "b"]
    assert not caplog.text
    table = json.loads(max((tmp_path / "commits").iterdir()).read_text())
    assert table["images"] == 2

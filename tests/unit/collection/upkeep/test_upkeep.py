"""Verify, repair, backup, restore and upgrade, on the kept samples of each format."""

import json
import shutil
import threading
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from resight.collection import metadata
from resight.collection.upkeep.backup import LIST, back_up, restore
from resight.collection.upkeep.integrity import Verification, verify
from resight.collection.upkeep.repair import repair
from resight.collection.upkeep.upgrade import upgrade
from resight.errors import CollectionError, InputError
from resight.store import Record, Store, build
from resight.types import Descriptors

SAMPLES = Path(__file__).parents[3] / "samples"
IMAGES = {"gate.png", "tower.png", "bridge.png"}
FORMATS = tuple(range(1, metadata.FORMAT + 1))


def unpack(folder: Path, number: int = metadata.FORMAT) -> Path:
    collection = folder / "photos.resight"
    with zipfile.ZipFile(SAMPLES / f"collection-format-{number}.zip") as archive:
        archive.extractall(collection)
    return collection


def open_store(collection: Path) -> Store:
    return build("lance", folder=collection)


def read_all(collection: Path) -> dict[str, bytes]:
    store = open_store(collection)
    return {id: next(iter(store.descriptors(0, [id]))).vectors.tobytes() for id in store.stamps}


def flip(path: Path, place: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 0x10
    path.write_bytes(data)


def first(collection: Path, pattern: str) -> Path:
    return min(collection.glob(pattern))


@pytest.mark.parametrize("number", FORMATS)
def test_every_format_is_read_verified_added_to_and_upgraded(tmp_path: Path, number: int) -> None:
    collection = unpack(tmp_path, number)
    before = read_all(collection)
    assert before.keys() == IMAGES
    assert metadata.read(collection).format == number
    found = verify(collection, deep=True)
    assert found == Verification((), 3, found.unchecked)
    assert bool(found.unchecked) == (number == 1)
    assert upgrade(collection) == (number, metadata.FORMAT)
    assert upgrade(collection) == (metadata.FORMAT, metadata.FORMAT)
    assert metadata.read(collection).format == metadata.FORMAT
    assert verify(collection, deep=True) == Verification((), 3, 0)
    assert read_all(collection) == before
    store = open_store(collection)
    record = next(iter(store.metadata(["gate.png"])))
    rows = next(iter(store.descriptors(0, ["gate.png"])))
    assert isinstance(rows, Descriptors)
    assert store.remove([record.id]) == 1
    assert len(open_store(collection)) == 2


def test_an_empty_collection_is_upgraded(tmp_path: Path) -> None:
    collection = unpack(tmp_path, 1)
    store = open_store(collection)
    store.remove(list(IMAGES))
    store.compact()
    upgrade(collection)
    assert verify(collection, deep=True) == Verification((), 0, 0)


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "data": (lambda folder: flip(first(folder, "images.lance/data/*")), "images.lance/data/"),
    "deletions": (lambda folder: flip(first(folder, "images.lance/_deletions/*")), "images.lance/_deletions/"),
    "data gone": (lambda folder: first(folder, "images.lance/data/*").unlink(), "images.lance/data/"),
    "metadata": (lambda folder: flip(folder / "collection.json"), "collection.json"),
    "metadata gone": (lambda folder: (folder / "collection.json").unlink(), "collection.json"),
    "copy": (lambda folder: (folder / "collection.copy.json").unlink(), "collection.copy.json"),
    "record": (lambda folder: flip(max(folder.glob("commits/*"))), "commits/"),
    "calibration": (lambda folder: _write(folder / "calibration.json", "[7]"), "calibration.json"),
    "journal": (lambda folder: _write(folder / "jobs.sqlite", "nothing" * 999), "jobs.sqlite"),
    "upload": (lambda folder: _write(folder / "uploads" / f"{'0' * 64}.png", "x"), "uploads/"),
    "code book": (lambda folder: _write(folder / "files" / "000000000000.npz", "x"), "files/"),
    "index": (lambda folder: _write(folder / "indexes" / "0-x" / "segment.json", "{}"), "indexes/"),
}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(("damage", "named"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_found_and_the_file_is_named(tmp_path: Path, damage: Callable[[Path], None], named: str) -> None:
    collection = unpack(tmp_path)
    damage(collection)
    (fault,) = verify(collection, deep=True).faults
    assert fault.file.startswith(named)
    assert fault.problem
    assert fault.fix


@pytest.mark.parametrize(
    ("name", "images"),
    [("data", 1), ("data gone", 1), ("deletions", 2), ("metadata", 3), ("copy", 3), ("record", 3), ("index", 3)],
)
def test_repair_keeps_what_is_whole(tmp_path: Path, name: str, images: int) -> None:
    """The first data file holds two images, the second one."""
    collection = unpack(tmp_path)
    whole = read_all(collection)
    DAMAGES[name][0](collection)
    report = repair(collection)
    assert not report.left.faults
    left = read_all(collection)
    assert len(left) >= images
    assert left.items() <= whole.items()
    assert report.done


def test_repair_saves_the_whole_rows_of_a_damaged_file(tmp_path: Path) -> None:
    collection = unpack(tmp_path)
    whole = read_all(collection)
    saved = set()
    for place in np.linspace(0.05, 0.6, 4):
        shutil.rmtree(collection)
        collection = unpack(tmp_path)
        flip(min(collection.glob("images.lance/data/*"), key=lambda path: -path.stat().st_size), float(place))
        saved.add(repair(collection).saved)
        assert read_all(collection).items() <= whole.items()
    assert max(saved) >= 1


def test_a_backup_is_restored_as_it_was(tmp_path: Path) -> None:
    collection = unpack(tmp_path)
    _write(collection / "uploads" / f"{'0' * 64}.png", "x")
    made = back_up(collection, tmp_path / "backup")
    open_store(collection).remove(["gate.png"])
    restore(tmp_path / "backup", tmp_path / "again.resight")
    assert read_all(tmp_path / "again.resight").keys() == IMAGES
    assert (tmp_path / "again.resight" / "uploads" / f"{'0' * 64}.png").read_text() == "x"
    assert not verify(tmp_path / "again.resight").faults
    assert made.files == len(json.loads((tmp_path / "backup" / LIST).read_text())["files"])
    assert not list(tmp_path.glob("*.partial"))


def test_a_backup_is_one_state_while_others_write(tmp_path: Path) -> None:
    collection = unpack(tmp_path)
    stop = threading.Event()

    def write() -> None:
        store = open_store(collection)
        (record,) = store.metadata(["gate.png"])
        (rows,) = store.descriptors(0, ["gate.png"])
        while not stop.is_set():
            store.write([Record(record, (rows,))])
            store.compact(keep=timedelta(0))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(2):
            back_up(collection, tmp_path / f"backup{number}")
    finally:
        stop.set()
        thread.join()
    for number in range(2):
        restore(tmp_path / f"backup{number}", tmp_path / f"restored{number}")
        assert not verify(tmp_path / f"restored{number}", deep=True).faults
        assert read_all(tmp_path / f"restored{number}").keys() == IMAGES


def test_a_damaged_or_hostile_backup_is_refused(tmp_path: Path) -> None:
    collection = unpack(tmp_path)
    back_up(collection, tmp_path / "backup")
    flip(tmp_path / "backup" / "collection.json")
    with pytest.raises(CollectionError, match="is damaged"):
        restore(tmp_path / "backup", tmp_path / "new")
    (tmp_path / "backup" / LIST).write_text('{"files": {"../../outside": [1, "0"]}}')
    with pytest.raises(CollectionError):
        restore(tmp_path / "backup", tmp_path / "new")
    (tmp_path / "backup" / LIST).unlink()
    with pytest.raises(InputError, match="is not a backup"):
        restore(tmp_path / "backup", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="exists already"):
        back_up(collection, tmp_path / "backup")

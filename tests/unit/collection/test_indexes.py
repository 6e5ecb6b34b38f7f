"""Indexes beside a collection: made once, found again, and made again when they are damaged."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.token_rows import make_tokens

from resight.collection import indexes
from resight.collection.indexes import IndexCache
from resight.collection.segments import Contents, StoredSegment, find_share, load_contents
from resight.errors import StorageError
from resight.files.lock import writer_lock
from resight.kernels import pack_files
from resight.store import ImageRecord
from resight.types import Choice, Descriptors

ROWS = make_tokens([4] * 60)
QUERY = make_tokens([5], seed=9)


@dataclass
class FakeStore:
    """Tokens in one branch; notes how often an index was made from them."""

    version: int = 1
    layout: tuple[str, ...] = ("tokens",)
    builds: list[int] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # id → sha256, where it is not the usual one
    stamps: dict[str, int] = field(default_factory=lambda: {name: row for row, name in enumerate(ROWS.ids)})

    @property
    def commit_id(self) -> str:
        return f"commit {self.version}"

    def find_commit(self, version: int) -> str | None:
        return f"commit {version}" if version <= self.version else None

    def __len__(self) -> int:
        return len(self.stamps)

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        return (
            ImageRecord(name, Path(name), self.files.get(name, "usual"), 1, 1, (8, 8)) for name in ids or self.stamps
        )

    def descriptors(self, branch: int, ids: Sequence[str] | None = None, **_: Any) -> Iterator[Descriptors]:
        assert (branch, ids) == (0, None)
        self.builds.append(branch)
        return iter([ROWS])


def search(folder: Path, store: FakeStore, **settings: Any) -> tuple[str, ...]:
    cache = IndexCache(folder, [""])
    return cache.open(Choice("maxsim", settings), store, 0).search(QUERY, 10).ids  # type: ignore[arg-type]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def rewrite_header(pack: Path, **changes: Any) -> None:
    header = {**json.loads((pack / "header.json").read_text()), **changes}
    header.pop("checksum")
    (pack / "header.json").write_text(json.dumps({**header, "checksum": pack_files.digest(header)}))


def swap_bytes(path: Path) -> None:
    array = np.load(path)
    np.save(path, array.astype(array.dtype.newbyteorder()))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "codes cut short": lambda place: cut(place / "pack" / "codes.values.npy"),
    "kept tokens cut short": lambda place: cut(place / "pack" / "reference.tokens.npy"),
    "first pass cut short": lambda place: cut(place / "small" / "codes.values.npy"),
    "first pass gone": lambda place: shutil.rmtree(place / "small"),
    "header cut short": lambda place: cut(place / "pack" / "header.json"),
    "garbage": lambda place: (place / "pack" / "codes.steps.npy").write_bytes(b"\x93NUMPY garbage"),
    "bytes in another order": lambda place: swap_bytes(place / "pack" / "codes.steps.npy"),
    "another machine": lambda place: rewrite_header(
        place / "pack", byte_order="big" if sys.byteorder == "little" else "little"
    ),
    "another version": lambda place: rewrite_header(place / "pack", version=99),
    "another kind": lambda place: rewrite_header(place / "pack", kind="pq"),
    "ids cut short": lambda place: cut(place / "images.json"),
    "ids of other images": lambda place: (place / "images.json").write_text('{"space": "", "ids": ["a"]}'),
    "no ids": lambda place: (place / "images.json").write_text("7"),
    "contents cut short": lambda place: cut(place / "segment.json"),
    "contents gone": lambda place: (place / "segment.json").unlink(),
    "pack gone": lambda place: shutil.rmtree(place / "pack"),
}


@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_index_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], Any], mapped: bool
):
    if mapped:
        monkeypatch.setattr(pack_files, "SMALL_BYTES", 0)
    store = FakeStore()
    settings = {"cascade": True, "cascade_dims": 8}
    whole = search(tmp_path, store, **settings)
    (place,) = (tmp_path / "indexes").iterdir()
    made = len(store.builds)
    assert search(tmp_path, store, **settings) == whole
    assert len(store.builds) == made
    damage(place)
    assert search(tmp_path, store, **settings) == whole
    assert len(store.builds) == 2 * made
    assert search(tmp_path, store, **settings) == whole
    assert len(store.builds) == 2 * made


def test_every_setting_has_an_index_of_its_own(tmp_path: Path):
    store = FakeStore()
    choices: list[dict[str, Any]] = [
        {},
        {"kind": "pq"},
        {"kind": "pq", "m": 8},
        {"kind": "pq", "m": 8, "train_images": 50},
        {"kind": "pq", "m": 8, "train_on": "00*"},
        {"cascade": True, "cascade_dims": 8},
        {"cascade": True, "cascade_dims": 4},
    ]
    for number, settings in enumerate(choices, start=1):
        search(tmp_path, store, **settings)
        assert len(list((tmp_path / "indexes").iterdir())) == number


def test_a_state_with_the_same_images_elsewhere_in_the_store_needs_no_other_index(tmp_path: Path):
    moved = FakeStore(version=2, stamps={name: 1000 + row for row, name in enumerate(reversed(ROWS.ids))})
    assert search(tmp_path, FakeStore(version=1)) == search(tmp_path, moved)
    assert moved.builds == []
    (place,) = (tmp_path / "indexes").iterdir()
    assert "-v1-" in place.name
    assert load_contents(place).version == 2


def test_an_index_that_cannot_lie_in_parts_is_made_again_and_the_old_one_removed(tmp_path: Path):
    for version, changed in enumerate(["", ROWS.ids[7]], start=1):
        stamps = {name: row + 100 * (name == changed) for row, name in enumerate(ROWS.ids)}
        store = FakeStore(version=version, files={changed: "another"}, stamps=stamps)
        search(tmp_path, store, cascade=True, cascade_dims=8)
        (place,) = (tmp_path / "indexes").iterdir()
        assert f"-v{version}-" in place.name


def test_an_index_that_another_process_removes_meanwhile_is_found_in_its_new_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It goes at the very moment when it is about to be opened, and one that serves as well is there by then."""
    search(tmp_path, FakeStore())
    (place,) = (tmp_path / "indexes").iterdir()
    load, store = indexes.load_contents, FakeStore()

    def load_late(folder: Path) -> Contents:
        if folder == place and place.exists():
            shutil.copytree(place, place.with_name(place.name + "0"))
            shutil.rmtree(place)
        return load(folder)

    monkeypatch.setattr(indexes, "load_contents", load_late)
    assert len(search(tmp_path, store)) == 10
    assert store.builds == []


def test_what_another_process_has_put_in_the_place_of_an_open_index_stays(tmp_path: Path):
    cache, store = IndexCache(tmp_path, [""]), FakeStore()
    cache.open(Choice("maxsim"), store, 0)  # type: ignore[arg-type]
    (place,) = (tmp_path / "indexes").iterdir()
    other = place.rename(place.with_name(place.name + "0"))
    fewer = FakeStore(version=2, stamps={name: row for name, row in store.stamps.items() if row})
    assert ROWS.ids[0] not in cache.open(Choice("maxsim"), fewer, 0).search(QUERY, 60).ids  # type: ignore[arg-type]
    assert list((tmp_path / "indexes").iterdir()) == [other]
    assert fewer.builds == []


def test_threads_that_open_an_index_at_once_build_it_once(tmp_path: Path):
    store, cache = FakeStore(), IndexCache(tmp_path, [""])
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: cache.open(Choice("maxsim"), store, 0), range(8)))  # type: ignore[arg-type]
    built = FakeStore()
    (tmp_path / "alone").mkdir()
    search(tmp_path / "alone", built)
    assert store.builds == built.builds
    assert len({searcher.search(QUERY, 10).ids for searcher in opened}) == 1


def test_where_nothing_may_be_written_an_index_lives_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(self: Path, **_: Any) -> None:
        raise PermissionError(13, "may not", str(self))

    (tmp_path / "free").mkdir()
    whole = search(tmp_path / "free", FakeStore())
    store, cache = FakeStore(), IndexCache(tmp_path / "locked", [""])
    with monkeypatch.context() as locked:
        mkdir = Path.mkdir
        locked.setattr(Path, "mkdir", lambda self, *_, **how: (refuse if "locked" in str(self) else mkdir)(self, **how))
        found = cache.open(Choice("maxsim"), store, 0).search(QUERY, 10).ids  # type: ignore[arg-type]
    assert found == whole
    assert not (tmp_path / "locked").exists()


def test_an_index_of_another_history_is_compared_by_content(tmp_path: Path):
    """The store went back to a backup and was written again: the same version and the same stamps, another content."""

    class Restored(FakeStore):
        @property
        def commit_id(self) -> str:
            return "another"

        def find_commit(self, version: int) -> str | None:
            return "another" if version == self.version else None

    changed = ROWS.ids[7]
    search(tmp_path, FakeStore(version=3, files={changed: "lost"}))
    cache, store = IndexCache(tmp_path, [""]), Restored(version=3)
    cache.open(Choice("maxsim", {"cascade": True, "cascade_dims": 8}), store, 0)  # type: ignore[arg-type]
    assert store.builds  # in one piece, so all of it is built again
    restored = Restored(version=3)
    segment = next(folder for folder in (tmp_path / "indexes").iterdir() if load_contents(folder).version == 3)
    share = find_share(StoredSegment(segment, load_contents(segment), None), restored)  # type: ignore[arg-type]
    assert share.live >= set(ROWS.ids) - {changed}


@pytest.mark.parametrize("place", range(0, 6000, 400))
def test_one_changed_byte_anywhere_in_an_index_is_found(tmp_path: Path, place: int):
    store = FakeStore()
    whole = search(tmp_path, store)
    (segment,) = (tmp_path / "indexes").iterdir()
    files = sorted(path for path in segment.rglob("*") if path.is_file())
    file = files[place % len(files)]
    data = bytearray(file.read_bytes())
    data[place % len(data)] ^= 1 << (place // 400 % 8)
    file.write_bytes(data)
    assert search(tmp_path, store) == whole
    assert search(tmp_path, FakeStore()) == whole


def test_a_lack_of_file_descriptors_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    search(tmp_path, FakeStore())
    (segment,) = (tmp_path / "indexes").iterdir()

    def refuse(*_: Any) -> str:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as short:
        short.setattr(indexes, "find_damaged_file", refuse)
        with pytest.raises(StorageError, match="cannot be read"):
            search(tmp_path, FakeStore())
    store = FakeStore()
    search(tmp_path, store)
    assert list((tmp_path / "indexes").iterdir()) == [segment]
    assert store.builds == []


def test_while_another_process_writes_a_damaged_index_stays_and_a_new_one_serves(tmp_path: Path):
    whole = search(tmp_path, FakeStore())
    (segment,) = (tmp_path / "indexes").iterdir()
    cut(segment / "images.json")
    with writer_lock(tmp_path):
        assert search(tmp_path, FakeStore()) == whole
        assert segment.is_dir()
    assert search(tmp_path, FakeStore()) == whole
    assert not segment.exists() or load_contents(segment)


def test_on_a_full_disk_the_index_that_is_there_serves_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    few = FakeStore(stamps={name: row for row, name in enumerate(ROWS.ids)})
    whole = search(tmp_path, few)

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(indexes, "create_index", refuse)
    more = FakeStore(version=2, stamps={**few.stamps, "new": 999})
    assert search(tmp_path, more) == whole
    assert "searches leave out 1 new images" in caplog.text
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(StorageError, match="cannot write the index"):
        search(tmp_path / "elsewhere", few)


def test_others_may_read_an_index_where_they_may_read_the_collection(tmp_path: Path):
    (tmp_path / "indexes").mkdir(mode=0o755)
    (tmp_path / "indexes").chmod(0o755)
    search(tmp_path, FakeStore())
    (segment,) = (tmp_path / "indexes").iterdir()
    assert segment.stat().st_mode & 0o777 == 0o755

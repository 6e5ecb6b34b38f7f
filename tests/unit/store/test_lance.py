"""What holds for the Lance store in particular: kills, full disks, vanished files."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance as pylance
import numpy as np
import pytest

from resight.errors import CollectionError, StorageError
from resight.store import ImageRecord, Layout, Record, lance
from resight.store._arrow import make_schema
from resight.store.lance import COMPACTING, find_age
from resight.types import Descriptors

LAYOUT = (Layout("uint8", 128),)
WRITER = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_lance import make, open_store
store, number = open_store(Path(sys.argv[1])), 0
print("ready", flush=True)
while True:
    ids = [f"{number + i}" for i in range(3)]
    store.write([make(id) for id in [*ids, "again"]])
    print(*ids, flush=True)
    number += 3
    if number % 30 == 0:
        store.compact()
"""


def open_store(folder: Path) -> lance.LanceStore:
    return lance.build(lance.Config(folder, LAYOUT))


def make(id: str, rows: int = 20) -> Record:
    vectors = np.random.default_rng(len(id)).integers(0, 255, (rows, 128), dtype=np.uint8)
    image = ImageRecord(id, Path.cwd() / "x.jpg", sha256="", bytes=0, modified_ns=0, size=(1, 1))
    return Record(image, (Descriptors((id,), vectors, np.zeros(rows, np.int32)),))


# The tenth batch is followed by a compaction, so the last kill falls into one.
@pytest.mark.parametrize("batches", [1, 7, 10])
def test_a_killed_writer_loses_nothing_it_reported(tmp_path: Path, batches: int) -> None:
    arguments = [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parent), *sys.path]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(batches + 1)]
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.readlines()
    reported = [id for line in lines[1:] if line.endswith("\n") for id in line.split()]
    assert len(reported) >= 3 * batches
    kept = open_store(tmp_path)
    counts = Counter(image.id for image in kept.metadata())
    assert set(counts.values()) == {1}
    assert counts.keys() >= {*reported, "again"}
    assert len(counts) % 3 == 1  # each batch is there whole: three of its own and "again"
    assert sum(len(part) for part in kept.descriptors(0)) == 20 * len(counts)
    kept.compact(keep=timedelta(0))
    kept.write([make("0"), make("after")])
    assert len(kept) == len(counts) + 1


def test_a_table_that_was_only_half_created_is_created_anew(tmp_path: Path) -> None:
    left = tmp_path / "images.lance" / "data" / "0.lance"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    kept = open_store(tmp_path)
    kept.write([make("a")])
    kept.compact(keep=timedelta(0))
    assert len(kept) == 1 and not left.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if sys.platform != "linux" or mount is None or unmount is None:
        pytest.skip("a small file system can be mounted on Linux alone")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"mounting is not permitted here: {made.stderr.strip()}")
    yield folder
    subprocess.run([unmount, "--lazy", str(folder)], check=True)


def test_a_full_disk_stops_the_write_and_loses_nothing(small_disk: Path) -> None:
    kept = open_store(small_disk)
    stored: list[str] = []
    with pytest.raises(StorageError, match="disk is full") as caught:
        for number in range(100):
            kept.write([make(f"{number}", rows=2000)])
            stored.append(str(number))
    assert "nothing that was reported as stored is lost" in caught.value.fix
    assert 2 <= len(stored) < 20
    for reader in (kept, open_store(small_disk)):
        assert [image.id for image in reader.metadata()] == stored
        assert sum(len(part) for part in reader.descriptors(0)) == 2000 * len(stored)


def test_a_disk_that_is_filled_by_what_is_written_apart_keeps_the_collection(small_disk: Path) -> None:
    kept = open_store(small_disk)
    kept.write([make("first")])
    with pytest.raises(StorageError, match="disk is full"):
        for number in range(100):
            kept.write_apart([make(f"{number}", rows=2000)])
    assert [image.id for image in open_store(small_disk).metadata()] == ["first"]
    kept.sweep()
    kept.write([make("second", rows=2000)])
    assert [image.id for image in open_store(small_disk).metadata()] == ["first", "second"]


def test_a_disk_that_refuses_is_a_storage_error_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("lance error: Permission denied (os error 13)\nat line 5")

    monkeypatch.setattr(pylance.fragment, "write_fragments", refuse)
    with pytest.raises(StorageError, match="cannot be written") as caught:
        store.write([make("a")])
    assert caught.value.actual == "lance error: Permission denied (os error 13)"


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        open_store(tmp_path / "file" / "collection")


def test_a_reader_whose_state_was_freed_is_told_to_open_again(tmp_path: Path) -> None:
    writer = open_store(tmp_path)
    writer.write([make("a"), make("b")])
    reader = open_store(tmp_path)
    assert len(reader) == 2
    writer.write([make("a"), make("b")])
    writer.compact(keep=timedelta(0))
    with pytest.raises(CollectionError, match="open it again"):
        list(reader.descriptors(0))
    assert reader.refresh()
    assert sum(len(part) for part in reader.descriptors(0)) == 40


def test_damaged_files_are_a_collection_error(tmp_path: Path) -> None:
    open_store(tmp_path).write([make("a")])
    for path in (tmp_path / "images.lance" / "_versions").iterdir():
        path.write_bytes(b"damaged")
    shutil.rmtree(tmp_path / "commits")
    with pytest.raises(CollectionError, match=r"no state of .* can be read"):
        open_store(tmp_path)


def test_ids_of_several_files_are_removed_in_one_commit(tmp_path: Path) -> None:
    kept = open_store(tmp_path)
    for first in (0, 4, 8):
        kept.write([make(str(number), rows=0) for number in range(first, min(first + 4, 11))])
    before = kept.version
    assert kept.remove([str(number) for number in range(1, 11)]) == 10
    assert [image.id for image in kept.metadata()] == ["0"]
    assert kept.version == before + 1


def test_a_table_from_before_tokens_kept_their_seeds_is_read_and_added_to(tmp_path: Path):
    schema = make_schema(LAYOUT)
    older = schema.remove(schema.get_field_index("b0_seeds"))
    pylance.write_dataset(older.empty_table(), tmp_path / lance.TABLE)
    store = open_store(tmp_path)
    tokens = replace(make("a").descriptors[0], seeds=np.zeros((len(make("a").descriptors[0]), 4), np.float32))
    store.write([Record(make("a").image, (tokens,))])
    (rows,) = store.descriptors(0)
    assert rows.ids == ("a",)
    assert rows.seeds is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [([300, 200, 5], 200), ([300, 200], 200), ([300, 61, 60, 59], 60), ([30, 5], None)],
    ids=["replaced five minutes ago", "the present one", "at the very limit", "all of them are young"],
)
def test_a_state_goes_only_when_it_was_replaced_long_ago(written: list[int], expected: int | None):
    """Minutes since states were written; the youngest one that may not go for having been replaced within the hour."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    age = find_age([now - timedelta(minutes=minutes) for minutes in written], now, timedelta(hours=1))
    assert age == (timedelta(minutes=expected) + COMPACTING if expected else timedelta(hours=1))


def test_without_a_time_to_keep_only_the_present_state_stays():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert find_age([now - timedelta(hours=9)], now, timedelta(0)) == timedelta(0)


def test_a_process_that_reads_a_collection_may_do_without_pandas(tmp_path: Path):
    open_store(tmp_path).write([make("a")])
    program = (
        "import sys; from pathlib import Path; from resight import store; store.skip_pandas()\n"
        "reader = store.build('lance', folder=Path(sys.argv[1]))\n"
        "print(len(reader), len(next(reader.descriptors(0))), 'pandas' in sys.modules, 'lancedb' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1 20 False False\n"

"""Rows dealt to shards, the list of their files, and what a node makes of them."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")

from support.builders import global_rows

from resight import index
from resight.errors import CollectionError, RecipeError, StorageError, VersionMismatch
from resight.index.shards.node import HeldShards
from resight.index.shards.placement import deal, find_shard, split_names
from resight.index.shards.shard_manifest import FILE, Manifest, Shard, describe_shard, locate_shard, read_manifest
from resight.index.shards.shard_manifest import write_manifest as write
from resight.index.shards.spill import spill
from resight.types import Choice, Descriptors

EXACT = Choice("exact")
NAMES = [f"image {number}" for number in range(20)]


def make_rows() -> Descriptors:
    """Image n has n % 3 rows, with boxes; the first number of each is n."""
    owners = np.repeat(np.arange(20, dtype=np.int32), np.arange(20) % 3)
    vectors = np.stack([owners, np.arange(len(owners))], axis=1).astype(np.float32)
    return Descriptors(tuple(NAMES), vectors, owners, boxes=np.tile(owners[:, None], 4).astype(np.float32), space="s")


def test_an_id_has_the_same_shard_for_ever():
    assert [find_shard(name, 5) for name in ("a", "b", "ü/日本.jpg", "")] == [3, 3, 3, 1]


def test_names_are_split_by_their_shard():
    parts = split_names(NAMES, 3)
    assert sorted(name for part in parts.values() for name in part) == sorted(NAMES)
    assert all(find_shard(name, 3) == shard for shard, part in parts.items() for name in part)


def test_dealt_images_keep_their_rows_and_boxes():
    rows = make_rows()
    for shard, part in deal(rows, 3).items():
        numbers = [NAMES.index(name) for name in part.ids]
        assert all(find_shard(name, 3) == shard for name in part.ids)
        assert np.bincount(part.owners, minlength=len(part.ids)).tolist() == [number % 3 for number in numbers]
        assert part.vectors[:, 0].tolist() == [numbers[owner] for owner in part.owners]
        assert part.boxes[:, 3].tolist() == part.vectors[:, 0].tolist()
        assert part.space == "s"


def test_spilled_rows_come_back_as_often_as_they_are_wanted_and_the_source_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("resight.index.shards.spill.WAITING", 40)  # several files a shard
    read = []

    def chunks():
        read.append(1)
        return iter([make_rows(), global_rows(["more"], [[9, 9]])])

    spilled = spill(chunks, 2, tmp_path)
    for _ in range(2):
        names = [[name for part in shard() for name in part.ids] for shard in spilled]
        assert sorted(name for part in names for name in part) == sorted([*NAMES, "more"])
        assert [len(part) for part in names] == [shard.images for shard in spilled]
        rows = [part for shard in spilled for part in shard()]
        assert sum(len(part) for part in rows) == len(make_rows()) + 1
    assert read == [1]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards on disk."""
    folder = tmp_path / "index"
    folder.mkdir()
    index.build("ray_shards", shards=2).create(
        lambda: iter([global_rows(NAMES, [[number, 1] for number in range(20)])]), folder
    )
    return folder


def test_the_list_names_every_file_with_its_bytes(shards: Path):
    table = json.loads((shards / FILE).read_text())
    assert sum(shard["images"] for shard in table["shards"]) == 20
    for number, shard in enumerate(table["shards"]):
        place = locate_shard(shards, number)
        assert {file["name"]: file["size"] for file in shard["files"]} == {
            path.name: path.stat().st_size for path in place.iterdir()
        }
    assert sorted(path.name for path in shards.iterdir()) == ["shards", FILE]


def test_a_file_that_was_cut_short_is_named_with_the_bytes_that_are_missing(shards: Path):
    path = locate_shard(shards, 1) / "vectors.npy"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CollectionError, match=rf"0001/vectors.npy is not whole[\s\S]*{size} bytes[\s\S]*{size - 8} b"):
        read_manifest(shards, EXACT)
    path.unlink()
    with pytest.raises(CollectionError, match=r"vectors.npy is missing"):
        read_manifest(shards, EXACT)


def test_shards_without_their_list_or_of_another_format_are_refused(shards: Path):
    table = json.loads((shards / FILE).read_text())
    (shards / FILE).write_text(json.dumps({**table, "format": 99}))
    with pytest.raises(VersionMismatch, match="format 99"):
        read_manifest(shards, EXACT)
    (shards / FILE).unlink()
    with pytest.raises(CollectionError, match="no whole shards"):
        read_manifest(shards, EXACT)


def test_a_list_that_is_read_is_the_one_that_was_written(tmp_path: Path):
    (locate_shard(tmp_path, 0) / "deep").mkdir(parents=True)
    (locate_shard(tmp_path, 0) / "deep" / "file").write_bytes(b"abc")
    manifest = Manifest(EXACT, (describe_shard(locate_shard(tmp_path, 0), 7),))
    write(manifest, tmp_path)
    assert read_manifest(tmp_path, EXACT) == manifest
    assert manifest.shards[0].files[0].name == "deep/file"


@pytest.mark.parametrize(("name", "settings"), [("ivfpq", {}), ("maxsim", {"cascade": True, "cascade_dims": 2})])
def test_an_index_whose_answer_would_change_is_refused(name: str, settings: dict[str, object]):
    with pytest.raises(RecipeError, match=f"{name!r} with these settings cannot be kept in shards"):
        index.build("ray_shards", inner=Choice(name, settings))


class Sent:
    """A shard on its way to a node that does not see its folder."""

    def __init__(self, folder: Path) -> None:
        self.shard: Shard = read_manifest(folder, EXACT).shards[0]
        self._folder = locate_shard(folder, 0)

    def send(self, held: HeldShards, spoil: bytes = b"") -> object:
        error: object = held.prepare(self.shard)
        for file in self.shard.files:
            content = (self._folder / file.name).read_bytes()
            for piece in (content[:10], content[10:] + spoil):
                error = error or held.receive(self.shard, file.name, piece)
        return error or held.settle(self.shard)


def test_a_shard_that_was_sent_in_pieces_is_held_and_goes_when_it_is_dropped(shards: Path, tmp_path: Path):
    sent, held = Sent(shards), HeldShards(tmp_path / "cache")
    assert held.hold("key", EXACT, sent.shard, None) == "absent"
    assert sent.send(held) is None
    assert held.hold("key", EXACT, sent.shard, None) == "held"
    (ranking,) = held.search([("key", None)], global_rows(["q"], [[1, 0]]), 3)
    assert [find_shard(name, 2) for name in ranking.ids] == [0, 0, 0]
    held.drop("key")
    assert held.search([("key", None)], global_rows(["q"], [[1, 0]]), 3) == [None]
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_shard_that_arrived_otherwise_than_it_was_sent_is_thrown_away(shards: Path, tmp_path: Path):
    error = Sent(shards).send(HeldShards(tmp_path / "cache"), spoil=b"x")
    assert isinstance(error, CollectionError)
    assert "did not arrive" in error.problem
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_node_without_room_says_so_and_keeps_nothing(shards: Path, tmp_path: Path):
    error = Sent(shards).send(HeldShards(tmp_path / "cache", lambda _: 1000))
    assert isinstance(error, StorageError)
    assert "1,000 bytes are free" in error.actual
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_a_node_sees_is_opened_in_place(shards: Path, tmp_path: Path):
    held = HeldShards(tmp_path / "cache")
    assert held.hold("key", EXACT, Sent(shards).shard, locate_shard(shards, 0)) == "held"
    assert not (tmp_path / "cache").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there, to ask for a process is to end it")
def test_what_a_process_that_died_was_about_to_fetch_is_removed_by_the_next(shards: Path, tmp_path: Path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    cache, content = tmp_path / "cache", Sent(shards).shard.content
    kept = [content, f".{content}.{socket.gethostname()}.{os.getpid()}", f".{content}.another-machine.{ended.pid}"]
    for name in [*kept, f".{content}.{socket.gethostname()}.{ended.pid}"]:
        (cache / name).mkdir(parents=True)
    HeldShards(cache)
    assert sorted(path.name for path in cache.iterdir()) == sorted(kept)


def test_what_is_on_its_way_is_named_after_the_process_that_it_goes_to(shards: Path, tmp_path: Path):
    HeldShards(tmp_path / "cache").prepare(Sent(shards).shard)
    (partial,) = (tmp_path / "cache").iterdir()
    assert partial.name.endswith(f".{socket.gethostname()}.{os.getpid()}")

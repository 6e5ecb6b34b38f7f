"""A node that receives, opens, searches and drops shards."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.builders import global_rows

from resight.errors import CollectionError, StorageError
from resight.types import Choice

pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")

from resight.index.shards.node import ShardServer
from resight.index.shards.placement import find_shard
from resight.index.shards.shard_manifest import Shard, locate_shard, read_manifest

EXACT = Choice("exact")


class Sent:
    """A shard on its way to a node that does not see its folder."""

    def __init__(self, folder: Path) -> None:
        self.shard: Shard = read_manifest(folder, EXACT).shards[0]
        self._folder = locate_shard(folder, 0)

    def send(self, server: ShardServer, spoil: bytes = b"") -> object:
        error: object = server.prepare(self.shard)
        for file in self.shard.files:
            content = (self._folder / file.name).read_bytes()
            for piece in (content[:10], content[10:] + spoil):
                error = error or server.receive(self.shard, file.name, piece)
        return error or server.commit(self.shard)


def test_a_node_opens_a_shard_sent_in_pieces_and_deletes_it_on_drop(shards: Path, tmp_path: Path):
    sent, server = Sent(shards), ShardServer(tmp_path / "cache")
    assert server.open_shard("key", EXACT, sent.shard, None) == "absent"
    assert sent.send(server) is None
    assert server.open_shard("key", EXACT, sent.shard, None) == "held"
    (ranking,) = server.search([("key", None)], global_rows(["q"], [[1, 0]]), 3)
    assert [find_shard(name, 2) for name in ranking.ids] == [0, 0, 0]
    server.drop("key")
    assert server.search([("key", None)], global_rows(["q"], [[1, 0]]), 3) == [None]
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_node_deletes_a_shard_that_was_damaged_on_the_way(shards: Path, tmp_path: Path):
    error = Sent(shards).send(ShardServer(tmp_path / "cache"), spoil=b"x")
    assert isinstance(error, CollectionError)
    assert "did not arrive" in error.problem
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_node_without_disk_space_returns_an_error_and_keeps_no_file(shards: Path, tmp_path: Path):
    error = Sent(shards).send(ShardServer(tmp_path / "cache", lambda _: 1000))
    assert isinstance(error, StorageError)
    assert "1,000 bytes are free" in error.actual
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_node_opens_a_folder_that_it_sees_without_a_copy(shards: Path, tmp_path: Path):
    server = ShardServer(tmp_path / "cache")
    assert server.open_shard("key", EXACT, Sent(shards).shard, locate_shard(shards, 0)) == "held"
    assert not (tmp_path / "cache").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill would end the process there")
def test_partial_shards_of_a_dead_process_are_deleted(shards: Path, tmp_path: Path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    cache, content = tmp_path / "cache", Sent(shards).shard.content
    kept = [content, f".{content}.{socket.gethostname()}.{os.getpid()}", f".{content}.another-machine.{ended.pid}"]
    for name in [*kept, f".{content}.{socket.gethostname()}.{ended.pid}"]:
        (cache / name).mkdir(parents=True)
    ShardServer(cache)
    assert sorted(path.name for path in cache.iterdir()) == sorted(kept)


def test_a_partial_shard_is_named_after_host_and_process(shards: Path, tmp_path: Path):
    ShardServer(tmp_path / "cache").prepare(Sent(shards).shard)
    (partial,) = (tmp_path / "cache").iterdir()
    assert partial.name.endswith(f".{socket.gethostname()}.{os.getpid()}")

import json
from pathlib import Path

import pytest

from resight.errors import CollectionError, VersionMismatch
from resight.types import Choice

pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")  # the fixture builds shards

from resight.index.shards.shard_manifest import (
    FILE,
    Manifest,
    describe_shard,
    locate_shard,
    read_manifest,
    write_manifest,
)

EXACT = Choice("exact")


def test_the_manifest_names_every_file_with_its_size(shards: Path):
    table = json.loads((shards / FILE).read_text())
    assert sum(shard["images"] for shard in table["shards"]) == 20
    for number, shard in enumerate(table["shards"]):
        shard_folder = locate_shard(shards, number)
        assert {file["name"]: file["size"] for file in shard["files"]} == {
            path.name: path.stat().st_size for path in shard_folder.iterdir()
        }
    assert sorted(path.name for path in shards.iterdir()) == ["shards", FILE]


def test_an_error_names_a_truncated_file_and_both_sizes(shards: Path):
    path = locate_shard(shards, 1) / "vectors.npy"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CollectionError, match=rf"0001/vectors.npy is incomplete[\s\S]*{size} bytes[\s\S]*{size - 8} b"):
        read_manifest(shards, EXACT)
    path.unlink()
    with pytest.raises(CollectionError, match=r"vectors.npy is missing"):
        read_manifest(shards, EXACT)


def test_shards_without_a_manifest_or_of_another_format_are_refused(shards: Path):
    table = json.loads((shards / FILE).read_text())
    (shards / FILE).write_text(json.dumps({**table, "format": 99}))
    with pytest.raises(VersionMismatch, match="format 99"):
        read_manifest(shards, EXACT)
    (shards / FILE).unlink()
    with pytest.raises(CollectionError, match="no complete shards"):
        read_manifest(shards, EXACT)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path):
    (locate_shard(tmp_path, 0) / "deep").mkdir(parents=True)
    (locate_shard(tmp_path, 0) / "deep" / "file").write_bytes(b"abc")
    manifest = Manifest(EXACT, (describe_shard(locate_shard(tmp_path, 0), 7),))
    write_manifest(manifest, tmp_path)
    assert read_manifest(tmp_path, EXACT) == manifest
    assert manifest.shards[0].files[0].name == "deep/file"

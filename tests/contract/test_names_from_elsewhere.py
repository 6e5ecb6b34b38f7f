"""Every caller that takes a name from elsewhere keeps it inside its folder, for reading and writing alike.

Names of a collection's own files are tested in tests/unit/collection/test_hostile_collection.py.
"""

import contextlib
import io
import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from support.hostile import HOSTILE_NAMES, hostile_names

from resight.apps.service.thumbnails import ThumbnailCache
from resight.collection.qdrant.connect import check_name
from resight.data.download_catalogue import RemoteFile
from resight.data.sets import craterbench, halensee, hugging_face, ilias, instre, museum, revisited
from resight.data.truth_tables import list_distractors
from resight.data.unpack import unpack
from resight.errors import ResightError
from resight.index.shards.node import ShardServer
from resight.index.shards.shard_manifest import FILE, Shard, ShardFile, read_manifest, verify_checksums
from resight.types import Choice

EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def unpack_tar(root: Path, name: str) -> None:
    archive = root.parent / "archive"
    with tarfile.open(archive, "w") as opened:
        member = tarfile.TarInfo(name)
        member.size = 1
        opened.addfile(member, io.BytesIO(b"x"))
    unpack(archive, root)


def unpack_zip(root: Path, name: str) -> None:
    archive = root.parent / "archive"
    with zipfile.ZipFile(archive, "w") as opened:
        member = zipfile.ZipInfo("x")
        member.filename = name or "y"  # past the cleaning of the constructor
        opened.writestr(member, b"x")
    unpack(archive, root)


def unpack_link(root: Path, name: str) -> None:
    archive = root.parent / "archive"
    with tarfile.open(archive, "w") as opened:
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, name
        opened.addfile(member)
    unpack(archive, root)


def receive_shard(root: Path, name: str) -> None:
    server = ShardServer(root, lambda _: 1 << 40)
    shard = Shard(1, (ShardFile(name, 1, "0" * 64),))
    for error in (server.prepare(shard), server.receive(shard, name, b"x"), server.commit(shard)):
        if error is not None:
            raise error


def open_shards(root: Path, name: str) -> None:
    file = {"name": name, "size": 7, "sha256": "0" * 64}
    (root / FILE).write_text(json.dumps({"format": 1, "shards": [{"images": 1, "files": [file]}]}))
    found = read_manifest(root, Choice("exact"))
    verify_checksums(root, found.shards[0].files)


def make_thumbnail(root: Path, name: str) -> None:
    made = cast(Any, object.__new__(ThumbnailCache))
    made.folder = root
    path = made._path(SimpleNamespace(sha256=name), 64, False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


def export(root: Path, name: str) -> None:
    (root / check_name(name)).write_bytes(b"x")


def download(root: Path, name: str) -> None:
    target = root / RemoteFile("https://host.example/file.jpg", name).target
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"x")


WRITERS: dict[str, Callable[[Path, str], None]] = {
    "a file of a tar archive": unpack_tar,
    "a file of a zip archive": unpack_zip,
    "a link of a tar archive": unpack_link,
    "a file of a shard that another node sends": receive_shard,
    "a file of a shard on disk": open_shards,
    "a thumbnail of a stored image": make_thumbnail,
    "an export to Qdrant": export,
    "a download of a catalogue": download,
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder to write into; its parent holds a file that nobody may change or read."""
    (tmp_path / "outer" / "root").mkdir(parents=True)
    (tmp_path / "outer" / "x").write_bytes(b"private")
    (tmp_path / "x").write_bytes(b"private")
    return tmp_path / "outer" / "root"


def list_outside(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in root.parents[1].rglob("*")
        if path.is_file() and not path.is_relative_to(root) and path.name != "archive"
    }


def attack(write: Callable[[Path, str], None], root: Path, name: str) -> None:
    before = list_outside(root)
    with contextlib.suppress(ResightError, OSError, ValueError):  # a ValueError of tarfile: it cannot store the name
        write(root, name)
    assert list_outside(root) == before
    shutil.rmtree(root)
    root.mkdir()


@pytest.mark.parametrize("caller", WRITERS)
@given(name=hostile_names())
@EXAMPLES
def test_nothing_is_written_outside(caller: str, home: Path, name: str) -> None:
    attack(WRITERS[caller], home, name)


@pytest.mark.parametrize("caller", WRITERS)
@pytest.mark.parametrize("name", ["../x", "../../x", "a/../../x", "{outer}/x", "..\\x", "C:\\x", "a\nb", "link/x"])
def test_the_plainest_attacks_are_errors_in_words(caller: str, home: Path, name: str) -> None:
    if name == "link/x":
        if caller != "a file of a tar archive":
            pytest.skip("this caller empties its folder, or makes names of one part")
        (home / "link").symlink_to(home.parent)
    before = list_outside(home)
    with pytest.raises(ResightError):
        WRITERS[caller](home, name.format(outer=home.parent))
    assert list_outside(home) == before


READERS: dict[str, Callable[[Path, str], Any]] = {
    "craterbench": lambda root, name: craterbench._refer(
        {"crater_id": 1, "image_path": name, "image_id": 1}, root, root
    ),
    "instre": lambda root, name: instre._refer(name, root),
    "museum": lambda root, name: museum._parse_photo({"file": name, "objects": []}, root, {}),
    "halensee": lambda root, name: halensee._parse(
        {"file": name, "role": "query", "lat": "1", "lon": "1", "heading_deg": "1"}, 1, root
    ),
    "hugging_face": lambda root, name: hugging_face._refer(
        {"image": {"path": name}}, "row", hugging_face.Config(image="image"), root, root, root
    ),
    "ilias": lambda root, name: ilias._refer(name, {}, root, True),
    "revisited": lambda root, name: revisited._refer(name, root),
    "distractors": lambda root, name: _list_distractors(root, name),
}


def _list_distractors(root: Path, name: str) -> Any:
    (root / "list.txt").write_text(name, encoding="utf-8")
    return list_distractors(root / "list.txt", "fix")[0][0]


@pytest.mark.parametrize("reader", READERS)
@given(name=hostile_names())
@EXAMPLES
def test_no_truth_file_names_an_image_outside_its_data_set(reader: str, home: Path, name: str) -> None:
    try:
        found = READERS[reader](home, name)
    except (ResightError, UnicodeEncodeError):
        return
    path = Path(os.path.normpath(found.path if hasattr(found, "path") else found[-1].path))
    assert path.is_relative_to(home)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["../x", "../../x", "/etc/passwd", "a/../../../x"])
def test_the_plainest_attacks_on_readers_are_errors_in_words(reader: str, home: Path, name: str) -> None:
    with pytest.raises(ResightError):
        READERS[reader](home, name)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_no_hostile_name_of_an_archive_is_unpacked(home: Path, name: str) -> None:
    try:
        unpack_tar(home, name)
    except (ResightError, ValueError, UnicodeError):
        return
    assert name in ("", ".", "a\0b"), "tarfile lists the first two as folders, and cuts the third"

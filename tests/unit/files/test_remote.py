"""Remote files, by the drivers that need no network: memory:// and file://."""

import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from resight.data import image_files
from resight.data.folder_walk import walk
from resight.data.manifest_rows import read_rows
from resight.errors import ImageError, InputError, ManifestError, MissingExtra
from resight.files import remote
from resight.types import ImageRef, Skipped

fsspec = pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
PNG = cv2.imencode(".png", np.full((4, 6, 3), 7, np.uint8))[1].tobytes()


@pytest.fixture
def memory() -> Iterator[object]:
    files = fsspec.filesystem("memory")
    yield files
    files.rm("/", recursive=True)


@pytest.mark.parametrize(
    "text",
    ["s3://bucket/a.jpg", "gs://bucket", "https://host/a.jpg", "file:///folder/a.jpg", "memory://folder/a b.jpg"],
)
def test_an_address_survives_being_a_path(text: str) -> None:
    assert remote.is_remote(text) and remote.is_remote(Path(text))
    assert remote.to_url(Path(text)) == text


@pytest.mark.parametrize("text", ["a.jpg", "/a/b.jpg", "C:/photos", "C:\\photos", "folder:a/b", "3d:/a"])
def test_other_names_are_local(text: str) -> None:
    assert not remote.is_remote(text)
    assert remote.to_url(text) == text


def test_local_files_are_opened_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    with remote.open_file(tmp_path / "a") as file:
        assert file.read() == b"abc"


def test_files_are_listed_in_order_of_name_and_some_left_out(memory) -> None:
    for name in ("b.png", "a/z.png", "a/c/d.png", ".hidden/x.png", "old.resight/y.png"):
        memory.pipe_file(f"/photos/{name}", b"12345")
    found = list(
        remote.list_files("memory://photos", lambda name, _: name.startswith(".") or name.endswith(".resight"))
    )
    assert [one.url.removeprefix("memory://").lstrip("/") for one in found] == [
        "photos/a/c/d.png",
        "photos/a/z.png",
        "photos/b.png",
    ]
    assert {one.size for one in found} == {5}


def test_a_remote_folder_is_walked_like_a_local_one(memory) -> None:
    for name in ("b.png", "a/z.JPG", "notes.txt", ".hidden.png", "old.resight/y.png"):
        memory.pipe_file(f"/photos/{name}", PNG)
    found = list(walk(Path("memory://photos")))
    assert [(ref.id, remote.to_url(ref.path)) for ref in found if isinstance(ref, ImageRef)] == [
        ("a/z.JPG", "memory://photos/a/z.JPG"),
        ("b.png", "memory://photos/b.png"),
    ]


def test_one_remote_image_is_a_source_too(memory) -> None:
    memory.pipe_file("/photos/b.png", PNG)
    (ref,) = walk(Path("memory://photos/b.png"))
    assert not isinstance(ref, Skipped)
    assert image_files.read(ref).size == (6, 4)


def test_what_a_listing_tells_is_what_reading_tells(memory) -> None:
    memory.pipe_file("/photos/b.png", PNG)
    (ref,) = walk(Path("memory://photos"))
    assert isinstance(ref, ImageRef)
    picture = image_files.read(ref)
    assert ref.listed == (picture.bytes, picture.modified_ns) == (len(PNG), remote.stat(ref.path).modified_ns)


def test_an_etag_tells_changes_within_a_second() -> None:
    one, two = (remote._read_status({"size": 3, "LastModified": 5.9, "ETag": tag}) for tag in ('"a"', '"b"'))
    assert one.modified_ns // 10**9 == two.modified_ns // 10**9 == 5
    assert one != two
    assert remote._read_status({"size": 3, "LastModified": 5.1, "ETag": "a"}) == one  # without quotes, other fraction


def test_a_file_that_is_gone_is_an_image_error_and_a_lost_store_is_not() -> None:
    with pytest.raises(ImageError, match="no such file"):
        image_files.read(ImageRef("a", Path("memory://photos/gone.png")))
    with pytest.raises(InputError, match="no driver knows") as caught:
        image_files.read(ImageRef("a", Path("nowhere://photos/gone.png")))
    assert not isinstance(caught.value, ImageError)


def test_a_folder_that_is_not_there_is_named_by_its_address() -> None:
    with pytest.raises(InputError, match="no image or folder memory://nothing"):
        walk(Path("memory://nothing"))


def test_a_missing_driver_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"\[remote\]"):
        remote.stat(Path("s3://bucket/a.jpg"))


def test_a_chain_of_drivers_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(PNG)
    with pytest.raises(ImageError):
        image_files.read(ImageRef("a", Path(f"memory://x::file://{secret}")))


def test_a_remote_manifest_names_images_beside_it_and_elsewhere(memory) -> None:
    memory.pipe_file("/lists/m.csv", b"path,label\na.png,one\nmemory://photos/b.png,two\n")
    rows = list(read_rows(Path("memory://lists/m.csv")))
    assert [remote.to_url(row.ref.path) for row in rows] == ["memory://lists/a.png", "memory://photos/b.png"]
    assert [row.ref.id for row in rows] == ["a.png", "memory://photos/b.png"]
    with pytest.raises(ManifestError, match=r"memory://lists/n\.csv is not a manifest"):
        list(read_rows(Path("memory://lists/n.csv")))


def test_a_local_manifest_may_name_addresses(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"path": "s3://bucket/a.jpg"}\n{"path": "b.jpg"}\n', encoding="utf-8")
    paths = [row.ref.path for row in read_rows(tmp_path / "m.jsonl")]
    assert paths == [Path("s3://bucket/a.jpg"), tmp_path / "b.jpg"]


def test_file_addresses_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (ref,) = walk(Path(f"file://{tmp_path}"))
    assert isinstance(ref, ImageRef)
    assert (ref.id, image_files.read(ref).size) == ("a.png", (6, 4))


class Locked(fsspec.AbstractFileSystem):
    """A store that lets nobody in."""

    protocol = "locked"

    def info(self, path: str, **_: object) -> dict[str, object]:
        raise PermissionError(f"Access Denied: {path}")


class Lost(fsspec.AbstractFileSystem):
    """A store that does not answer, in the words of a library that knows nothing of files."""

    protocol = "lost"

    def info(self, path: str, **_: object) -> dict[str, object]:
        raise KeyError(path)


@pytest.fixture
def odd_stores() -> None:
    fsspec.register_implementation("locked", Locked, clobber=True)
    fsspec.register_implementation("lost", Lost, clobber=True)


@pytest.mark.usefixtures("odd_stores")
def test_a_store_that_lets_nobody_in_is_said_so() -> None:
    with pytest.raises(InputError, match="locked://bucket may not be read"):
        walk(Path("locked://bucket"))
    with pytest.raises(ImageError, match="permission denied"):
        image_files.read(ImageRef("a", Path("locked://bucket/a.png")))


@pytest.mark.usefixtures("odd_stores")
def test_a_store_that_does_not_answer_stops_the_run_and_is_no_fault_of_one_image() -> None:
    with pytest.raises(InputError, match=r"cannot reach lost://bucket/a\.png") as caught:
        image_files.read(ImageRef("a", Path("lost://bucket/a.png")))
    assert not isinstance(caught.value, ImageError)

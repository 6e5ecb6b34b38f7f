"""Archives: what is unpacked, what stays, and what hostile ones cannot do."""

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.running import state_of

from resight.data import http_download
from resight.data import unpack as unpacking
from resight.data.unpack import unpack
from resight.errors import InputError, ResightError, StorageError

FILES = {"a/one.jpg": b"one", "a/b/two.jpg": b"two" * 1000, "three.txt": b""}
Edit = Callable[[tarfile.TarInfo], None]


def make_tar(path: Path, files: Mapping[str, bytes], mode: str = "w", edit: Edit = lambda _: None) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            edit(member)
            archive.addfile(member, io.BytesIO(content))
    return path


def make_zip(path: Path, files: Mapping[str, bytes], mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return path


def add_link(path: Path, name: str, target: str, kind: bytes, first: Mapping[str, bytes] = {}) -> Path:
    with tarfile.open(path, "w") as archive:
        for other, content in first.items():
            member = tarfile.TarInfo(other)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, target
        archive.addfile(member)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz", "zip"])
def test_files_and_folders_are_unpacked(mode: str, tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a", FILES) if mode == "zip" else make_tar(tmp_path / "a", FILES, mode)
    seen: list[int] = []
    done = unpack(archive, tmp_path / "out", progress=lambda so_far, _: seen.append(so_far))
    assert contents(tmp_path / "out") == FILES
    assert (done.files, done.bytes, done.kept) == (3, 3003, 0)
    assert seen == [3, 3003, 3003]


def test_flat_drops_the_folders_of_the_archive(tmp_path: Path) -> None:
    unpack(make_tar(tmp_path / "a.tgz", FILES, "w:gz"), tmp_path / "out", flat=True)
    assert sorted(contents(tmp_path / "out")) == ["one.jpg", "three.txt", "two.jpg"]


def test_an_unpacking_that_stopped_goes_on_and_the_same_bytes_stay(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar", FILES)
    (tmp_path / "out" / "a").mkdir(parents=True)
    (tmp_path / "out" / "a" / "one.jpg").write_bytes(b"one")
    (tmp_path / "out" / "mine.txt").write_bytes(b"mine")
    before = (tmp_path / "out" / "a" / "one.jpg").stat().st_mtime_ns
    assert unpack(archive, tmp_path / "out").kept == 1
    assert contents(tmp_path / "out") == {**FILES, "mine.txt": b"mine"}
    assert (tmp_path / "out" / "a" / "one.jpg").stat().st_mtime_ns == before
    assert unpack(archive, tmp_path / "out").kept == 3


@pytest.mark.parametrize("content", [b"One", b"one and more", b""])
def test_other_files_are_never_overwritten(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "out" / "a").mkdir(parents=True)
    (tmp_path / "out" / "a" / "one.jpg").write_bytes(content)
    with pytest.raises(StorageError, match="exists and differs") as refused:
        unpack(make_tar(tmp_path / "a.tar", FILES), tmp_path / "out")
    assert (tmp_path / "out" / "a" / "one.jpg").read_bytes() == content
    assert refused.value.expected and refused.value.actual and refused.value.fix


def test_two_files_that_become_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="exists and differs"):
        unpack(make_tar(tmp_path / "a.tar", {"a/x.jpg": b"1", "b/x.jpg": b"2"}), tmp_path / "out", flat=True)


NAMES = ["../out.jpg", "/out.jpg", "a/../../out.jpg", "..\\out.jpg", "C:\\out.jpg", "C:out.jpg", "\\out.jpg", "a/.."]


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_out_are_refused(name: str, flat: bool, kind: str, tmp_path: Path) -> None:
    archive = tmp_path / "in" / "archive"
    archive.parent.mkdir()
    make_tar(archive, {name: b"evil"}) if kind == "tar" else make_zip(archive, {name: b"evil"})
    before = state_of(tmp_path)
    with pytest.raises(InputError, match="it holds a file"):
        unpack(archive, tmp_path / "in" / "out", flat)
    assert state_of(tmp_path) == before


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(kind: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a device, a pipe"):
        unpack(add_link(tmp_path / "a.tar", "x", "", kind), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["/etc/hostname", "../secret", "../../secret", "nothing", ".", "a"])
def test_links_that_lead_out_or_nowhere_are_refused(kind: bytes, target: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    with pytest.raises(InputError):
        unpack(add_link(tmp_path / "a.tar", "link", target, kind), tmp_path / "out")
    assert not (tmp_path / "out" / "link").exists()


@pytest.mark.parametrize(("kind", "target"), [(tarfile.SYMTYPE, "one.jpg"), (tarfile.LNKTYPE, "a/one.jpg")])
def test_links_inside_become_copies(kind: bytes, target: str, tmp_path: Path) -> None:
    unpack(add_link(tmp_path / "a.tar", "a/link.jpg", target, kind, {"a/one.jpg": b"one"}), tmp_path / "out")
    assert contents(tmp_path / "out") == {"a/one.jpg": b"one", "a/link.jpg": b"one"}
    assert not (tmp_path / "out" / "a" / "link.jpg").is_symlink()


def test_a_file_is_not_written_through_a_link_of_the_archive(tmp_path: Path) -> None:
    """First a link to a folder outside, then a file below it."""
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        link = tarfile.TarInfo("door")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        member = tarfile.TarInfo("door/evil.jpg")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(InputError):
        unpack(tmp_path / "a.tar", tmp_path / "out")
    assert not (tmp_path / "evil.jpg").exists()


def test_a_link_of_the_folder_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="leads out"):
        unpack(make_tar(tmp_path / "a.tar", FILES), tmp_path / "out")
    assert contents(tmp_path / "elsewhere") == {}


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "large-disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "large-disk")
    unpack(make_tar(tmp_path / "a.tar", FILES), tmp_path / "out")
    assert contents(tmp_path / "large-disk") == FILES


def test_a_file_in_the_way_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_bytes(b"mine")
    with pytest.raises(ResightError):
        unpack(make_tar(tmp_path / "a.tar", FILES), tmp_path / "out")
    assert (tmp_path / "out" / "a").read_bytes() == b"mine"


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_links_and_devices_in_a_zip_are_refused(mode: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a link, a device"):
        unpack(make_zip(tmp_path / "a.zip", {"x": b"/etc/hostname"}, mode | 0o777), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_encrypted_file_is_refused(tmp_path: Path) -> None:
    data = bytearray(make_zip(tmp_path / "a.zip", {"x": b"text"}).read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(InputError, match="encrypted"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "ALLOWED", 1_000_000)
    bomb = {"zeros": bytes(30_000_000)}
    archive = make_zip(tmp_path / "a", bomb) if kind == "zip" else make_tar(tmp_path / "a", bomb, "w:gz")
    with pytest.raises(InputError, match="far more than its size"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = http_download.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(http_download.shutil, "disk_usage", lambda _: usage._replace(free=http_download.SPARE + 2))
    with pytest.raises(StorageError, match="too small"):
        unpack(make_tar(tmp_path / "a.tar", FILES), tmp_path / "out")
    assert contents(tmp_path / "out") == {}


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def spoil(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes(byte ^ 0xFF for byte in data[middle : middle + 20]) + data[middle + 20 :]


NOISE = {"noise.bin": os.urandom(20_000)}


@pytest.mark.parametrize("change", [cut, spoil])
@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zip"])
def test_damaged_archives_are_refused_and_leave_no_half_file(
    kind: str, change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    archive = make_zip(tmp_path / "a", NOISE) if kind == "zip" else make_tar(tmp_path / "a", NOISE, f"w:{kind}")
    archive.write_bytes(change(archive.read_bytes()))
    with pytest.raises(InputError, match="damaged"):
        unpack(archive, tmp_path / "out")
    assert contents(tmp_path / "out") == {}


def test_of_an_archive_that_is_refused_late_no_file_stays_but_others_do(tmp_path: Path) -> None:
    (tmp_path / "out" / "a").mkdir(parents=True)
    (tmp_path / "out" / "a" / "one.jpg").write_bytes(b"one")
    with pytest.raises(InputError):
        unpack(make_tar(tmp_path / "a.tar", {**FILES, "../evil": b"evil"}), tmp_path / "out")
    assert contents(tmp_path / "out") == {"a/one.jpg": b"one"}


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08 but no gzip", b"PK\x03\x04 but no zip"])
def test_other_files_are_no_archives(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError):
        unpack(tmp_path / "a", tmp_path / "out")


def test_a_tar_that_is_cut_within_a_file_is_refused(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar", NOISE)
    archive.write_bytes(archive.read_bytes()[:10_000])
    with pytest.raises(InputError, match="damaged"):
        unpack(archive, tmp_path / "out")
    assert contents(tmp_path / "out") == {}


def test_an_empty_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty"):
        unpack(make_tar(tmp_path / "a.tar", {}), tmp_path / "out")
    with pytest.raises(InputError, match="empty"):
        unpack(make_zip(tmp_path / "a.zip", {}), tmp_path / "out")


def test_a_zip_file_with_an_empty_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("x", b"x")
    listed = zipfile.ZipFile.infolist

    def rename(opened: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        members = listed(opened)
        for member in members:
            member.filename = ""
        return members

    monkeypatch.setattr(zipfile.ZipFile, "infolist", rename)
    with pytest.raises(InputError):
        unpack(archive, tmp_path / "out")

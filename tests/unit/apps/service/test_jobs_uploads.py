"""Files that clients uploaded: kept by content, found again, removed when nothing needs them."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from resight.apps.service.jobs.uploads import Uploads
from resight.errors import StorageError


def test_a_file_lies_under_the_hash_of_its_content_and_nothing_else(tmp_path: Path) -> None:
    (path,) = Uploads(tmp_path).keep([b"pixels"])
    name = hashlib.sha256(b"pixels").hexdigest()
    assert path == tmp_path / "uploads" / name[:2] / name
    assert path.read_bytes() == b"pixels"
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == [name]


def test_the_same_content_again_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    (first,) = [path.stat() for path in uploads.keep([b"pixels"])]
    assert [path.stat() for path in uploads.keep([b"pixels"])] == [first]


def test_file_and_folders_are_written_out_before_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def note(descriptor: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    monkeypatch.setattr(os, "fsync", note)
    Uploads(tmp_path).keep([b"pixels", b"others"])
    assert synced == ["file", "file", *["folder"] * 4]


def test_only_unused_uploads_are_removed_and_nothing_that_is_not_an_upload(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    used, unused = uploads.keep([b"used", b"unused"])
    foreign = unused.with_name("notes.txt")
    foreign.write_text("mine")
    outside = tmp_path / "photo.jpg"
    outside.write_bytes(b"photo")
    assert sorted(uploads.list_hashes()) == sorted([used.name, unused.name])
    assert uploads.remove_unused(iter([used.name, unused.name, "../../photo.jpg"]), {used.name}) == 1
    assert (used.exists(), unused.exists(), foreign.exists(), outside.exists()) == (True, False, True, True)


def test_what_a_killed_process_left_is_removed_after_an_hour(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    (kept,) = uploads.keep([b"kept"])
    old, new = kept.with_name("old.tmp"), kept.with_name("new.tmp")
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (0, 0))
    uploads.remove_unfinished()
    assert (kept.exists(), old.exists(), new.exists()) == (True, False, True)


def test_a_folder_that_refuses_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "uploads").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="cannot keep the upload"):
        Uploads(tmp_path).keep([b"pixels"])

"""What clients call their files and say about them, cleaned and checked.

Files that clients uploaded: kept by content, found again, removed when nothing needs them.
"""

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.apps.service.jobs.uploads import (
    UploadStore,
    check_ids,
    choose_ids,
    clean_name,
    read_attributes,
    read_attributes_of_files,
)
from resight.errors import InputError, StorageError


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("photo.jpg", "photo.jpg"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a\x00b\n.jpg", "ab.jpg"),
        ("..", "image"),
        ("", "image"),
        ("Cafe\u0301.png", "Café.png"),
        ("x" * 300 + ".jpeg", "x" * 115 + ".jpeg"),
    ],
)
def test_a_name_loses_folders_and_control_characters(name: str, cleaned: str) -> None:
    assert clean_name(name) == cleaned


@given(st.text(max_size=400))
def test_whatever_a_client_sends_becomes_a_short_plain_name(name: str) -> None:
    cleaned = clean_name(name)
    assert 1 <= len(cleaned) <= 120
    assert "/" not in cleaned and "\\" not in cleaned
    check_ids([cleaned])


def test_a_name_that_other_content_has_gets_the_hash_of_its_own() -> None:
    stored = {"a.jpg": "1" * 64, "b.jpg": "2" * 64}
    files = [("a.jpg", "1" * 64), ("b.jpg", "3" * 64), ("c.jpg", "4" * 64), ("c.jpg", "5" * 64), ("c.jpg", "4" * 64)]
    assert choose_ids(files, [], stored.get) == ["a.jpg", "b-33333333.jpg", "c.jpg", "c-55555555.jpg", None]


def test_a_file_that_was_sent_twice_gets_its_id_once() -> None:
    assert choose_ids([("c.jpg", "4" * 64), ("c.jpg", "4" * 64)], [], {}.get) == ["c.jpg", None]


def test_ids_that_were_given_are_used_as_they_are() -> None:
    assert choose_ids([("c.jpg", "4" * 64)], ["walls/north"], {"walls/north": "9"}.get) == ["walls/north"]


@pytest.mark.parametrize("ids", [[""], [" a"], ["a\nb"], ["x" * 501], ["\ud800"], ["a", "b", "a"]])
def test_ids_that_cannot_be_used_are_refused(ids: list[str]) -> None:
    with pytest.raises(InputError, match="id"):
        check_ids(ids)


def test_one_object_is_for_all_files() -> None:
    given = '{"label": "crater", "year": 1904, "seen": true, "none": null}'
    assert read_attributes_of_files(given, ["a", "b"]) == [{"label": "crater", "year": 1904, "seen": True}] * 2


def test_objects_by_name_are_for_one_file_each() -> None:
    assert read_attributes_of_files('{"b.jpg": {"lat": 1, "lon": 2.5}}', ["a.jpg", "b.jpg"]) == [
        {},
        {"lat": 1, "lon": 2.5},
    ]


def test_an_object_for_a_file_that_was_not_sent_is_refused() -> None:
    with pytest.raises(InputError, match="not sent"):
        read_attributes_of_files('{"c.jpg": {}}', ["a.jpg"])


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": 1e999}',
        '{"a": [1]}',
        '{"a": {"b": 1}}',
        '{"box": "0,0,1,1"}',
        '{"a=b": 1}',
        '{"": 1}',
        '{"a": "\\ud800"}',
        '{"a": "\\u0000"}',
        '{"a": 9007199254740993}',
        '{"a": 1' + "0" * 400 + "}",
        '{"a": 1' + "0" * 5000 + "}",
        '{"lat": 1}',
        '{"lat": 91, "lon": 0}',
        '{"lat": true, "lon": 0}',
        '{"lat": 1' + "0" * 400 + ', "lon": 0}',
        "[" * 100_000,
        json.dumps({str(number): 1 for number in range(51)}),
        json.dumps({"a": "x" * 2001}),
        json.dumps({"x" * 65: 1}),
    ],
)
def test_attributes_that_cannot_be_stored_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_attributes(text)


def test_a_file_lies_under_the_hash_of_its_content_and_nothing_else(tmp_path: Path) -> None:
    (path,) = UploadStore(tmp_path).save([b"pixels"])
    name = hashlib.sha256(b"pixels").hexdigest()
    assert path == tmp_path / "uploads" / name[:2] / name
    assert path.read_bytes() == b"pixels"
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == [name]


def test_the_same_content_again_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    uploads = UploadStore(tmp_path)
    (first,) = [path.stat() for path in uploads.save([b"pixels"])]
    (second,) = [path.stat() for path in uploads.save([b"pixels"])]
    assert (second.st_ino, second.st_mtime_ns, second.st_size) == (first.st_ino, first.st_mtime_ns, first.st_size)


def test_file_and_folders_are_written_out_before_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def note(descriptor: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    monkeypatch.setattr(os, "fsync", note)
    UploadStore(tmp_path).save([b"pixels", b"others"])
    assert synced == ["file", "file", *["folder"] * 4]


def test_nothing_that_is_not_an_upload_is_removed(tmp_path: Path) -> None:
    uploads = UploadStore(tmp_path)
    used, unused = uploads.save([b"used", b"unused"])
    foreign = unused.with_name("notes.txt")
    foreign.write_text("mine")
    outside = tmp_path / "photo.jpg"
    outside.write_bytes(b"photo")
    assert sorted(uploads.list_hashes()) == sorted([used.name, unused.name])
    assert uploads.remove([unused.name, "../../photo.jpg"]) == 1
    assert (used.exists(), unused.exists(), foreign.exists(), outside.exists()) == (True, False, True, True)


def test_what_a_killed_process_left_is_removed_after_an_hour(tmp_path: Path) -> None:
    uploads = UploadStore(tmp_path)
    (kept,) = uploads.save([b"kept"])
    old, new = kept.with_name("old.tmp"), kept.with_name("new.tmp")
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (0, 0))
    uploads.remove_temporary()
    assert (kept.exists(), old.exists(), new.exists()) == (True, False, True)


def test_a_folder_that_refuses_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "uploads").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="cannot store the upload"):
        UploadStore(tmp_path).save([b"pixels"])

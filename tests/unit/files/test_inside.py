"""Names from elsewhere never lead out of their folder."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hostile import HOSTILE_NAMES, hostile_names

from resight.errors import CollectionError, InputError
from resight.files.inside import LONGEST, find_fault, resolve_inside

GOOD = [
    "a.jpg",
    "files/0123456789ab.npz",
    "folder/sub folder/ünïcode 图.png",
    "..a",
    "a..b",
    "~a",
    "12:30.jpg",
    "nullify",
]


@pytest.mark.parametrize("name", GOOD)
def test_plain_names_stay_as_they_are(name: str, tmp_path: Path) -> None:
    assert resolve_inside(tmp_path, name, what="a file") == tmp_path / name


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CollectionError) as caught:
        resolve_inside(tmp_path / "root", name, what="a file", error=CollectionError)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    assert not any(letter in str(caught.value) for letter in "\0\x1b\u202e")


@given(name=hostile_names())
@settings(max_examples=300, deadline=None)
def test_no_name_leaves_its_folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.getbasetemp() / "root"
    try:
        path = resolve_inside(root, name, what="a file")
    except InputError:
        return
    normal = Path(os.path.normpath(path))
    assert normal.is_relative_to(root)
    assert normal != root


@given(name=st.text(max_size=2 * LONGEST))
@settings(max_examples=200, deadline=None)
def test_the_check_of_letters_never_fails(name: str) -> None:
    assert isinstance(find_fault(name), str)


def test_links_may_not_lead_out(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "file")
    (root / "loop").symlink_to(root / "loop")
    (root / "self").symlink_to(root)
    for name in ("folder", "folder/new", "folder/sub/new", "file", "self"):
        with pytest.raises(InputError, match="is named"):
            resolve_inside(root, name, what="a file")
    (root / "plain").mkdir()
    (root / "near").symlink_to(root / "plain")
    assert resolve_inside(root, "near/new", what="a file") == root / "near" / "new"


def test_a_root_that_is_reached_by_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert resolve_inside(tmp_path / "link", "a/b", what="a file") == tmp_path / "link" / "a" / "b"


def test_names_of_a_remote_folder_are_checked_by_their_letters() -> None:
    root = Path("s3://bucket/folder")
    assert resolve_inside(root, "files/a.npz", what="a file") == root / "files" / "a.npz"
    with pytest.raises(InputError):
        resolve_inside(root, "files/../../a.npz", what="a file")

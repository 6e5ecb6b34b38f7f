import os
import sys
from pathlib import Path

import pytest

from resight.data.folder_walk import walk
from resight.errors import InputError
from resight.types import ImageRef, Skipped


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")


def ids(root: Path) -> list[str]:
    return [found.id for found in walk(root) if isinstance(found, ImageRef)]


def skipped(root: Path) -> list[Skipped]:
    return [found for found in walk(root) if isinstance(found, Skipped)]


def test_images_below_the_root_come_in_order_of_name(tmp_path):
    touch(tmp_path, "b.jpg", "a/z.PNG", "a/b/c.tiff", "ü.webp", "図.jp2")
    assert ids(tmp_path) == ["a/b/c.tiff", "a/z.PNG", "b.jpg", "ü.webp", "図.jp2"]


def test_paths_lead_to_the_files(tmp_path):
    touch(tmp_path, "a/b.jpg")
    (ref,) = walk(tmp_path)
    assert ref == ImageRef("a/b.jpg", tmp_path / "a" / "b.jpg")


def test_hidden_things_collections_and_other_files_are_left_out(tmp_path):
    touch(tmp_path, ".a.jpg", ".cache/b.jpg", "c.resight/d.jpg", "notes.txt", "noext", "e.jpg")
    assert ids(tmp_path) == ["e.jpg"]
    assert skipped(tmp_path) == []


def test_images_without_an_ending_are_found_by_their_first_bytes_and_the_rest_is_counted(tmp_path):
    touch(tmp_path, "README", "notes.txt", "a/LICENSE", "b.jpg", ".hidden")
    for name, start in STARTS.items():
        (tmp_path / "a" / name).write_bytes(start + bytes(20))
    (tmp_path / "empty").touch()
    (tmp_path / "raw.dng").write_bytes(STARTS["tif"])
    left_out = []
    found = [item.id for item in walk(tmp_path, left_out.append) if isinstance(item, ImageRef)]
    assert found == [*(f"a/{name}" for name in sorted(STARTS)), "b.jpg"]
    assert [Path(item.path).name for item in skipped(tmp_path)] == ["raw.dng"]
    assert [path.relative_to(tmp_path).as_posix() for path in left_out] == [
        *(".hidden", "README", "a/LICENSE", "empty", "notes.txt")
    ]


STARTS = {
    "jpg": b"\xff\xd8\xff\xe0",
    "png": b"\x89PNG\r\n\x1a\n",
    "gif": b"GIF89a",
    "bmp": b"BM\x46\0\0\0\0\0\0\0\x36",
    "tif": b"II*\0",
    "webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "jp2": b"\0\0\0\x0cjP  ",
    "pgm": b"P5\n64 48\n255\n",
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_without_an_ending_is_left_out_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    left_out = []
    assert list(walk(tmp_path, left_out.append)) == []
    assert left_out == [tmp_path / "pipe"]


def test_a_folder_named_as_an_image_is_walked(tmp_path):
    touch(tmp_path, "album.jpg/a.jpg")
    assert ids(tmp_path) == ["album.jpg/a.jpg"]


def test_a_root_that_is_hidden_is_walked_all_the_same(tmp_path):
    touch(tmp_path, ".photos/a.jpg")
    assert ids(tmp_path / ".photos") == ["a.jpg"]


def test_loops_of_links_end(tmp_path):
    touch(tmp_path, "a/b/c.jpg")
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    assert ids(tmp_path) == ["a/b/c.jpg"]


def test_linked_files_and_folders_are_followed(tmp_path):
    touch(tmp_path, "elsewhere/a.jpg", "root/b.jpg")
    (tmp_path / "root" / "folder").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "file.jpg").symlink_to(tmp_path / "elsewhere" / "a.jpg")
    assert ids(tmp_path / "root") == ["b.jpg", "file.jpg", "folder/a.jpg"]


def test_a_link_that_leads_nowhere_is_reported(tmp_path):
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere")
    assert skipped(tmp_path) == [
        Skipped(str(tmp_path / "gone.jpg"), "a link that leads nowhere, or it may not be looked up")
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps such names")
def test_names_that_are_not_utf8_are_reported(tmp_path):
    for name in (b"caf\xe9.jpg", b"caf\xe9.txt"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/dir\xff")).mkdir()
    assert [(found.path.rpartition("/")[2], found.reason) for found in skipped(tmp_path)] == [
        ("caf\\xe9.jpg", "its name is not valid UTF-8"),
        ("dir\\xff", "its name is not valid UTF-8"),
    ]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_reported(tmp_path):
    touch(tmp_path, "a.jpg", "locked/b.jpg")
    (tmp_path / "locked").chmod(0)
    (found,) = skipped(tmp_path)
    (tmp_path / "locked").chmod(0o700)
    assert "cannot be read" in found.reason


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_be_listed_but_not_looked_up_are_reported(tmp_path):
    touch(tmp_path, "listed/a.jpg")
    (tmp_path / "listed").chmod(0o400)
    (found,) = skipped(tmp_path)
    (tmp_path / "listed").chmod(0o700)
    assert "may not be looked up" in found.reason


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_reported(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    assert [found.reason for found in skipped(tmp_path)] == ["it is not a regular file"]


def test_folders_nest_deeper_than_python_calls(tmp_path):
    folders = [tmp_path / ("d/" * depth) for depth in range(1, 1100)]
    for folder in folders:
        folder.mkdir()
    touch(folders[-1], "a.jpg")
    found = ids(tmp_path)
    (folders[-1] / "a.jpg").unlink()
    for folder in reversed(folders):  # here, because what removes temporary folders calls itself
        folder.rmdir()
    assert found == ["d/" * 1099 + "a.jpg"]


def test_a_single_image_is_a_root(tmp_path):
    touch(tmp_path, "one.jpg")
    assert list(walk(tmp_path / "one.jpg")) == [ImageRef("one.jpg", tmp_path / "one.jpg")]


def test_a_missing_root_is_refused_before_the_first_image_is_asked_for(tmp_path):
    with pytest.raises(InputError, match="no image or folder"):
        walk(tmp_path / "nowhere")


def test_remote_images_without_an_ending_are_found_by_their_first_bytes():
    files = pytest.importorskip("fsspec").filesystem("memory")
    for name, content in (("a", STARTS["jpg"]), ("b.jpg", b"x"), ("LICENSE", b"text"), ("list.txt", b"a")):
        files.pipe_file(f"/walked/{name}", content)
    left_out = []
    assert [item.id for item in walk(Path("memory://walked"), left_out.append)] == ["a", "b.jpg"]
    assert [path.name for path in left_out] == ["LICENSE", "list.txt"]

"""Distractors: a folder or a list of files, each image once, with ids of their own."""

import gzip
from pathlib import Path

import pytest

from resight.data.truth_tables import list_distractors
from resight.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jpg").mkdir()
    for name in ("a.jpg", "b.jpg", "notes.txt"):
        (tmp_path / "jpg" / name).write_bytes(b"x")
    return tmp_path


def test_a_folder_is_walked(folder: Path) -> None:
    refs, _ = list_distractors(folder / "jpg", "fetch them")
    assert [(ref.id, ref.path.name) for ref in refs] == [("distractors/a.jpg", "a.jpg"), ("distractors/b.jpg", "b.jpg")]
    assert list_distractors(None, "fetch them") == ((), ())


@pytest.mark.parametrize(("beside", "place"), [("", "a.jpg"), ("jpg", "jpg/a.jpg"), ("png", "a.jpg")])
def test_files_of_a_list_are_relative_to_its_folder_or_to_one_beside_it(folder: Path, beside: str, place: str) -> None:
    (folder / "list.txt").write_text("a.jpg\n\n")
    with gzip.open(folder / "list.txt.gz", "wt") as file:
        file.write("a.jpg\n")
    for name in ("list.txt", "list.txt.gz"):
        (ref,), skipped = list_distractors(folder / name, "fetch them", beside)
        assert (ref.id, ref.path, skipped) == ("distractors/a.jpg", folder / place, ())


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"a.jpg\nb.jpg\na.jpg\n"])
def test_a_list_without_images_or_with_one_twice_is_refused(folder: Path, content: bytes) -> None:
    (folder / "list.txt").write_bytes(content)
    with pytest.raises(InputError, match=r"list\.txt") as caught:
        list_distractors(folder / "list.txt", "fetch them")
    assert caught.value.fix == "fetch them"

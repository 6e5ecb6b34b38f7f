"""Distractors (a folder or a list of files, each image once, with ids of their own) and MATLAB files."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import eye

from resight.data import truth_tables
from resight.data.truth_tables import list_distractors, read_mat
from resight.errors import InputError, ManifestError


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


def test_kinds_of_matlab_arrays_that_lists_do_not_need_are_refused(tmp_path):
    for value in (np.array([1j]), eye(2, format="csc")):
        savemat(tmp_path / "a.mat", {"a": value})
        with pytest.raises(ManifestError, match=r"a\.mat cannot be read"):
            read_mat(tmp_path / "a.mat", "")


@pytest.mark.parametrize("content", [None, b"", b"MATLAB 7.3 MAT-file" + bytes(200), bytes(128)])
def test_what_is_no_matlab_file_is_refused(tmp_path, content):
    path = tmp_path / "a.mat"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ManifestError, match="cannot be read"):
        read_mat(path, "")


def test_lists_structs_text_and_numbers_of_a_matlab_file_are_read_in_its_order(tmp_path):
    path = tmp_path / "a.mat"
    table = np.zeros((1, 2), dtype=[("name", object), ("rows", object)])
    table[0, 0], table[0, 1] = ("one", np.array([[1, 2]])), ("", np.zeros((1, 0)))
    savemat(path, {"cells": np.array([["a", "b"], ["c", "d"]], dtype=object), "table": table, "text": "Zürich"})
    found = read_mat(path, "")
    assert found["cells"] == ["a", "c", "b", "d"]
    assert found["text"] == "Zürich"
    assert [(one["name"], one["rows"].tolist()) for one in found["table"]] == [("one", [[1, 2]]), ("", [[]])]


def test_a_matlab_variable_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.mat"
    savemat(path, {"a": np.zeros(100_000)}, do_compression=True)
    assert read_mat(path, "")["a"].shape == (1, 100_000)
    monkeypatch.setattr(truth_tables, "MAX_MAT_BYTES", 10_000)
    with pytest.raises(ManifestError, match=r"a\.mat cannot be read"):
        read_mat(path, "")

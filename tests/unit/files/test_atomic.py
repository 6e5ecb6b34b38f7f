from pathlib import Path

import pytest

from resight.errors import StorageError
from resight.files.atomic import TEMPORARY, replace_atomic, write_atomic


def test_a_file_appears_complete_in_a_folder_that_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with write_atomic(path) as temporary:
        temporary.write_text("all")
        assert temporary.suffix == TEMPORARY and not path.exists()
    assert path.read_text() == "all"
    assert list(path.parent.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="stop"), write_atomic(path) as temporary:
        temporary.write_text("half")
        raise ValueError("stop")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_refuses_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write") as caught, write_atomic(tmp_path / "file" / "below"):
        pass
    assert caught.value.fix == "choose another folder"


def test_a_caller_may_handle_its_own_errors_and_know_the_temporary_name(tmp_path: Path) -> None:
    with replace_atomic(tmp_path / "file", unique=False) as temporary:
        assert temporary == tmp_path / f"file{TEMPORARY}"
        temporary.write_text("all")
    with pytest.raises(FileNotFoundError), replace_atomic(tmp_path / "missing" / "file") as temporary:
        temporary.write_text("all")

"""Arrays that are written through a map: a full disk is an error, not the end of the process."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import resight
from resight.files import mapped
from resight.files.mapped import create_mapped


def test_the_space_of_the_whole_file_is_reserved(tmp_path: Path) -> None:
    array = create_mapped(tmp_path / "a.npy", (1000, 1000), np.float32)
    array[7, 7] = 3
    array.flush()
    assert np.load(tmp_path / "a.npy")[7, 7] == 3
    if hasattr(os, "posix_fallocate"):
        assert (tmp_path / "a.npy").stat().st_blocks * 512 >= array.nbytes


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs posix_fallocate")
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped.os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left"):
        create_mapped(tmp_path / "a.npy", (1000, 1000), np.float32)
    assert list(tmp_path.iterdir()) == []


def test_nothing_else_writes_through_a_map() -> None:
    package = Path(resight.__file__).parent
    creating = re.compile(r"""open_memmap\([^)]*["']w\+|np\.memmap\([^)]*["']w\+""")
    found = {path.name for path in package.rglob("*.py") if creating.search(path.read_text(encoding="utf-8"))}
    assert found == {"mapped.py"}

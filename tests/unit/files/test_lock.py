import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resight.errors import CollectionBusy, StorageError
from resight.files.lock import writer_lock

HOLDER = """
import sys, time
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from resight.files.lock import writer_lock
with writer_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_of_two_is_told_who_holds_the_lock_and_since_when(tmp_path: Path) -> None:
    with writer_lock(tmp_path):
        signed = json.loads((tmp_path / "writer.lock").read_text())
        with pytest.raises(CollectionBusy) as caught, writer_lock(tmp_path):
            pytest.fail("two writers at once")
    assert signed["pid"] == os.getpid()
    assert caught.value.actual == f"process {os.getpid()} on {signed['host']} has been writing since {signed['since']}"


def test_a_lock_is_free_after_its_block_even_when_that_failed(tmp_path: Path) -> None:
    with pytest.raises(KeyError), writer_lock(tmp_path):
        raise KeyError
    with writer_lock(tmp_path):
        pass


def test_two_collections_have_two_locks(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with writer_lock(tmp_path), writer_lock(tmp_path / "other"):
        pass


def test_another_process_holds_its_lock_until_it_is_killed(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", HOLDER, str(tmp_path), *sys.path]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(CollectionBusy, match=f"process {process.pid} on"), writer_lock(tmp_path):
            pytest.fail("two writers at once")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with writer_lock(tmp_path):
            pass


def test_a_holder_that_has_not_signed_yet_is_still_the_holder(tmp_path: Path) -> None:
    with writer_lock(tmp_path):
        (tmp_path / "writer.lock").write_text("")
        with pytest.raises(CollectionBusy, match="just started"), writer_lock(tmp_path):
            pytest.fail("two writers at once")


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot open"), writer_lock(tmp_path / "missing"):
        pytest.fail("locked nothing")


def test_a_lock_holds_on_a_full_disk_without_the_name_of_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "ftruncate", refuse)
    with writer_lock(tmp_path), pytest.raises(CollectionBusy, match="just started"), writer_lock(tmp_path):
        pytest.fail("two at once")
    with writer_lock(tmp_path):
        pass

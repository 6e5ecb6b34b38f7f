from pathlib import Path

import numpy as np
import pytest

from resight.audit.dedup.candidates import Candidates
from resight.audit.dedup.resume_log import ResumeLog
from resight.audit.dedup.verify import Finding, Registration
from resight.errors import StorageError

CANDIDATES = Candidates(np.array([[0, 1], [0, 2]], np.int32), np.array([False, True]))
FOUND = Finding(0, 1, True, 12, 30, 1.25, Registration(0.5, 0.25, 1.0, (0, 0, 0.5, 1), (0, 0, 1, 1)))


def test_a_log_goes_on_where_it_was_stopped(tmp_path):
    ResumeLog.open(tmp_path / "log", CANDIDATES, ("a", "b", "c")).add(1, [FOUND])
    again = ResumeLog.open(tmp_path / "log", CANDIDATES, ("a", "b", "c"))
    assert (again.done, again.findings) == (1, [FOUND])
    again.add(2, [])
    assert ResumeLog.open(tmp_path / "log", CANDIDATES, ("a", "b", "c")).done == 2


def test_other_images_begin_anew(tmp_path):
    ResumeLog.open(tmp_path / "log", CANDIDATES, ("a", "b", "c")).add(1, [FOUND])
    assert ResumeLog.open(tmp_path / "log", CANDIDATES, ("a", "b", "d")).done == 0


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    ResumeLog.open(tmp_path / "log", CANDIDATES, ("a",)).add(1, [FOUND])
    with (tmp_path / "log").open("a") as file:
        file.write('{"done": 2, "fou')
    again = ResumeLog.open(tmp_path / "log", CANDIDATES, ("a",))
    assert (again.done, again.findings) == (1, [FOUND])
    again.add(2, [FOUND])
    assert ResumeLog.open(tmp_path / "log", CANDIDATES, ("a",)).findings == [FOUND, FOUND]


def test_a_log_survives_a_disk_that_fails_while_it_is_opened_again(tmp_path, monkeypatch):
    ResumeLog.open(tmp_path / "log", CANDIDATES, ("a",)).add(1, [FOUND])
    written = Path.write_text

    def fail(path, text, *rest, **settings):
        written(path, text[:10], *rest, **settings)
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises((StorageError, OSError)):
        ResumeLog.open(tmp_path / "log", CANDIDATES, ("a",))
    monkeypatch.undo()
    assert ResumeLog.open(tmp_path / "log", CANDIDATES, ("a",)).findings == [FOUND]

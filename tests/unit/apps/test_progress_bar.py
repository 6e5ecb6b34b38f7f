"""The progress of commands where there is no terminal, and with -q."""

import pytest

from resight.apps import terminal
from resight.types import Skipped


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(terminal.verbosity, "level", terminal.NORMAL)
    return now


def test_without_a_terminal_a_line_comes_every_few_seconds(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal.progress("indexing\x1b[31m") as bar:
        for done in range(1, 41):
            clock[0] += 0.5
            bar(done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "indexing�[31m: 10 of 100, 2.0/s, 45.0 s left",
        "indexing�[31m: 20 of 100, 2.0/s, 40.0 s left",
        "indexing�[31m: 30 of 100, 2.0/s, 35.0 s left",
        "indexing�[31m: 40 of 100, 2.0/s, 30.0 s left",
    ]


def test_a_stage_that_restarts_counts_its_own_time(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress("reading") as bar:
        clock[0] += 60
        bar.restart("writing")
        clock[0] += 10
        bar(5, 0)
    assert capsys.readouterr().err == "writing: 5, 0.5/s\n"


def test_short_work_and_quiet_work_print_nothing(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal.progress("short") as bar:
        bar(1, 1)
    monkeypatch.setattr(terminal.verbosity, "level", terminal.QUIET)
    with terminal.progress("quiet") as bar:
        clock[0] += 60
        bar.rename("still quiet")
        bar(1, 2)
    terminal.note("a remark")
    terminal.print_skipped([Skipped("a.pdf", "a PDF")])
    assert capsys.readouterr().err == ""


def test_verbose_lists_every_skipped_file_and_details(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped = [Skipped(f"{number}.pdf", "a PDF") for number in range(30)]
    for level, lines in ((terminal.NORMAL, 21), (terminal.VERBOSE, 31)):
        monkeypatch.setattr(terminal.verbosity, "level", level)
        terminal.print_skipped(skipped)
        terminal.detail("time: 3 ms")
        assert len(capsys.readouterr().err.splitlines()) == lines

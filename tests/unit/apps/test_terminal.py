"""What the commands print, on a terminal and into a pipe."""

import io
import sys

import pytest
from rich.console import Console

from resight.apps import terminal
from resight.apps.cli import report
from resight.evaluate.table import Table

TABLE = Table(
    "title",
    ("variant", "ap"),
    (("first", "0.5000 ±0.100"), ("second", "0.4000 ±0.100"), ("third", "–")),
    ("a note",),
    marks={(0, 1): "best", (1, 1): "second"},
    absent={"third": "no weights\x1b[31m"},
)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        terminal, "console", lambda: Console(file=sys.stdout, force_terminal=True, color_system="standard", width=80)
    )


@pytest.mark.usefixtures("shell")
def test_marks_are_styles_of_the_figure_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_table(TABLE)
    shown = capsys.readouterr().out
    assert "\x1b[1m0.5000\x1b[0m ±0.100" in shown
    assert "\x1b[4m0.4000\x1b[0m ±0.100" in shown
    assert "bold: the best of its column" in shown


def test_a_pipe_gets_plain_text_without_a_legend(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_table(TABLE)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "bold" not in shown
    assert [line.split() for line in shown.splitlines()[1:5]] == [
        ["variant", "ap"], ["first", "0.5000", "±0.100"], ["second", "0.4000", "±0.100"], ["third", "–"]
    ]  # fmt: skip
    assert "Not measured:\n  third: no weights�[31m\n" in shown
    assert shown.endswith("  a note\n")


def test_the_words_before_a_bar_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with terminal.progress("evaluating") as progress:
        progress(1, 2)
        progress.restart("evaluating [ViT], 2 of 3")
        progress(2, 4)
    assert "evaluating [ViT], 2 of 3" in screen.getvalue()
    assert "2/4" in screen.getvalue()

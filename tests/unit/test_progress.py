"""Bars: one of the caller's, one in a notebook, or none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from resight import progress
from resight.progress import NotebookBar, follow, in_notebook, in_stages, open_bar


class Recorder:
    def __init__(self) -> None:
        self.seen: list[object] = []

    def __call__(self, done: int, total: int) -> None:
        self.seen.append((done, total))

    def rename(self, label: str) -> None:
        self.seen.append(label)

    restart = rename


def test_a_script_shows_nothing_and_a_caller_gets_its_own() -> None:
    assert not in_notebook()
    with follow(True, "indexing") as shown:
        assert shown is None
    own = Recorder()
    with follow(own, "indexing") as shown:
        assert shown is own
    with open_bar(True, "indexing") as bar:
        bar(1, 2)
        bar.restart("more")


def test_stages_restart_a_bar_once_each() -> None:
    bar = Recorder()

    @contextmanager
    def open_recorder(label: str) -> Iterator[Recorder]:
        bar.seen.append(label)
        yield bar

    with open_bar(open_recorder, "comparing") as opened:
        show = in_stages(opened)
        show("reading", 1, 2)
        show("reading", 2, 2)
        show("verifying", 1, 9)
    assert bar.seen == ["comparing", "reading", (1, 2), (2, 2), "verifying", (1, 9)]


def test_a_notebook_gets_a_bar_of_escaped_html_that_ends_as_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    published: list[dict[str, Any]] = []
    monkeypatch.setattr(shell.display_pub, "publish", lambda data, **how: published.append({"data": data, **how}))
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with follow(True, "<b>index") as shown:
        assert isinstance(shown, NotebookBar)
        shown(1, 4)
        shown(4, 4)
    pages = [one["data"]["text/html"] for one in published]
    assert 'value="1" max="4"' in pages[0] and "&lt;b&gt;index" in pages[0] and "<b>index" not in pages[0]
    assert [bool(one.get("update")) for one in published] == [False, True, True]  # one output, updated
    assert pages[-1].startswith("<small>&lt;b&gt;index: 4 in ")


def test_work_without_steps_leaves_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    with follow(True, "indexing") as shown:
        assert isinstance(shown, NotebookBar) and shown._handle is None

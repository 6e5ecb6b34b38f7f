"""How far long work is: a bar in a notebook, one of the caller's, or none.

Functions of Python take `progress`. True shows a bar in a notebook and nothing in a script; False shows nothing. The
command passes a function that opens a bar on the terminal. The notebook's bar is plain HTML that IPython updates in its
output; unlike the bars of Rich and tqdm, it needs no ipywidgets.
"""

import html
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

Progress = Callable[[int, int], None]  # done, total
EVERY = 0.2  # seconds between two updates of a notebook


class Bar(Protocol):
    """A bar of several stages: call it with the work done so far and the total."""

    def __call__(self, done: int, total: int) -> None: ...

    def rename(self, label: str) -> None:
        """Change the label; the bar continues."""

    def restart(self, label: str) -> None:
        """Change the label and count from zero."""


OpenBar = Callable[[str], AbstractContextManager[Bar]]  # takes a label


def open_bar(choice: bool | OpenBar, label: str) -> AbstractContextManager[Bar]:
    """The bar that the caller chose."""
    if callable(choice):
        return choice(label)
    return _open_notebook_bar(label) if choice and in_notebook() else nullcontext(Silent())


@contextmanager
def follow(choice: bool | Progress | None, label: str) -> Iterator[Progress | None]:
    """The function to call with the work done so far and the total; None if there is nothing to show."""
    if callable(choice):
        yield choice
    elif choice and in_notebook():
        with _open_notebook_bar(label) as bar:
            yield bar
    else:
        yield None


def in_stages(bar: Bar) -> Callable[[str, int, int], None]:
    """A function of stage, done and total, which shows one stage after the other in one bar."""
    shown = [""]

    def show(stage: str, done: int, total: int) -> None:
        if stage != shown[0]:
            shown[0] = stage
            bar.restart(stage)
        bar(done, total)

    return show


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which shows HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _open_notebook_bar(label: str) -> Iterator["NotebookBar"]:
    bar = NotebookBar(label)
    try:
        yield bar
    finally:
        bar.close()


class NotebookBar:
    """A bar below the cell that runs; when the work is done, a line with the number and the time remains."""

    def __init__(self, label: str) -> None:
        self._label, self._done, self._total = label, 0, 0
        self._opened = self._started = time.monotonic()
        self._shown = 0.0
        self._handle: Any = None

    def __call__(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        if time.monotonic() - self._shown >= EVERY:
            self._draw(self._describe())

    def rename(self, label: str) -> None:
        self._label = label

    def restart(self, label: str) -> None:
        self._label, self._done, self._total, self._started = label, 0, 0, time.monotonic()

    def close(self) -> None:
        """Replaces the bar by one line; a bar that was never shown leaves nothing."""
        if self._handle is not None:
            seconds = time.monotonic() - self._opened
            self._draw(f"<small>{html.escape(self._label)}: {self._done:,} in {seconds:.1f} s</small>")

    def _describe(self) -> str:
        rate = self._done / max(time.monotonic() - self._started, 1e-3)
        left = f", {(self._total - self._done) / rate:.0f} s left" if rate and self._total > self._done else ""
        share = f' value="{self._done}" max="{self._total}"' if self._total else ""  # of an iterator no total is known
        total = f" of {self._total:,}" if self._total else ""
        return (
            f"<div><small>{html.escape(self._label)}</small> <progress{share}></progress> "
            f"<small>{self._done:,}{total}, {rate:.1f}/s{left}</small></div>"
        )

    def _draw(self, text: str) -> None:
        show: Any = importlib.import_module("IPython.display")  # a notebook has it
        self._shown = time.monotonic()
        if self._handle is None:
            self._handle = show.display(show.HTML(text), display_id=True)
        else:
            self._handle.update(show.HTML(text))


class Silent:
    """A bar that shows nothing."""

    def __call__(self, done: int, total: int) -> None:
        pass

    def rename(self, label: str) -> None:
        pass

    def restart(self, label: str) -> None:
        pass

"""The progress of a command on stderr: a bar on a terminal, elsewhere a plain line every few seconds; none with -q."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from resight.progress import Bar, Silent

if TYPE_CHECKING:
    from rich.progress import Progress, Task
    from rich.text import Text

EVERY = 5.0  # seconds between two lines


@contextmanager
def open_bar(
    label: str, clean: Callable[[str], str], format_seconds: Callable[[float], str], quiet: bool
) -> Iterator[Bar]:
    """A bar with rate and time left; `clean` makes labels safe for a terminal."""
    if quiet:
        yield Silent()
    elif sys.stderr.isatty():
        with _open_rich() as bar:
            yield _RichBar(bar, label, clean)
    else:
        yield _Lines(label, clean, format_seconds)


class _Lines:
    """A line every few seconds, so that a log shows that the work goes on; short work prints none."""

    def __init__(self, label: str, clean: Callable[[str], str], format_seconds: Callable[[float], str]) -> None:
        self._label = label
        self._clean, self._format_seconds = clean, format_seconds
        self._started = self._printed = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._printed < EVERY:
            return
        self._printed = now
        rate = done / max(now - self._started, 1e-3)
        of = f" of {total:,}" if total else ""
        left = f", {self._format_seconds((total - done) / rate)} left" if rate and total > done else ""
        print(f"{self._clean(self._label)}: {done:,}{of}, {rate:.1f}/s{left}", file=sys.stderr, flush=True)

    def rename(self, label: str) -> None:
        self._label = label

    def restart(self, label: str) -> None:
        self._label, self._started = label, time.monotonic()


class _RichBar:
    def __init__(self, bar: "Progress", label: str, clean: Callable[[str], str]) -> None:
        self._bar = bar
        self._clean = clean
        self._task = bar.add_task(clean(label), total=None)

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def rename(self, label: str) -> None:
        self._bar.update(self._task, description=self._clean(label))

    def restart(self, label: str) -> None:
        self._bar.reset(self._task, description=self._clean(label), total=None)


def _open_rich() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: "Task") -> "Text":
            return Text(f"{task.speed:.1f}/s" if task.speed else "–/s")

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )

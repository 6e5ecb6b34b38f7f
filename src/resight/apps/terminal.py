"""What the commands print: tables, remarks and readable numbers for people, JSON for programs.

Functions import Rich when they use it: every command imports this module, also to show its help.
"""

import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from resight.files.atomic import write_atomic
from resight.files.inside import DECEPTIVE
from resight.files.remote import to_url
from resight.progress import Bar, Silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task
    from rich.text import Text

    from resight.types import Skipped

EVERY = 5.0  # seconds between two lines of progress
SHOWN = 20  # skipped files to list before counting the rest
QUIET, NORMAL, VERBOSE = -1, 0, 1


class Verbosity:
    """How much a command says besides its answer; -q and -v set it."""

    level = NORMAL


verbosity = Verbosity()


def console() -> "Console":
    """Standard output; into a pipe or a file, long lines stay whole."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 240)


def echo(*values: object, file: TextIO | None = None) -> None:
    """`print` for commands: text from files (names, attributes, messages) never steers the terminal."""
    print(*("\n".join(map(clean, str(value).split("\n"))) for value in values), file=file)


def print_json(value: Any) -> None:
    """JSON leaves most letters as they are, and escapes those that a terminal would obey."""
    _print_escaped(json.dumps(value, indent=1, default=plain, ensure_ascii=False))


def print_json_line(value: Any) -> None:
    """One line of JSON Lines, at once, for programs that read while the command runs."""
    _print_escaped(json.dumps(value, default=plain, ensure_ascii=False))
    sys.stdout.flush()


def _print_escaped(text: str) -> None:
    print(DECEPTIVE.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text))


def plain(value: Any) -> Any:
    """Dataclasses (without fields that `repr` omits), paths, mappings, sets and arrays as values that JSON can hold."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return to_url(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int] = (),
    styles: Mapping[tuple[int, int], tuple[int, str]] | None = None,
) -> None:
    """`right`: columns to align right. `styles`: (row, column) → how many leading letters get which style."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(clean(title)),
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=None,
        pad_edge=False,
    )
    for column, heading in enumerate(columns):
        table.add_column(heading, justify="right" if column in right else "left", overflow="fold")
    for number, row in enumerate(rows):
        cells = [Text(clean(cell)) for cell in row]
        for column, cell in enumerate(cells):
            letters, style = (styles or {}).get((number, column), (0, ""))
            cell.stylize(style, 0, letters)
        table.add_row(*cells)
    console().print(table)


def print_skipped(skipped: Sequence["Skipped"]) -> None:
    """On stderr, so that a pipe gets only the answer; all of them with -v, none with -q."""
    shown = {QUIET: 0, VERBOSE: len(skipped)}.get(verbosity.level, SHOWN)
    for item in skipped[:shown]:
        print(f"skipped {clean(item.path)}: {clean(item.reason)}", file=sys.stderr)
    if len(skipped) > shown > 0:
        print(f"… and {len(skipped) - shown} more; -v or --json lists all", file=sys.stderr)


def note(*values: object) -> None:
    """A remark on stderr, which -q leaves out."""
    if verbosity.level != QUIET:
        echo(*values, file=sys.stderr)


def detail(*values: object) -> None:
    """A remark on stderr that only -v shows."""
    if verbosity.level == VERBOSE:
        echo(*values, file=sys.stderr)


def clean(text: str) -> str:
    """Replaces unprintable letters: file names may hold escape sequences, which a terminal must not obey.

    Unprintable are also marks that change the direction of writing, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def write_text(path: Path, text: str) -> None:
    with write_atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def progress(label: str) -> Iterator[Bar]:
    """A bar with rate and time left on a terminal, elsewhere a line every few seconds; nothing with -q."""
    if verbosity.level == QUIET:
        yield Silent()
    elif sys.stderr.isatty():
        with _open_rich() as bar:
            yield _RichBar(bar, clean(label))
    else:
        yield _Lines(label)


def format_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def format_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class _Lines:
    """A line every few seconds, so that a log shows that the work goes on; short work prints none."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = self._printed = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._printed < EVERY:
            return
        self._printed = now
        rate = done / max(now - self._started, 1e-3)
        of = f" of {total:,}" if total else ""
        left = f", {format_seconds((total - done) / rate)} left" if rate and total > done else ""
        print(f"{clean(self._label)}: {done:,}{of}, {rate:.1f}/s{left}", file=sys.stderr, flush=True)

    def rename(self, label: str) -> None:
        self._label = label

    def restart(self, label: str) -> None:
        self._label, self._started = label, time.monotonic()


class _RichBar:
    def __init__(self, bar: "Progress", label: str) -> None:
        self._bar = bar
        self._task = bar.add_task(label, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def rename(self, label: str) -> None:
        self._bar.update(self._task, description=clean(label))

    def restart(self, label: str) -> None:
        self._bar.reset(self._task, description=clean(label), total=None)


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

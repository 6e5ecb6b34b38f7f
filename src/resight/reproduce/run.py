"""What a kind is given to measure a table with: data folders, and functions that run in processes of their own.

`Run.isolate` runs one function in a child process, so that whatever it does (raise, exhaust the memory, crash) leaves
the others alone: its answer is a dict, or NotRun with the reason in one line. Answers are remembered in the folder of
the run, so that an interrupted run continues where it stopped. An answer is used again for the same function, arguments
and version of resight, and if the files and folders that the arguments name have not changed (a folder: its first
level). NotRun is never remembered.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint

WORKER = "resight.reproduce.worker"
CACHE_BYTES = 4 * 10**9
ENTRIES = 10_000  # of a folder, that a fingerprint looks at
SIGNALS = {  # why a process died
    "SIGKILL": "out of memory (killed)",
    "SIGSEGV": "crashed (segmentation fault); a lack of memory can cause this",
    "SIGBUS": "crashed (bus error); a lack of memory or disk space can cause this",
    "SIGABRT": "crashed (aborted)",
    "SIGTERM": "stopped (terminated)",
}


@dataclass(frozen=True)
class Measured:
    """A figure of ours, with its 95 % interval: a metric as a fraction, a fact in its own unit."""

    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    queries: Mapping[str, float] = field(default_factory=dict, repr=False)  # value of each query, to compare in pairs


@dataclass(frozen=True)
class NotRun:
    reason: str  # one line


Cell = Measured | NotRun


@dataclass(frozen=True)
class DataFolders:
    """Where data sets are: `named` by --data NAME=PATH, others in a folder of their name below `root`.

    `alone`: the only data set that is needed; it may be `root` itself.
    """

    root: Path | None = None
    named: Mapping[str, Path] = field(default_factory=dict)
    alone: str = ""

    def find(self, name: str) -> Path:
        """The folder of a data set; InputError if it was not given or does not exist."""
        if name in self.named:
            path = self.named[name]
        elif self.root is None:
            raise InputError(
                f"the data set {name} was not given",
                expected=f"--data {name}=PATH, or --data ROOT with the folder ROOT/{name}",
                actual=f"--data for {', '.join(self.named)}" if self.named else "no --data",
                fix=f"add --data {name}=PATH; `resight data list` describes the data sets",
            )
        else:
            below = self.root / name
            path = self.root if name == self.alone and not below.exists() else below
        if not path.exists():
            raise InputError(
                f"there is no data set {name} at {path}",
                expected="an existing folder or file",
                actual="nothing there",
                fix=f"give --data {name}=PATH; `resight data list` describes the data sets",
            )
        return path


class Run:
    """One table being measured."""

    def __init__(
        self,
        folder: Path,
        data: DataFolders | None = None,
        *,
        overrides: tuple[str, ...] = (),
        cache_folder: Path | None = None,
        cache_bytes: int = CACHE_BYTES,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.folder = folder  # of this table's answers
        self.overrides = overrides  # of the user (--set), for every experiment
        self.cache_folder = cache_folder  # of features; None: no cache
        self.cache_bytes = cache_bytes  # its limit
        self.data = data or DataFolders()
        self._report = report

    def root(self, data_set: str) -> Path:
        """The folder of a data set; InputError if the user did not give it or it does not exist."""
        return self.data.find(data_set)

    def report(self, text: str) -> None:
        """Show what is being done."""
        if self._report:
            self._report(text)

    def isolate(self, function: str, arguments: dict[str, Any], remember: bool = True) -> dict[str, Any] | NotRun:
        """`function` ("package.module:name") called with **arguments in a child process; both sides are JSON.

        A function reports its progress by `resight.reproduce.worker.report`. An answer that is remembered is returned
        without running the function; with `remember=False` this is left to the caller (`recall`, `remember`).
        """
        key = self.make_key(function, arguments)  # before it runs: of the files as they are now
        known = self.recall(key) if remember else None
        if known is not None:
            return known
        answer = _run_child(function, arguments, self._path(key), self.report)
        if remember and not isinstance(answer, NotRun):
            self.remember(key, answer)
        return answer

    def make_key(self, function: str, arguments: Mapping[str, Any]) -> str:
        """What an answer is remembered by."""
        return make_key(function, arguments, self.folder)

    def recall(self, key: str) -> dict[str, Any] | None:
        """The answer of an earlier run; None if there is none, or if files have changed."""
        return _read(self._path(key))

    def remember(self, key: str, answer: Mapping[str, Any]) -> None:
        path = self._path(key)
        with write_atomic(path, f"cannot keep answers in {self.folder}", "choose another folder with --out") as new:
            new.write_text(json.dumps(answer), encoding="utf-8")

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def make_key(function: str, arguments: Mapping[str, Any], folder: Path) -> str:
    """A name for an answer: it changes with function, arguments, version and the files that the arguments name.

    `folder` is that of the answers: it does not count as a change of a folder that holds it.
    """
    text = json.dumps([function, arguments], sort_keys=True)
    files = [_describe_path(Path(value), folder.absolute()) for value in _list_paths(arguments)]
    return fingerprint(repr((text, files, metadata.version("resight"))), 32)


def describe_death(code: int, last_words: str) -> str:
    """Why a child process ended without an answer, in one line."""
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return SIGNALS.get(name, f"crashed ({name})")
    return f"ended with exit code {code}" + (f": {last_words}" if last_words else "")


def _run_child(
    function: str, arguments: dict[str, Any], path: Path, report: Callable[[str], None]
) -> dict[str, Any] | NotRun:
    asked, answered, log = (path.with_name(f"{path.stem}.{part}") for part in ("asked", "answered", "log"))
    with write_atomic(asked, f"cannot write to {path.parent}", "choose another folder with --out") as new:
        new.write_text(json.dumps({"function": function, "arguments": arguments}), encoding="utf-8")
    try:
        code = _wait(asked, answered, log, report)
        answer = _read(answered)
        if answer is None:
            return NotRun(describe_death(code, _last_line(log)))
        return answer["answer"] if "answer" in answer else NotRun(str(answer["reason"]))
    finally:
        for file in (asked, answered, log):
            file.unlink(missing_ok=True)


def _wait(asked: Path, answered: Path, log: Path, report: Callable[[str], None]) -> int:
    """Run the worker to its end; its lines on stdout are progress. Whatever ends the wait also ends the worker."""
    words = [sys.executable, "-m", WORKER, str(asked), str(answered)]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            words,
            stdin=subprocess.PIPE,  # held open: the worker ends when this process does
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches this process alone, which then stops the worker
        ) as child,
        _stopping(child),
    ):
        reader = threading.Thread(target=_forward, args=(child, report), daemon=True)
        reader.start()
        code = child.wait()
        reader.join()
        return code


@contextlib.contextmanager
def _stopping(child: "subprocess.Popen[str]") -> Iterator[None]:
    try:
        yield
    finally:
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL) if hasattr(os, "killpg") else child.kill()
            child.wait()


def _forward(child: "subprocess.Popen[str]", report: Callable[[str], None]) -> None:
    for line in child.stdout or ():
        report(line.rstrip("\n"))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = load_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _last_line(log: Path) -> str:
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")
    return ""


def _list_paths(value: Any) -> Iterator[str]:
    """Every text in `value` that could be the path of a file."""
    if isinstance(value, str):
        if "/" in value or "\\" in value or "." in value:
            yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _list_paths(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _list_paths(part)


def _describe_path(path: Path, answers: Path) -> str:
    """Size and time of a file, or of the entries of a folder."""
    try:
        if path.is_dir():
            entries = sorted(path.absolute().iterdir())[:ENTRIES]
            others = [entry for entry in entries if entry != answers and entry not in answers.parents]
            return repr([(entry.name, *_describe_file(entry)) for entry in others])
        return repr(_describe_file(path))
    except (OSError, ValueError):
        return ""


def _describe_file(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns

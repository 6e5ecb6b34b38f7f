"""The child process of `Run.isolate`: a JSON file with a function and its arguments in, its answer as JSON out.

    python -m resight.reproduce.worker ASKED ANSWERED

ANSWERED holds {"answer": …}, or {"reason": …} if the function failed. Lines on stdout are progress; whatever else the
function prints goes to stderr.
"""

import contextlib
import importlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resight.errors import ResightError
from resight.files.atomic import write_atomic

FIRST_TO_KILL = "500"  # of -1000 to 1000: the kernel ends the worker before the command that waits for it
NO_MEMORY = ("can't allocate memory", "out of memory", "bad_alloc", "bad allocation", "failed to allocate memory")


def report(text: str) -> None:
    """Show a line of progress; also works outside of a worker, where nothing is shown."""
    if _progress:
        print(" ".join(text.split()), file=_progress[0], flush=True)


def main(asked: Path, answered: Path) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _be_killed_first()
    _progress.append(sys.stdout)
    question = json.loads(asked.read_text(encoding="utf-8"))
    with contextlib.redirect_stdout(sys.stderr):
        result = answer(question["function"], question["arguments"])
    with write_atomic(answered) as new:
        new.write_text(json.dumps(result), encoding="utf-8")


def answer(function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """{"answer": what the function returns}, or {"reason": why it failed}."""
    try:
        result = find(function)(**arguments)
        json.dumps(result)  # an answer that JSON cannot hold is an error of the function, too
        if not isinstance(result, dict):
            raise TypeError(f"{function} returned {type(result).__name__}, not a dict")
        return {"answer": result}
    except Exception as error:
        return {"reason": describe(error)}


def find(function: str) -> Callable[..., Any]:
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def describe(error: BaseException) -> str:
    """An exception in one line: problem and fix, or type and message."""
    if isinstance(error, ResightError):
        return " ".join("; ".join(part for part in (error.problem, error.fix) if part).split())
    message = " ".join(str(error).split())
    if is_memory(error):
        return f"out of memory ({message or type(error).__name__})"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def is_memory(error: BaseException) -> bool:
    """Whether an error means that there was no memory; libraries have classes of their own for it."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(words in text for words in NO_MEMORY)


def _end_with_parent() -> None:
    """The parent holds the other end of stdin: it closes when the parent ends, however it ends."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdin.read()
    os._exit(1)


def _be_killed_first() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_KILL)


_progress: list[Any] = []  # the stream for progress, in a worker

if __name__ == "__main__":
    # As `-m` the module has another name: the functions that it runs import it under its own.
    importlib.import_module("resight.reproduce.worker").main(Path(sys.argv[1]), Path(sys.argv[2]))

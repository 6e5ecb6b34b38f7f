"""Processes that start at once: forked from one that has imported the library, and done nothing else.

A life of a writer or a service between two power cuts is short; importing everything for each of them would take most
of the time. What a process prints is read line by line, as far as it came.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

LIBRARY = ["chaos_parts.lives"]


class WarmProcess:
    def __init__(self, work: Callable[..., None], *words: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(LIBRARY)
        ours, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(theirs, work, words))
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the process that is forked imports LIBRARY by itself
        try:
            self._process.start()
        finally:
            os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)
        theirs.close()
        self._lines = os.fdopen(os.dup(ours.fileno()), encoding="utf-8", errors="replace")
        ours.close()

    def read_line(self) -> str:
        return self._lines.readline()

    def read_rest(self) -> list[str]:
        """Until the process has ended."""
        return self._lines.readlines()

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def terminate(self) -> None:
        self._process.terminate()
        self.wait()

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode or 0

    def close(self) -> None:
        if self._process.is_alive():
            self.kill()
        self._lines.close()


def _run(pipe: Connection, work: Callable[..., None], words: tuple[Any, ...]) -> None:
    os.dup2(pipe.fileno(), 1)
    if "RESIGHT_CHAOS_ERRORS" not in os.environ:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", buffering=1, closefd=False)
    work(*words)

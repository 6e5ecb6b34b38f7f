"""Runs the compaction of a collection in a subprocess: start, poll, stop.

A thread of the service would delay searches: its Python code holds the interpreter lock, and LanceDB's threads keep
the priority that they started with. The subprocess (`python -m resight.apps.service.jobs.compaction COLLECTION`) runs
at low priority. Killing it loses nothing: each change to the store is atomic, and parts of an index are rebuilt.
"""

import contextlib
import os
import subprocess
import sys
import time
from typing import Protocol

from resight.apps.service.executor import NICE
from resight.apps.service.settings import make_subprocess_env
from resight.collection import LOCAL, Collection
from resight.errors import CollectionBusy, CollectionError, ResightError
from resight.files.remote import to_url

DONE, FAILED, BUSY = 0, 1, 75  # exit codes


class Compactor(Protocol):
    @property
    def is_busy(self) -> bool:
        """True from `start` until `poll` has returned the duration or raised."""
        ...

    def start(self) -> None:
        """Must not be called while it is busy."""
        ...

    def poll(self) -> float | None:
        """The duration in seconds when it is done, else None. Raises CollectionBusy or CollectionError if it failed."""
        ...

    def stop(self) -> None:
        """Abort."""
        ...


class CompactionProcess:
    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._process: subprocess.Popen[str] | None = None
        self._begin: float | None = None

    @property
    def is_busy(self) -> bool:
        return self._begin is not None

    def start(self) -> None:
        begin = time.monotonic()
        if self._collection.engine != LOCAL:  # this process owns the connection to the cluster
            self._collection.tidy()
        else:
            self._process = self._start_process()
        self._begin = begin

    def poll(self) -> float | None:
        if self._begin is None or (self._process is not None and self._process.poll() is None):
            return None
        seconds, process = time.monotonic() - self._begin, self._process
        self._begin = self._process = None
        if process is not None:
            _check(process.returncode, process.communicate()[1])
        return seconds

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._begin = self._process = None

    def _start_process(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", __name__, to_url(self._collection.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=make_subprocess_env(),
            start_new_session=True,  # Ctrl-C in the terminal interrupts the service alone
        )


def _check(code: int, errors: str) -> None:
    if code == BUSY:
        raise CollectionBusy("another process writes to the collection")
    if code != DONE:
        raise CollectionError("the compaction failed", actual=errors.strip()[-500:] or f"exit code {code}")


def main() -> int:
    with contextlib.suppress(AttributeError, OSError):  # not every system has priorities
        os.nice(NICE)
    from resight.collection import open_collection  # only now: threads inherit the current priority

    try:
        open_collection(sys.argv[1], must_exist=True).tidy()
    except CollectionBusy:
        return BUSY
    except ResightError as error:
        print(error, file=sys.stderr)
        return FAILED
    return DONE


if __name__ == "__main__":
    sys.exit(main())

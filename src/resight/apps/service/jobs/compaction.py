"""One process that tidies a collection: `python -m resight.apps.service.jobs.compaction COLLECTION`.

All of it steps back behind searches. Where it is killed, nothing is lost: a change to the store happens or does not,
and a part of an index is made again.

Who has a collection tidied: started, asked whether it is done, stopped.

It is done by a process of its own (apps/service/tidying.py). A thread of the service would hold up searches for as long
as it takes: its Python code has the interpreter, and the threads of LanceDB keep the priority that they began with.
"""

import contextlib
import os
import subprocess
import sys
import time
from typing import Protocol

from resight.apps.service.executor import NICE
from resight.apps.service.subprocess_env import choose_environment
from resight.collection import Collection
from resight.collection.build_pipeline import LOCAL
from resight.errors import CollectionBusy, CollectionError, ResightError
from resight.files.remote import to_url

DONE, FAILED, BUSY = 0, 1, 75  # exit codes


def main() -> int:
    with contextlib.suppress(AttributeError, OSError):  # not everywhere
        os.nice(NICE)
    from resight.collection import open_collection  # only now: threads begin with the priority that there is

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


class Tidier(Protocol):
    @property
    def is_busy(self) -> bool:
        """Whether it was started, and `poll` has not told yet how it ended."""
        ...

    def start(self) -> None:
        """Not to be called while it is busy."""
        ...

    def poll(self) -> float | None:
        """The seconds that it took, when it is done; None before. CollectionBusy or CollectionError where it failed."""
        ...

    def stop(self) -> None:
        """Leave it unfinished."""
        ...


class TidyingProcess:
    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._process: subprocess.Popen[str] | None = None
        self._begin: float | None = None

    @property
    def is_busy(self) -> bool:
        return self._begin is not None

    def start(self) -> None:
        begin = time.monotonic()
        if self._collection.engine != LOCAL:  # the connection to the cluster is this process's
            self._collection.tidy()
        else:
            self._process = self._start_process()
        self._begin = begin

    def poll(self) -> float | None:
        if self._begin is None or (self._process is not None and self._process.poll() is None):
            return None
        took, process = time.monotonic() - self._begin, self._process
        self._begin = self._process = None
        if process is not None:
            _check(process.returncode, process.communicate()[1])
        return took

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
            env=choose_environment(),
            start_new_session=True,  # an interrupt from the terminal is for the service alone
        )


def _check(code: int, told: str) -> None:
    if code == BUSY:
        raise CollectionBusy("somebody else writes to it")
    if code != DONE:
        raise CollectionError("it could not be tidied", actual=told.strip()[-500:] or f"exit code {code}")

"""Who has a collection tidied: started, asked whether it is done, stopped.

It is done by a process of its own (apps/service/tidying.py). A thread of the service would hold up searches for as long
as it takes: its Python code has the interpreter, and the threads of LanceDB keep the priority that they began with.
"""

import logging
import subprocess
import sys
import time
from typing import Protocol

from resight.apps.service import tidying
from resight.apps.service.environment import choose_environment
from resight.collection import Collection
from resight.collection.engines import LOCAL
from resight.places import to_url

log = logging.getLogger("resight.service.jobs")


class Tidier(Protocol):
    def start(self) -> None:
        """Not to be called again before `poll` has told that it is done."""
        ...

    def poll(self) -> float | None:
        """The seconds that it took, once, when it is done; None before."""
        ...

    def stop(self) -> None:
        """Leave it unfinished."""
        ...


class TidyingProcess:
    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._process: subprocess.Popen[str] | None = None
        self._begin: float | None = None

    def start(self) -> None:
        self._begin = time.monotonic()
        if self._collection.engine != LOCAL:  # the connection to the cluster is this process's
            self._collection.tidy()
            return
        self._process = subprocess.Popen(
            [sys.executable, "-m", tidying.__name__, to_url(self._collection.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=choose_environment(),
            start_new_session=True,  # an interrupt from the terminal is for the service alone
        )

    def poll(self) -> float | None:
        if self._begin is None or (self._process is not None and self._process.poll() is None):
            return None
        took, self._begin = time.monotonic() - self._begin, None
        process, self._process = self._process, None
        if process is not None:
            self._tell(process.returncode, process.communicate()[1])
        return took

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _tell(self, code: int, why: str) -> None:
        if code == tidying.BUSY:
            log.info("%s is tidied later: somebody else writes to it", self._collection.path)
        elif code != tidying.DONE:
            log.warning("%s could not be tidied: %s", self._collection.path, why.strip()[-500:] or f"exit code {code}")

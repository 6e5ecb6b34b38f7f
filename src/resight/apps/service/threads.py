"""How many threads the libraries below may start for one piece of work, so that they do not multiply with ours."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController

NICE = 10


def limit_threads(count: int = 1) -> None:
    """So many threads for BLAS and OpenMP in the thread that calls this, and for OpenCV and torch in the process.

    Searches run side by side; more threads below them than there are cores would wait for each other.
    """
    controller = ThreadpoolController()
    for api in ("blas", "openmp"):
        controller.limit(limits=count, user_api=api)
    if cv2 := sys.modules.get("cv2"):
        cv2.setNumThreads(count)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)


class Lending:
    """All cores for the sums of a search that runs alone.

    Of all libraries, BLAS alone takes another number of threads at no cost; OpenCV starts them anew.
    """

    def __init__(self, each: int, alone: int) -> None:
        """Threads of BLAS: `each` with none or several at work, `alone` with one."""
        self._each, self._alone = each, alone
        self._count, self._working = each, 0
        self._lock = threading.Lock()
        self._blas: ThreadpoolController | None = None

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def _change(self, difference: int) -> None:
        with self._lock:
            self._working += difference
            count = self._alone if self._working == 1 else self._each
            if count == self._count:
                return
            self._count = count
            if self._blas is None:  # the libraries are loaded by now
                self._blas = ThreadpoolController().select(user_api="blas")
            set_threads(self._blas, count)


def set_threads(blas: ThreadpoolController, count: int) -> None:
    """For the whole process, whichever thread calls this."""
    for library in blas.lib_controllers:
        if hasattr(library, "clear_controlling_thread"):  # it listens to one thread only: now to this one
            library.clear_controlling_thread(force=True)
        library.set_num_threads(count)


def step_back() -> None:
    """Let searches go first: what the calling thread does, and the threads that it starts, may take longer."""
    if sys.platform == "linux":  # elsewhere a priority is the whole process's
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)

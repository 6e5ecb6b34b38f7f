"""How many threads the libraries below may start for one piece of work, so that they do not multiply with ours."""

import os
import sys
import threading

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


def step_back() -> None:
    """Let searches go first: what the calling thread does, and the threads that it starts, may take longer."""
    if sys.platform == "linux":  # elsewhere a priority is the whole process's
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)

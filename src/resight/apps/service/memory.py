"""Memory that a search has freed: kept for the next one, and given back to the system before it becomes much.

glibc keeps what threads free in up to eight pools a core. Where many threads work on large arrays now and then, that is
several times what is in use. Where all of it goes back at once, every search fetches a hundred megabytes anew, page by
page, which was a third of the time of describing its image. So there are few pools, each keeps what one search needs,
and every so often all that is free goes back. Elsewhere (musl, macOS, Windows) nothing is set.
"""

import ctypes
import sys
import threading
import time
from typing import Any

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, ARENA_MAX = -1, -2, -3, -8  # of mallopt(3)
POOLS = 2
LARGE = 2**25  # bytes, the most that glibc accepts: larger pieces come from the system, and go back when they are freed
KEPT, SPARE = 2**28, 2**26  # bytes that a pool may hold unused, and that it takes and keeps at the least
EVERY = 30.0  # seconds


def bound_freed_memory(every: float = EVERY) -> bool:
    """Before the threads of this process start; false where it cannot be done."""
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "mallopt"):
        return False
    settings = ((ARENA_MAX, POOLS), (MMAP_THRESHOLD, LARGE), (TRIM_THRESHOLD, KEPT), (TOP_PAD, SPARE))
    accepted = [library.mallopt(option, value) for option, value in settings]
    threading.Thread(target=_give_back, args=(library, every), name="memory", daemon=True).start()
    return all(accepted)


def _give_back(library: Any, every: float) -> None:
    while True:
        time.sleep(every)
        library.malloc_trim(0)

"""Decoding in protected processes: for the service, and for every image that a command reads.

`sandboxed` makes `image_files` decode in such processes for as long as a command runs; a library call decodes in its
own process unless its caller passes another reader, or the image comes from the network. RESIGHT_SANDBOX=off switches
it off for images that are trusted and need more time or memory than the limits allow. Importing this package loads
nothing else.
"""

import atexit
import contextlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resight.data.sandbox.processes import Sandbox

VARIABLE = "RESIGHT_SANDBOX"
MOST_PROCESSES = 16

_lock = threading.Lock()
_is_wanted = False
_shared: "Sandbox | None" = None  # kept for the next command of this process; its processes end with this one
_owner = 0  # the process that made it: after a fork, two must not talk to the same decode process


@contextlib.contextmanager
def sandboxed() -> Iterator[None]:
    """Within, `find_shared` returns a sandbox."""
    global _is_wanted
    before = _is_wanted
    _is_wanted = _is_allowed()
    try:
        yield
    finally:
        _is_wanted = before


def find_shared(always: bool = False) -> "Sandbox | None":
    """The sandbox of this process, whose processes start with the first images; None outside of `sandboxed`.

    With `always`, for images from the network: outside of it too; None only if the variable switches it off.
    """
    global _shared, _owner
    if not (_is_wanted or (always and _is_allowed())):
        return None
    with _lock:
        if _shared is None or _owner != os.getpid():
            from resight.data.sandbox.processes import Limits, Sandbox

            _owner = os.getpid()
            _shared = Sandbox(min(os.cpu_count() or 1, MOST_PROCESSES), Limits())
            atexit.register(_shared.close)
        return _shared


def _is_allowed() -> bool:
    return os.environ.get(VARIABLE, "").lower() not in ("off", "0")

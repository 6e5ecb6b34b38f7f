"""What a decode process gives up before it sees a byte from elsewhere (`protect`).

In order: the network, by a namespace without interfaces; the user, where the process runs as root; memory, processor
time, files, processes and core dumps, by hard limits; being traced or dumped; outliving its parent; gaining privileges;
and nearly all system calls (`seccomp`). Modules must be loaded before, since no file can be opened afterwards.

Each step that the system does not offer (another operating system, an old kernel, the policy of a container) is left
out; `protect` returns the names of those that hold.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

from resight.data.sandbox import seccomp

if sys.platform != "win32":
    import resource  # now: another user may not be able to read the folder that it is in

NOBODY = 65534  # user and group that own no files
BASE_MEMORY = 640 * 2**20  # bytes of address space that Python and its libraries may map beside the data
STREAMS = 3  # descriptors: standard input, output and error
SET_PARENT_DEATH_SIGNAL, SET_DUMPABLE, SET_NO_NEW_PRIVILEGES = 1, 4, 38  # operations of prctl
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # flags of unshare


def protect(memory: int, processor_seconds: int, parent: int, threads: bool = False) -> tuple[str, ...]:
    """Apply every protection that this system offers.

    `parent` is the process that this one must not outlive; `threads`: whether this one may start threads.
    """
    steps: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("no network", leave_network),
        ("other user", become_nobody),
        ("limits", lambda: limit_resources(memory, processor_seconds, threads)),
        ("no dump", lambda: control(SET_DUMPABLE, 0)),
        ("ends with parent", lambda: end_with(parent)),  # after the change of user, which would cancel it
        ("no new privileges", lambda: control(SET_NO_NEW_PRIVILEGES, 1)),
        ("system calls", lambda: seccomp.install(threads)),
    )
    return tuple(name for name, step in steps if step())


def leave_network() -> bool:
    """Move to a network without interfaces; an ordinary user needs a user namespace for that."""
    if sys.platform != "linux":
        return False
    flags = NEW_NETWORK if os.geteuid() == 0 else NEW_USER | NEW_NETWORK
    return bool(ctypes.CDLL(None).unshare(flags) == 0)


def become_nobody() -> bool:
    """Give up root for good; False for an ordinary user, who cannot change to another one."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return False
    try:
        os.setgroups([])
        os.setgid(NOBODY)  # as root, these two set the saved ids, too
        os.setuid(NOBODY)
    except OSError:  # a user namespace without these ids
        return False
    return True


def limit_resources(memory: int, processor_seconds: int, threads: bool = False) -> bool:
    """Hard limits: what this process may not raise again."""
    if sys.platform == "win32":
        return False
    limits = {
        "RLIMIT_DATA": memory,
        "RLIMIT_AS": BASE_MEMORY + memory,
        "RLIMIT_CPU": processor_seconds,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_NPROC": 0,
        "RLIMIT_NOFILE": STREAMS,
    }
    if threads and sys.platform == "linux":  # which counts them as processes: the filter of system calls refuses those
        del limits["RLIMIT_NPROC"]
    held = True
    for name, limit in limits.items():
        try:
            kind = getattr(resource, name)
            _, most = resource.getrlimit(kind)
            value = limit if most == resource.RLIM_INFINITY else min(limit, most)
            resource.setrlimit(kind, (value, value))
        except (AttributeError, OSError, ValueError):  # macOS refuses some of them
            held = False
    return held


def end_with(parent: int) -> bool:
    """Have the kernel kill this process when the thread that started it ends; end now if that is gone already."""
    held = control(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL) if sys.platform == "linux" else False
    if sys.platform == "linux" and os.getppid() != parent:
        raise SystemExit(0)
    return held


def control(operation: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    zero = ctypes.c_ulong(0)
    return bool(ctypes.CDLL(None).prctl(operation, ctypes.c_ulong(value), zero, zero, zero) == 0)

"""A filter of system calls for a process that only computes: Linux's seccomp, on x86-64 and aarch64.

`install` allows the few calls that a decoder needs once all its modules are loaded: to read and write descriptors that
are open already, to allocate memory that is not executable, to look at the clock, to exit. Every other call fails with
EPERM: opening a file, any socket, starting a program, process or thread, sending a signal, tracing, mounting, io_uring.
A process cannot remove its filter. A call from another architecture's table kills the process. A process that decodes
HEIC may start threads, which have the same filter: libde265 cannot do without.
"""

import ctypes
import errno
import platform
import struct
import sys
from typing import NamedTuple

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM  # what a filter returns
UNKNOWN = 0x00050000 | errno.ENOSYS  # clone3 hides its flags behind a pointer: the C library then uses clone instead
LOAD, IF_EQUAL, IF_SET, RETURN = 0x20, 0x15, 0x45, 0x06  # classic BPF instructions, on 32-bit words
# Offsets in the description of a call (low word, little endian).
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, THIRD_ARGUMENT = 0, 4, 16, 32
EXECUTABLE = 0x4  # PROT_EXEC, in the third argument of mmap and mprotect
THREAD = 0x10000  # CLONE_THREAD, in the first argument of clone
SET_FILTER, ALL_THREADS = 1, 1  # arguments of the call `seccomp`


class Calls(NamedTuple):
    """The system calls of one architecture, by number."""

    architecture: int  # AUDIT_ARCH_…
    seccomp: int
    allowed: tuple[int, ...]
    mappings: tuple[int, ...]  # mmap and mprotect: allowed without EXECUTABLE
    clone: int
    clone3: int


ALLOWED = {  # call → its numbers on x86-64 and on aarch64
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "futex": (202, 98),
    "membarrier": (324, 283),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getrusage": (98, 165),
    "getrandom": (318, 278),
    "gettimeofday": (96, 169),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
MACHINES = {
    "x86_64": Calls(0xC000003E, 317, tuple(numbers[0] for numbers in ALLOWED.values()), (9, 10), 56, 435),
    "aarch64": Calls(0xC00000B7, 277, tuple(numbers[1] for numbers in ALLOWED.values()), (222, 226), 220, 435),
}


class Program(ctypes.Structure):
    """`struct sock_fprog`: the number of instructions and their address."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install(threads: bool = False) -> bool:
    """Filter the calls of all threads of this process, which may start further `threads` or none.

    False where the system has no such filter.

    The process must have given up gaining privileges (`PR_SET_NO_NEW_PRIVS`).
    """
    calls = MACHINES.get(platform.machine()) if sys.platform == "linux" and sys.maxsize > 2**32 else None
    if calls is None:
        return False
    code = assemble(calls, threads)
    program = Program(len(code) // 8, code)
    libc = ctypes.CDLL(None)
    return bool(libc.syscall(calls.seccomp, SET_FILTER, ALL_THREADS, ctypes.byref(program)) == 0)


def assemble(calls: Calls, threads: bool = False) -> bytes:
    """The filter's instructions: operation, jump if true, jump if false, operand."""
    code = [(LOAD, 0, 0, ARCHITECTURE), (IF_EQUAL, 1, 0, calls.architecture), (RETURN, 0, 0, KILL)]
    code += [(LOAD, 0, 0, NUMBER)]
    for number in calls.allowed:
        code += [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    for number in calls.mappings:
        code += [(IF_EQUAL, 0, 4, number), (LOAD, 0, 0, THIRD_ARGUMENT), (IF_SET, 1, 0, EXECUTABLE)]
        code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    if threads:
        code += [(IF_EQUAL, 0, 1, calls.clone3), (RETURN, 0, 0, UNKNOWN)]
        code += [(IF_EQUAL, 0, 3, calls.clone), (LOAD, 0, 0, FIRST_ARGUMENT), (IF_SET, 0, 1, THREAD)]
        code += [(RETURN, 0, 0, ALLOW)]
    code += [(RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)

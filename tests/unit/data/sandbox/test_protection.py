"""What a protected process cannot do: real processes that protect themselves as a decoder does, then try."""

import os
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from resight.data.sandbox import seccomp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's protections are Linux's")
HAS_FILTER = sys.platform == "linux" and platform.machine() in seccomp.MACHINES
MEMORY = 256 * 2**20
# Everything that the attempts use is imported before, as the modules of a decoder are.
PROGRAM = """
import ctypes, mmap, os, resource, select, signal, socket, subprocess, sys, threading, time
from resight.data.sandbox.protection import protect
libc = ctypes.CDLL(None, use_errno=True)

def check(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")

protections = protect({memory}, {seconds}, {parent}, threads={threads})
try:
    {attempt}
    print("done")
except (OSError, MemoryError, RuntimeError, ValueError) as error:
    print(type(error).__name__)
"""
ATTEMPTS = {
    "read a file": "open('/etc/hostname')",
    "write a file": "open('written', 'w')",
    "append to a file": "os.open('readable', os.O_WRONLY | os.O_APPEND)",
    "remove a file": "os.remove('readable')",
    "list a folder": "os.listdir('.')",
    "make a folder": "os.mkdir('made')",
    "follow /proc": "os.open('/proc/self/mem', os.O_RDWR)",
    "connect": "socket.socket().connect(('127.0.0.1', 9))",
    "make a Unix socket": "socket.socketpair()",
    "make a pipe": "os.pipe()",
    "start a program": "os.execv('/bin/true', ['true'])",
    "start a child program": "subprocess.run(['/bin/true'])",
    "fork": "os.fork() or os._exit(0)",
    "start a thread": "threading.Thread(target=print).start()",
    "signal its parent": "os.kill(os.getppid(), 0)",
    "trace": "check(libc.ptrace(0, 0, 0, 0))",
    "become root": "os.setuid(0)",
    "raise a limit": "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
    "map executable memory": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE | 0x20)",
    "mount": "check(libc.mount(b'none', b'/', b'tmpfs', 0, None))",
    "leave its namespaces": "check(libc.unshare(0x10000000))",
    "load a BPF program": "check(libc.syscall(ctypes.c_long(321), 0, 0, 0))",
    "use io_uring": "check(libc.syscall(ctypes.c_long(425), 1, 0))",
    "remove its filter": "check(libc.prctl(22, 0, 0, 0, 0))",
}


def run(
    attempt: str, folder: Path, memory: int = MEMORY, seconds: int = 60, threads: bool = False
) -> "subprocess.CompletedProcess[str]":
    text = PROGRAM.format(memory=memory, seconds=seconds, parent=os.getpid(), attempt=attempt, threads=threads)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=folder, timeout=120)


@pytest.mark.skipif(not HAS_FILTER, reason="no filter of system calls on this machine")
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_protected_process_cannot(attempt: str, tmp_path: Path) -> None:
    (tmp_path / "readable").write_text("kept")
    tmp_path.chmod(0o777)
    (tmp_path / "readable").chmod(0o666)
    ran = run(ATTEMPTS[attempt], tmp_path)
    assert ran.stdout in [f"{name}\n" for name in ("PermissionError", "OSError", "RuntimeError", "ValueError")], ran
    assert [path.name for path in tmp_path.iterdir()] == ["readable"]
    assert (tmp_path / "readable").read_text() == "kept"


@pytest.mark.skipif(not HAS_FILTER, reason="no filter of system calls on this machine")
@pytest.mark.parametrize("attempt", ["read a file", "connect", "start a program", "start a child program", "fork"])
def test_a_process_that_may_start_threads_still_cannot(attempt: str, tmp_path: Path) -> None:
    (tmp_path / "readable").write_text("kept")
    ran = run(ATTEMPTS[attempt], tmp_path, threads=True)
    assert ran.stdout in [f"{name}\n" for name in ("PermissionError", "OSError", "RuntimeError")], ran


@pytest.mark.skipif(not HAS_FILTER, reason="no filter of system calls on this machine")
def test_its_threads_have_the_same_filter(tmp_path: Path) -> None:
    work = "found = []; one = threading.Thread(target=lambda: found.append(libc.open(b'/etc/hostname', 0)))"
    ran = run(f"{work}; one.start(); one.join(); print(found)", tmp_path, threads=True)
    assert ran.stdout == "[-1]\ndone\n", ran


def test_it_can_compute(tmp_path: Path) -> None:
    ran = run("print(len(bytearray(10**8)), time.process_time() > 0, os.getpid() > 0)", tmp_path)
    assert ran.stdout == "100000000 True True\ndone\n", ran.stderr


def test_its_memory_is_limited(tmp_path: Path) -> None:
    assert run("bytearray(2 * 10**8)", tmp_path).stdout == "done\n"
    assert run("bytearray(3 * 10**8)", tmp_path).stdout == "MemoryError\n"


def test_its_processor_time_is_limited(tmp_path: Path) -> None:
    ran = run("while True: pass", tmp_path, seconds=1)
    assert ran.returncode < 0 and ran.stdout == ""


def test_soft_and_hard_limits_are_the_same(tmp_path: Path) -> None:
    text = PROGRAM.format(memory=MEMORY, seconds=60, parent=os.getpid(), attempt="pass", threads=False)
    text += "sys.stdout.flush(); time.sleep(60)"  # meanwhile, the kernel's view of it is read
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, cwd=tmp_path) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"done\n"
        lines = Path(f"/proc/{one.pid}/limits").read_text().splitlines()
        status = Path(f"/proc/{one.pid}/status").read_text()
        one.kill()
    limits = {line[:26].strip(): line[26:].split()[:2] for line in lines}
    assert limits["Max data size"] == [str(MEMORY)] * 2
    for name, value in (("open files", "3"), ("file size", "0"), ("core file size", "0"), ("processes", "0")):
        assert limits[f"Max {name}"] == [value] * 2
    assert limits["Max cpu time"] == ["60", "60"]
    facts = dict(line.split(":", 1) for line in status.splitlines())
    assert facts["NoNewPrivs"].strip() == "1"
    if HAS_FILTER:
        assert facts["Seccomp"].strip() == "2"
    if os.geteuid() == 0:
        assert facts["Uid"].split() == facts["Gid"].split() == ["65534"] * 4
        assert facts["Groups"].split() == [] and int(facts["CapEff"], 16) == 0


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root changes its user")
def test_an_unprivileged_process_is_protected_too(tmp_path: Path) -> None:
    """As a service that does not run as root."""
    tmp_path.chmod(0o777)
    before = "import os; os.setgroups([]); os.setgid(1234); os.setuid(1234)\n"
    attempt = "print(*protections, sep=',')"
    text = PROGRAM.format(memory=MEMORY, seconds=60, parent=os.getpid(), attempt=attempt, threads=False)
    text = text.replace("libc =", before + "libc =", 1)
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    held = ran.stdout.splitlines()[0].split(",")
    assert {"limits", "no dump", "ends with parent", "no new privileges"} <= set(held) and "other user" not in held


def test_a_process_whose_parent_is_gone_ends_at_once(tmp_path: Path) -> None:
    text = PROGRAM.format(memory=MEMORY, seconds=60, parent=1, attempt="pass", threads=False)
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_filter_refuses_what_it_does_not_know_and_kills_another_architecture() -> None:
    for calls in seccomp.MACHINES.values():
        assert evaluate(calls, calls.architecture, calls.allowed[0]) == seccomp.ALLOW
        assert evaluate(calls, calls.architecture, 9999) == seccomp.REFUSE
        assert evaluate(calls, calls.architecture, calls.allowed[0] | 0x40000000) == seccomp.REFUSE  # the x32 table
        assert evaluate(calls, 0x40000003, calls.allowed[0]) == seccomp.KILL
        for mapping in calls.mappings:
            assert evaluate(calls, calls.architecture, mapping, 3) == seccomp.ALLOW
            assert evaluate(calls, calls.architecture, mapping, 7) == seccomp.REFUSE
        for number in (calls.clone, calls.clone3):
            assert evaluate(calls, calls.architecture, number, first=seccomp.THREAD) == seccomp.REFUSE


def test_the_filter_with_threads_allows_threads_and_no_process() -> None:
    for calls in seccomp.MACHINES.values():
        thread, process = 0x3D0F00, 0x1200011  # flags of pthread_create and of fork
        assert evaluate(calls, calls.architecture, calls.clone, first=thread, threads=True) == seccomp.ALLOW
        assert evaluate(calls, calls.architecture, calls.clone, first=process, threads=True) == seccomp.REFUSE
        assert evaluate(calls, calls.architecture, calls.clone3, first=thread, threads=True) == seccomp.UNKNOWN
        assert evaluate(calls, calls.architecture, 9999, first=thread, threads=True) == seccomp.REFUSE


def evaluate(
    calls: seccomp.Calls, architecture: int, number: int, third: int = 0, first: int = 0, threads: bool = False
) -> int:
    """Run the filter as the kernel does."""
    words = {seccomp.ARCHITECTURE: architecture, seccomp.NUMBER: number, seccomp.THIRD_ARGUMENT: third}
    words[seccomp.FIRST_ARGUMENT] = first
    code = list(struct.iter_unpack("=HBBI", seccomp.assemble(calls, threads)))
    at = value = 0
    while True:
        operation, yes, no, operand = code[at]
        at += 1
        if operation == seccomp.RETURN:
            return int(operand)
        if operation == seccomp.LOAD:
            value = words[operand]
        elif operation == seccomp.IF_EQUAL:
            at += yes if value == operand else no
        elif operation == seccomp.IF_SET:
            at += yes if value & operand else no

"""A real `resight serve` in a process of its own: started, watched, stopped or killed."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import httpx

START, STOP = 120.0, 60.0  # seconds that it may take
MEMORY_INTERVAL = 2.0  # seconds


class Server:
    def __init__(self, collection: Path, *options: str, log: Path | None = None) -> None:
        self.collection = collection
        self.options = options
        self.port = find_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        command = [sys.executable, "-m", "resight", "serve", str(self.collection), "--port", str(self.port)]
        target: IO[bytes] | int = self._log.open("ab") if self._log else subprocess.DEVNULL
        self._process = subprocess.Popen(
            [*command, *self.options], stdout=target, stderr=target, start_new_session=True
        )
        limit = time.monotonic() + START
        while time.monotonic() < limit:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server left with {self._process.returncode}")
            try:
                if httpx.get(f"{self.address}/api/health", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise RuntimeError(f"the server did not answer within {START:.0f} s")

    def stop(self) -> int:
        """Asked to leave; gives its exit code."""
        if self._process is None:
            return 0
        process, self._process = self._process, None
        process.terminate()
        try:
            return process.wait(STOP)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise

    def kill(self) -> None:
        """As a power cut would: nothing is told, nothing finished."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def memory(self) -> int:
        """Resident bytes of the server and of all processes that it has started; what they share counts once each."""
        if self._process is None:
            return 0
        return sum(_resident(process) for process in _family(self._process.pid))


class MemoryLog:
    """Notes the memory of a server every few seconds, while the block runs."""

    def __init__(self, server: Server) -> None:
        self.samples: list[int] = []
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "MemoryLog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(MEMORY_INTERVAL):
            self.samples.append(self._server.memory())

    def mean(self, begin: float, end: float) -> float:
        """MiB, over a part of the time: (0, 0.1) is the first tenth."""
        count = len(self.samples)
        chosen = self.samples[int(begin * count) : max(int(end * count), int(begin * count) + 1)]
        return sum(chosen) / max(len(chosen), 1) / 2**20


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _family(parent: int) -> list[int]:
    found = [parent]
    for member in found:
        for task in Path(f"/proc/{member}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


def _resident(process: int) -> int:
    """Without mapped files, which the system may drop at any time."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

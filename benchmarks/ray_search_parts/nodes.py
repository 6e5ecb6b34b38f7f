"""Ray nodes on this machine, each in processes of its own: started, and ended as a power cut would end them."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from resight.ray_cluster import ENVIRONMENT

ATTEMPTS = 4


def protect() -> None:
    """A token for the nodes of this run and for whoever joins them, before Ray is loaded: newer releases of Ray let
    nobody in without one, and nobody else should."""
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


class Node:
    """`core`: the one core that all its processes may use; None: any."""

    def __init__(self, folder: Path, head: str | None = None, core: int | None = None) -> None:
        port = find_port()
        place = ["--head", f"--port={port}", f"--temp-dir={folder}", "--include-dashboard=false"]
        pinned = [] if core is None else ["taskset", "-c", str(core)]
        ray = str(Path(sys.executable).with_name("ray"))
        options = ["--num-cpus=1", "--object-store-memory=150000000", "--disable-usage-stats", "--block"]
        command = [*pinned, ray, "start", *(place if head is None else [f"--address={head}"]), *options]
        self.address = head or f"127.0.0.1:{port}"
        for attempt in range(ATTEMPTS):
            log = folder.parent / f"node-{port}-{attempt}.log"
            with log.open("wb") as out:
                self.process = subprocess.Popen(
                    [*command, "--node-ip-address=127.0.0.1"], env={**os.environ, **ENVIRONMENT}, stdout=out, stderr=out
                )
            if wait_for_start(self.process, log):
                return
            self.kill()
        raise SystemExit(f"no Ray node starts: {log.read_text()[-500:]}")

    def kill(self) -> int:
        """kill -9 of every process of the node; gives how many they were."""
        pids = [*list_children(self.process.pid), self.process.pid]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        return len(pids)

    def measure_work(self) -> float:
        """Seconds of processor time that its shards have taken so far, whatever else the machine is busy with."""
        seconds = 0.0
        for pid in list_children(self.process.pid):
            try:
                name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
            except OSError:
                continue
            if "ShardServer" in name:
                user, system = rest.split()[11:13]
                seconds += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        return seconds


def list_children(pid: int) -> list[int]:
    """Of all generations."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(place.name))
    found, left = [], [pid]
    while left:
        mine = children.get(left.pop(), [])
        found += mine
        left += mine
    return found


def wait_for_start(process: "subprocess.Popen[bytes]", log: Path) -> bool:
    """A node that does not come up within half a minute gives up by itself, as on a busy machine it may."""
    while process.poll() is None:
        if "Ray runtime started" in log.read_text(errors="replace"):
            return True
        time.sleep(0.2)
    return False


def find_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

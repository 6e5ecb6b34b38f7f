"""A limit on memory, by a control group (version 1) of Linux; and what this process takes."""

import os
from pathlib import Path

ROOT = Path("/sys/fs/cgroup/memory")


class Limit:
    """This process and what it starts, held to so many bytes from here on."""

    def __init__(self, bytes_: int) -> None:
        self.bytes = bytes_
        self._group = ROOT / f"resight_{os.getpid()}"

    def __enter__(self) -> "Limit":
        self._group.mkdir()
        (self._group / "memory.limit_in_bytes").write_text(str(self.bytes))
        (self._group / "cgroup.procs").write_text(str(os.getpid()))
        return self

    def __exit__(self, *_: object) -> None:
        (ROOT / "cgroup.procs").write_text(str(os.getpid()))
        (self._group / "memory.force_empty").write_text("0")
        self._group.rmdir()

    def tell(self) -> str:
        def read(name: str) -> str:
            return (self._group / f"memory.{name}").read_text()

        peak, kills = int(read("max_usage_in_bytes")), read("oom_control").split()[-1]
        rss = next(int(line.split()[1]) for line in read("stat").splitlines() if line.startswith("rss "))
        return (
            f"limit {self.bytes / 2**30:.2f} GiB, most used {peak / 2**30:.2f} GiB (files in memory included), "
            f"anonymous now {rss / 2**30:.2f} GiB, {kills} processes killed"
        )


def measure_anonymous() -> float:
    """GiB of this process that no file stands behind: now, not at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 2**20


def forget(folder: Path) -> None:
    """Takes the files in `folder` out of the system's memory, so that the next read is from disk."""
    for path in folder.rglob("*.npy"):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)

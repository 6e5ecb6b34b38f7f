"""A small disk whose power can be cut: a file system in a file, shut down without writing what was not synced.

Needs root, a loop device and ext4. EXT4_IOC_SHUTDOWN without flushing the log is what a power cut leaves: everything
that was synced, and of the rest whatever the kernel happened to write before.
"""

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SHUTDOWN = 0x8004587D  # _IOR('X', 125, u32)
WITHOUT_LOG = struct.pack("I", 2)  # EXT4_GOING_FLAGS_NOLOGFLUSH
MEGABYTES = 256


def is_available() -> bool:
    """Whether this process may make such a disk."""
    if os.name == "nt" or os.geteuid() != 0 or not all(map(shutil.which, ("mkfs.ext4", "mount", "losetup"))):
        return False
    return subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode == 0


class LossyDisk:
    def __init__(self, folder: Path) -> None:
        self._image = folder / "disk.img"
        self.path = folder / "disk"  # where it is mounted
        with self._image.open("wb") as file:
            file.truncate(MEGABYTES << 20)
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", str(self._image))
        self.path.mkdir()
        self.plug_in()

    def plug_in(self) -> None:
        _run("mount", "-o", "loop,commit=300", str(self._image), str(self.path))  # no sync by itself meanwhile

    def cut_power(self) -> None:
        """From now on nothing reaches the disk; whoever uses it gets errors."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, WITHOUT_LOG)
        finally:
            os.close(descriptor)

    def unplug(self) -> None:
        """Unmount, after killing whatever uses the disk: a power cut ends all processes."""
        for _ in range(100):
            if subprocess.run(["umount", str(self.path)], capture_output=True, check=False).returncode == 0:
                return
            for process in self._list_users():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.05)
        raise RuntimeError(f"{self.path} is in use")

    def _list_users(self) -> Iterator[int]:
        """Processes, but this one, with an open file, a mapped file or the working folder on the disk."""
        place = str(self.path)
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and int(process.name) != os.getpid():
                with suppress(OSError):
                    links = [process / "cwd", *(process / "fd").iterdir()]
                    files = [str(link.readlink()) for link in links if link.is_symlink()]
                    if any(name.startswith(place) for name in files) or place in (process / "maps").read_text():
                        yield int(process.name)


@contextmanager
def lossy_disk(folder: Path) -> Iterator[LossyDisk]:
    disk = LossyDisk(folder)
    try:
        yield disk
    finally:
        with suppress(subprocess.CalledProcessError):
            disk.unplug()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)

"""What a service is told at its start; the processes of one service share it as text in an environment variable."""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from resight.apps.service.api_keys import Key

VARIABLE = "RESIGHT_SERVICE"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MEGABYTE = 2**20


def count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class ServiceSettings:
    """`collections`: name → folder; the first is the one that is meant where a request names none."""

    collections: Mapping[str, Path]
    host: str = "127.0.0.1"
    port: int = 8080
    processes: int = 1
    engine: str = "local"  # where searches run: see collection/engines.py
    keys: tuple[Key, ...] = ()
    read_only: bool = False
    max_upload_bytes: int = 32 * MEGABYTE  # of one request
    max_pixels: int = 64_000_000
    max_files: int = 200  # of one request
    workers: int = field(default_factory=count_cores)  # threads that search
    waiting: int = -1  # searches that may wait; -1: 8 × workers, so that a moment of writing turns nobody away
    timeout: float = 30.0  # seconds that a search may wait and run
    grace: float = 20.0  # seconds that what runs may take after the signal to stop
    rate: float = 0.0  # requests a second of one client; 0: no limit
    allow_hosts: tuple[str, ...] = ()  # names that the Host header may have beside loopback, where there is no key
    show_paths: bool = False
    reports: Path | None = None
    training: Path | None = None
    reviews: tuple[Path, ...] = ()
    cors: tuple[str, ...] = ()
    log: str = "none"  # text | json | none
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)  # signs session cookies

    @property
    def places(self) -> int:
        """Searches that may be under way at once, waiting ones included."""
        return self.workers + (8 * self.workers if self.waiting < 0 else self.waiting)

    @property
    def threads(self) -> int:
        """That one search may use: what the other workers and processes leave it."""
        return max(1, count_cores() // (self.workers * self.processes))

    @property
    def threads_alone(self) -> int:
        """The same for a search that no other of its process runs beside."""
        return max(1, count_cores() // self.processes)

    @property
    def default(self) -> str:
        return next(iter(self.collections))


def write_settings(settings: ServiceSettings) -> str:
    return json.dumps(asdict(settings), default=str)


def read_settings(text: str) -> ServiceSettings:
    values: dict[str, Any] = json.loads(text)
    lists = {name: tuple(values[name]) for name in ("allow_hosts", "cors")}
    return ServiceSettings(
        **{
            **values,
            **lists,
            "collections": {name: Path(path) for name, path in values["collections"].items()},
            "keys": tuple(Key(**key) for key in values["keys"]),
            "reports": Path(values["reports"]) if values["reports"] else None,
            "training": Path(values["training"]) if values["training"] else None,
            "reviews": tuple(map(Path, values["reviews"])),
        }
    )

"""The settings of a service. Its processes receive them as JSON in an environment variable, which holds secrets."""

import json
import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from resight.apps.service import api_keys
from resight.apps.service.api_keys import Key

VARIABLE = "RESIGHT_SERVICE"
SECRETS = (VARIABLE, api_keys.VARIABLE)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MEGABYTE = 2**20
PATHS = ("reports", "training", "mosaic", "tls_cert", "tls_key", "audit_log")


def count_cores(system: Path = Path("/")) -> int:
    """The cores that this process may use: those it may run on, or fewer where its cgroup limits their time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, read_cpu_limit(system))))


def read_cpu_limit(system: Path) -> float:
    """The CPU limit of a container or a systemd unit, in cores (cgroup v2); infinite where there is none."""
    try:
        own = (system / "proc/self/cgroup").read_text(encoding="ascii").partition("0::/")[2].partition("\n")[0]
    except (OSError, ValueError):
        return math.inf
    folder = system / "sys/fs/cgroup"
    return min(_read_limit(level / "cpu.max") for level in (folder, folder / own, *(folder / own).parents))


def _read_limit(file: Path) -> float:
    try:
        quota, period = file.read_text(encoding="ascii").split()
        return float(quota) / float(period)
    except (OSError, ValueError):  # no such level, or "max"
        return math.inf


@dataclass(frozen=True)
class ServiceSettings:
    """`collections`: name → folder; the first is the default of requests that name none."""

    collections: Mapping[str, Path]
    host: str = "127.0.0.1"
    port: int = 8080
    processes: int = 1
    engine: str = "local"  # where searches run: see collection/engine.py
    keys: tuple[Key, ...] = ()
    read_only: bool = False
    max_upload_bytes: int = 32 * MEGABYTE  # per request
    max_pixels: int = 64_000_000
    max_files: int = 200  # per request
    workers: int = field(default_factory=count_cores)  # threads that search
    waiting: int = -1  # searches that may wait; -1: 8 × workers, so that a short write rejects no search
    timeout: float = 30.0  # seconds that a search may wait and run
    grace: float = 20.0  # seconds that running work may take after the signal to stop
    rate: float = 0.0  # requests per second and client; 0: no limit
    connections: int = 64  # per process and address; loopback may have more
    trusted_proxies: tuple[str, ...] = ()  # networks whose X-Forwarded-For header is believed
    tls_cert: Path | None = None
    tls_key: Path | None = None
    audit_log: Path | None = None
    allow_hosts: tuple[str, ...] = ()  # host names beside loopback, for a service without keys
    show_paths: bool = False
    reports: Path | None = None
    training: Path | None = None
    reviews: tuple[Path, ...] = ()
    mosaic: Path | None = None  # reduced picture of the globe's map
    mosaic_bounds: tuple[float, ...] = ()  # west, south, east, north in degrees
    cors: tuple[str, ...] = ()
    log: str = "none"  # text | json | none
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)  # signs session cookies

    @property
    def slots(self) -> int:
        """Searches in progress at once, waiting ones included."""
        return self.workers + (8 * self.workers if self.waiting < 0 else self.waiting)

    @property
    def threads(self) -> int:
        """Library threads per search: the cores divided among all workers and processes."""
        return max(1, count_cores() // (self.workers * self.processes))

    @property
    def threads_alone(self) -> int:
        """Library threads of a search that runs alone in its process."""
        return max(1, count_cores() // self.processes)

    @property
    def default(self) -> str:
        return next(iter(self.collections))


def write_settings(settings: ServiceSettings) -> str:
    return json.dumps(asdict(settings), default=str)


def read_settings(text: str) -> ServiceSettings:
    values: dict[str, Any] = json.loads(text)
    lists = {name: tuple(values[name]) for name in ("allow_hosts", "cors", "mosaic_bounds", "trusted_proxies")}
    paths = {name: Path(values[name]) if values[name] else None for name in PATHS}
    return ServiceSettings(
        **{
            **values,
            **lists,
            **paths,
            "collections": {name: Path(path) for name, path in values["collections"].items()},
            "keys": tuple(Key(**{**key, "collections": tuple(key["collections"])}) for key in values["keys"]),
            "reviews": tuple(map(Path, values["reviews"])),
        }
    )


def make_subprocess_env() -> dict[str, str]:
    """The environment of processes that the service starts: without its secrets, and with one BLAS thread."""
    public = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return {**public, "OPENBLAS_NUM_THREADS": "1"}

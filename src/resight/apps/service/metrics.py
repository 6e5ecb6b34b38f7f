"""Counts, times and gauges in Prometheus format, for `/metrics`.

Several processes of one service share a folder of counters (PROMETHEUS_MULTIPROC_DIR, the multi-process mode of
prometheus_client); each of them then reports the sums over all. `server.serve` names that folder before it starts them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
Mode = Literal["sum", "livesum", "mostrecent"]
GAUGES: Mapping[str, tuple[Mode, str]] = {  # how several processes combine
    "resight_searches_running": ("livesum", "Searches that run now."),
    "resight_searches_waiting": ("livesum", "Searches that wait for a thread."),
    "resight_decoders_replaced": ("sum", "Decode processes that were killed and replaced."),
    "resight_images": ("mostrecent", "Images in all collections."),
    "resight_memory_bytes": ("livesum", "Resident memory of the service."),
    "resight_cluster_nodes": ("mostrecent", "Nodes that hold shards."),
    "resight_cluster_shards": ("mostrecent", "Shards."),
    "resight_cluster_replicas": ("mostrecent", "Replicas that answer."),
    "resight_cluster_wanted": ("mostrecent", "Replicas with enough nodes and memory for all."),
}

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """One instance per process."""

    def __init__(self) -> None:
        self._folder = os.environ.get(FOLDER, "")
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "resight_requests_total", "Requests.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "resight_request_seconds", "Duration of requests.", ("route",), buckets=BOUNDS, registry=self._registry
        )
        self._gauges: dict[str, Gauge] = {}
        labels = () if self._folder else ("pid",)  # in multi-process mode, the client adds the label itself
        process = Gauge(
            "resight_process_info",
            "Processes of the service.",
            labels,
            registry=self._registry,
            multiprocess_mode="liveall",
        )
        (process.labels(str(os.getpid())) if labels else process).set(1)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; `route` is the path of the route, never the client's text."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def set(self, values: Mapping[str, float]) -> None:
        """Set gauges of this process, by their names in GAUGES."""
        for name, value in values.items():
            if name not in self._gauges:
                mode, meaning = GAUGES[name]
                self._gauges[name] = Gauge(name, meaning, registry=self._registry, multiprocess_mode=mode)
            self._gauges[name].set(value)

    def write(self) -> bytes:
        """The page: of this process, or of all processes that share the folder."""
        if not self._folder:
            return generate_latest(self._registry)
        forget_dead_processes(Path(self._folder))
        shared = CollectorRegistry()
        MultiProcessCollector(shared, path=self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(shared)


def forget_dead_processes(folder: Path) -> None:
    """Remove the gauges of processes that have ended; their counters stay."""
    for pid in {int(path.stem.rpartition("_")[2]) for path in folder.glob("gauge_live*_*.db")}:
        if not _is_alive(pid):
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]


def measure_memory() -> int:
    """Resident bytes of this process; 0 where the system does not provide them."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, as another user
        return True
    return True

"""Counts and times of this process, written as Prometheus reads them.

Each process of a service has its own; the gauge `resight_process_info` names the one that answered.
"""

import os
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Metrics:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._times: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = defaultdict(float)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request; `route` is the path of the route, never what a client wrote."""
        with self._lock:
            self._requests[method, route, status] += 1
            buckets = self._times.setdefault(route, [0] * (len(BOUNDS) + 1))
            buckets[bisect_left(BOUNDS, seconds)] += 1
            self._seconds[route] += seconds

    def write(self, gauges: Mapping[str, float]) -> str:
        """The page; `gauges` are values of now, by name."""
        with self._lock:
            counts = [
                _sample("resight_requests_total", {"method": method, "route": route, "status": str(status)}, count)
                for (method, route, status), count in sorted(self._requests.items())
            ]
            times = [line for route in sorted(self._times) for line in self._write_times(route)]
        values = [line for name, value in gauges.items() for line in (f"# TYPE {name} gauge", _sample(name, {}, value))]
        process = _sample("resight_process_info", {"pid": str(os.getpid())}, 1)
        lines = [
            "# TYPE resight_requests_total counter",
            *counts,
            "# TYPE resight_request_seconds histogram",
            *times,
            *values,
            "# TYPE resight_process_info gauge",
            process,
        ]
        return "\n".join(lines) + "\n"

    def _write_times(self, route: str) -> list[str]:
        lines, total = [], 0
        for bound, count in zip([*map(str, BOUNDS), "+Inf"], self._times[route], strict=True):
            total += count
            lines.append(_sample("resight_request_seconds_bucket", {"route": route, "le": bound}, total))
        lines.append(_sample("resight_request_seconds_sum", {"route": route}, self._seconds[route]))
        lines.append(_sample("resight_request_seconds_count", {"route": route}, total))
        return lines


def measure_memory() -> int:
    """Bytes that this process holds; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return f"{value:.12g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""Counts and times of this process, written as Prometheus reads them.

Each process of a service has its own. Where there are several, whoever asks meets one or the other: all they write then
carries the label `process`, so that no count seems to fall.
"""

import os
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Metrics:
    def __init__(self, processes: int = 1) -> None:
        self._ours = {"process": str(os.getpid())} if processes > 1 else {}
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
                self._sample("resight_requests_total", count, method=method, route=route, status=str(status))
                for (method, route, status), count in sorted(self._requests.items())
            ]
            times = [line for route in sorted(self._times) for line in self._write_times(route)]
        values = [
            line for name, value in gauges.items() for line in (f"# TYPE {name} gauge", self._sample(name, value))
        ]
        process = self._sample("resight_process_info", 1, pid=str(os.getpid()))
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
            lines.append(self._sample("resight_request_seconds_bucket", total, route=route, le=bound))
        lines.append(self._sample("resight_request_seconds_sum", self._seconds[route], route=route))
        lines.append(self._sample("resight_request_seconds_count", total, route=route))
        return lines

    def _sample(self, name: str, value: float, **labels: str) -> str:
        inside = ",".join(f'{label}="{_escape(text)}"' for label, text in {**labels, **self._ours}.items())
        return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def measure_memory() -> int:
    """Bytes that this process holds; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _number(value: float) -> str:
    return f"{value:.12g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

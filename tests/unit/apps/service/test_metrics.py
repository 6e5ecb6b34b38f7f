import os
import subprocess
import sys
from pathlib import Path

from resight.apps.service.metrics import FOLDER, Metrics, forget_dead_processes, measure_memory

WORK = """
from resight.apps.service.metrics import Metrics
metrics = Metrics()
metrics.observe("GET", "/", 200, 0.1)
metrics.set({"resight_searches_running": 2, "resight_images": 7, "resight_decoders_replaced": 1})
print(metrics.write().decode())
"""


def test_requests_are_counted_and_their_times_fall_into_buckets() -> None:
    metrics = Metrics()
    for seconds in (0.004, 0.005, 0.2, 99.0):
        metrics.observe("GET", "/api/images", 200, seconds)
    metrics.observe("GET", "/api/images", 404, 0.001)
    metrics.set({"resight_images": 12})
    page = metrics.write().decode().splitlines()
    assert 'resight_requests_total{method="GET",route="/api/images",status="200"} 4.0' in page
    assert 'resight_requests_total{method="GET",route="/api/images",status="404"} 1.0' in page
    assert 'resight_request_seconds_bucket{le="0.005",route="/api/images"} 3.0' in page  # bounds belong to their bucket
    assert 'resight_request_seconds_bucket{le="0.25",route="/api/images"} 4.0' in page
    assert 'resight_request_seconds_bucket{le="+Inf",route="/api/images"} 5.0' in page
    assert 'resight_request_seconds_count{route="/api/images"} 5.0' in page
    assert "resight_images 12.0" in page
    assert f'resight_process_info{{pid="{os.getpid()}"}} 1.0' in page
    assert not any("_created" in line for line in page)


def test_large_values_are_written_whole() -> None:
    metrics = Metrics()
    metrics.set({"resight_memory_bytes": 1234567890})
    assert b"resight_memory_bytes 1.23456789e+09" in metrics.write()


def test_memory_is_that_of_a_process_with_numpy() -> None:
    assert 10 * 2**20 < measure_memory() < 2**40


def test_several_processes_sum_their_counts_and_forget_the_load_of_dead_ones(tmp_path: Path) -> None:
    pages = [work_as_a_process(tmp_path) for _ in range(2)]
    assert 'resight_requests_total{method="GET",route="/",status="200"} 1.0' in pages[0]
    assert 'resight_requests_total{method="GET",route="/",status="200"} 2.0' in pages[1]
    assert "resight_decoders_replaced 2.0" in pages[1]
    assert "resight_images 7.0" in pages[1]
    assert "resight_searches_running 2.0" in pages[1], "the first process has ended"
    assert pages[1].count("resight_process_info{pid=") == 1
    forget_dead_processes(tmp_path)
    assert not list(tmp_path.glob("gauge_live*"))
    assert list(tmp_path.glob("counter_*"))


def work_as_a_process(folder: Path) -> str:
    environment = {**os.environ, FOLDER: str(folder)}
    return subprocess.run([sys.executable, "-c", WORK], env=environment, capture_output=True, text=True).stdout

import os

from resight.apps.service.metrics import Metrics, measure_memory


def test_requests_are_counted_and_their_times_fall_into_buckets() -> None:
    metrics = Metrics()
    for seconds in (0.004, 0.005, 0.2, 99.0):
        metrics.observe("GET", "/api/images", 200, seconds)
    metrics.observe("GET", "/api/images", 404, 0.001)
    page = metrics.write({"resight_images": 12}).splitlines()
    assert 'resight_requests_total{method="GET",route="/api/images",status="200"} 4' in page
    assert 'resight_requests_total{method="GET",route="/api/images",status="404"} 1' in page
    assert 'resight_request_seconds_bucket{route="/api/images",le="0.005"} 3' in page  # bounds belong to their bucket
    assert 'resight_request_seconds_bucket{route="/api/images",le="0.25"} 4' in page
    assert 'resight_request_seconds_bucket{route="/api/images",le="+Inf"} 5' in page
    assert 'resight_request_seconds_count{route="/api/images"} 5' in page
    assert "resight_images 12" in page


def test_large_values_are_written_whole() -> None:
    assert "resight_memory_bytes 1234567890" in Metrics().write({"resight_memory_bytes": 1234567890})


def test_memory_is_that_of_a_process_with_numpy() -> None:
    assert 10 * 2**20 < measure_memory() < 2**40


def test_several_processes_tell_their_counts_apart() -> None:
    metrics = Metrics(processes=2)
    metrics.observe("GET", "/", 200, 0.1)
    samples = [line for line in metrics.write({"resight_images": 1}).splitlines() if not line.startswith("#")]
    assert samples
    assert all(f'process="{os.getpid()}"' in line for line in samples)

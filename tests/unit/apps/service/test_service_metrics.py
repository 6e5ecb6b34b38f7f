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

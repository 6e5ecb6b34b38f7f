"""Images made to crash, hang or grow a decoder: a small budget of `benchmarks/fuzz_images.py`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resight.data.sandbox.processes import Limits, Sandbox
from resight.errors import ImageError

BENCHMARKS = Path(__file__).resolve().parents[4] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("fuzz_images", "service_parts"):
            del sys.modules[name]


def test_malformed_images_are_decoded_or_refused_and_nothing_else() -> None:
    from fuzz_images import SERVICE, fuzz

    sandbox = Sandbox(1, SERVICE)
    try:
        outcome = fuzz(320, seed=1, sandbox=sandbox, slow=False)
    finally:
        sandbox.close()
    assert outcome.faults == [] and outcome.hangs == []
    assert outcome.decoded + outcome.refused == 320 and outcome.refused > 160


def test_an_image_that_a_decoder_works_on_for_minutes_is_given_up() -> None:
    from fuzz_images import make_many_scans

    sandbox = Sandbox(1, Limits(seconds=1.0))
    try:
        with pytest.raises(ImageError, match="too much time or memory"):
            sandbox.decode(make_many_scans(8000, 4000), "scans.jpg", 640)
        assert sandbox.replaced == 1
        assert sandbox.decode(make_many_scans(16, 1), "x.jpg").size == (16, 16)
    finally:
        sandbox.close()

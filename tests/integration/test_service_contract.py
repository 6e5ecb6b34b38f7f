"""Requests made up from the service's own OpenAPI description: whatever is sent, the fault is never the service's."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from support.serving import PATIENCE, serve

from resight.audit.dedup.pairs import Pair
from resight.audit.review.review import Review

STREAMS = "/events"  # they end when their job does
EXAMPLES = 6  # of each kind for each operation


@pytest.fixture(scope="module")
def address(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("contract")
    own = Path(shutil.copytree(indexed, folder / "scenes.resight"))
    pairs = [Pair("scene_01.jpg", "scene_02.jpg", "same", 0.5)]
    Review.create(folder / "review", "Review", own, own, pairs)
    with serve(own, options=("--review", str(folder / "review"))) as server:
        yield server.address


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_makes_the_service_fail(address: str, mode: GenerationMode) -> None:
    description = schemathesis.openapi.from_url(f"{address}/api/openapi.json")
    tried = 0
    for result in description.get_all_operations():
        operation = result.ok()
        if operation.path.endswith(STREAMS):
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def check(case: schemathesis.Case) -> None:
            case.validate_response(case.call(timeout=PATIENCE), checks=[not_a_server_error])

        with contextlib.suppress(Unsatisfiable):  # where nothing is asked for, nothing can be wrong
            check()
            tried += 1
    assert tried >= 15
